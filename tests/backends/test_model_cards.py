"""The model cards of the library: each is whole, and says what nobody has checked."""

import warnings
from datetime import date, timedelta
from pathlib import Path

import pytest

from vibe_harness.backends.local.checkpoint import adapter_folder, checkpoint
from vibe_harness.backends.protocol import check_options
from vibe_harness.cards.loading import CardIndex
from vibe_harness.cards.schema import Prices
from vibe_harness.errors import UserError
from vibe_harness.planning.prepare import warn_of_end

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


@pytest.mark.parametrize("name", CARDS.model_names())
def test_every_real_model_that_takes_clips_says_how_long_they_may_be(name: str) -> None:
    card = CARDS.model(name)
    if card.audio and not card.simulated and not name.startswith("planted") and name != "server":
        assert card.max_seconds is not None


def test_a_price_needs_the_day_on_which_it_was_read() -> None:
    for name in CARDS.model_names():
        card = CARDS.model(name)
        assert card.prices is None or (card.prices.read_on and card.prices.source)
    card = CARDS.model("gemini-2.5-flash-lite")
    undated = card.model_copy(update={"prices": Prices(input=1.0, output=1.0)})
    with pytest.raises(UserError, match="prices: they change: add the day") as told:
        check_options(undated)
    assert len(str(told.value).splitlines()) == 1
    for day in ("2026-13-01", "2026-1-1", "soon"):
        with pytest.raises(ValueError, match="read_on"):
            Prices(input=1.0, output=1.0, read_on=day)


@pytest.mark.parametrize(("days", "said"), [(-1, "was to be served until"), (10, "is to be served until"), (60, None)])
def test_a_run_warns_of_a_hosted_model_near_its_end(days: int, said: str | None) -> None:
    last = (date.today() + timedelta(days)).isoformat()
    card = CARDS.model("gemini-2.5-flash").model_copy(update={"available_until": last})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_end(card)
    assert [str(one.message) for one in caught] == (
        [f"'gemini-2.5-flash' {said} {last}; its provider names gemini-3.5-flash-lite in its place"] if said else []
    )


def test_an_adapter_is_found_in_the_models_folder_and_its_absence_refused(tmp_path: Path) -> None:
    card = CARDS.model("phi-4-multimodal").model_copy(update={"id": str(tmp_path)})
    weights = checkpoint(card)
    with pytest.raises(UserError, match=r"there is no adapter in .*speech-lora") as told:
        adapter_folder(card, weights, card.args["adapter"])
    assert len(str(told.value).splitlines()) == 1
    (tmp_path / "speech-lora").mkdir()
    with pytest.raises(UserError, match="there is no adapter"):  # an empty folder is none either
        adapter_folder(card, weights, card.args["adapter"])
    (tmp_path / "speech-lora/adapter_config.json").write_text("{}", encoding="utf-8")
    assert adapter_folder(card, weights, card.args["adapter"]) == (tmp_path / "speech-lora").resolve()


def test_an_adapter_that_the_hub_does_not_give_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    card = CARDS.model("phi-4-multimodal")
    with pytest.raises(UserError, match=r"its adapter 'speech-lora' cannot be loaded from microsoft/Phi-4") as told:
        adapter_folder(card, checkpoint(card), "speech-lora")
    assert len(str(told.value).splitlines()) == 1
