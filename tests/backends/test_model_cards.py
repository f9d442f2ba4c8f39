"""The model cards of the library: each is whole, and says what nobody has checked."""

import pytest

from vibe_harness.backends.protocol import check_options
from vibe_harness.cards.loading import CardIndex
from vibe_harness.errors import UserError

CARDS = CardIndex()


@pytest.mark.parametrize("name", CARDS.model_names())
def test_every_card_is_one_that_its_backend_takes(name: str) -> None:
    card = CARDS.model(name)
    check_options(card)
    assert (card.licence and card.description) or name == "server"
    if card.backend in ("vllm", "hf", "gemini") and card.audio:
        assert card.notes, "the card says what was checked and what not"


def test_a_model_of_the_hub_needs_no_card() -> None:
    card = CARDS.model("hf:Qwen/Qwen2-Audio-7B-Instruct")
    assert (card.model, card.backend, card.id) == (
        "Qwen--Qwen2-Audio-7B-Instruct",
        "hf",
        "Qwen/Qwen2-Audio-7B-Instruct",
    )
    assert CARDS.model("vllm:org/name").backend == "vllm" and not card.layout.before


def test_an_unknown_model_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match="Did you mean 'qwen2-audio'"):
        CARDS.model("qwen2-adio")
