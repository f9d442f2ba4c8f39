"""Finding an extractor by its name."""

from pathlib import Path

import pytest

from vibe_harness.cards.loading import CardIndex
from vibe_harness.errors import UserError
from vibe_harness.extraction.opening import find_extractor
from vibe_harness.extraction.protocol import EXTRACTORS


@pytest.fixture
def index(tmp_path: Path) -> CardIndex:
    models = tmp_path / "models"
    models.mkdir()
    for name, audio, args in (("texty", "false", "{}"), ("hears", "true", "{}"), ("typo", "false", "{temprature: 1}")):
        (models / f"{name}.yaml").write_text(
            f"model: {name}\nbackend: openai\nid: org/x\naudio: {audio}\nargs: {args}\n", encoding="utf-8"
        )
    return CardIndex([tmp_path])


def test_a_registered_extractor_needs_no_card(index: CardIndex) -> None:
    assert "rules" in EXTRACTORS.names()
    assert find_extractor("rules", index) is None


def test_a_name_that_is_neither_gets_a_suggestion(index: CardIndex) -> None:
    with pytest.raises(UserError, match=r"unknown extractor 'rulse'. Did you mean 'rules'\?"):
        find_extractor("rulse", index)
    with pytest.raises(UserError, match=r"Did you mean 'qwen3-8b'\?"):
        find_extractor("qwen3-8B-", index)


def test_a_model_that_hears_recordings_is_no_extractor(index: CardIndex) -> None:
    with pytest.raises(UserError, match="'hears' takes recordings"):
        find_extractor("hears", index)
