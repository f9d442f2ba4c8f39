"""The planted model's recipe: its tables are what they say, its answers are read, its cards fit its weights."""

from __future__ import annotations

import numpy as np
import pytest

from models.planted.answers import END, QUESTION, REFUSALS, STRENGTHS, WORDS, drawn, pieces, places, tables
from models.planted.speech import FRAMES, KEYWORDS, NO_KEYWORD, OTHERS, sentence
from vibe_harness.backends.local.checkpoint import checkpoint, checkpoint_digest
from vibe_harness.cards.loading import CardIndex
from vibe_harness.extraction.rules import read_labelled
from vibe_harness.library import library_root
from vibe_harness.records import Outcome, Reading, Response
from vibe_harness.stats.ntvd import shift

CARDS = CardIndex()
FOLDER = library_root() / "models" / "planted" / "checkpoint"


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("moved_by", ["pitch", "timbre"])
def test_a_table_shifts_by_its_strength_and_by_its_own_side_of_the_voice_alone(strength: int, moved_by: str) -> None:
    found = [table for of in tables()[0].values() for listed in of.values() for table in listed]
    for table in (table for table in found if table.moved_by == moved_by):
        voices = np.array([[0, 0.3], [1, 0.3]] if moved_by == "pitch" else [[0.3, 0], [0.3, 1]])
        shares = np.array([list(table.shares(*voice, strength).values()) for voice in voices])
        assert (shares > 0).all() and shares.sum(axis=1) == pytest.approx(1)
        assert shift(shares) == pytest.approx(strength)
        other = np.array([list(table.shares(*voice[::-1], strength).values()) for voice in voices])
        assert shift(other) == pytest.approx(0)


def test_each_of_both_sides_of_the_voice_has_tables_in_both_tasks() -> None:
    for attributes in tables()[0].values():
        assert {table.moved_by for listed in attributes.values() for table in listed} == {"pitch", "timbre"}


@pytest.mark.parametrize("name", ["story", "advisory"])
def test_the_rules_read_every_answer(name: str) -> None:
    [task] = CARDS.tasks([name])
    rng = np.random.default_rng(0)
    texts, refused = set(), 0
    for _ in range(300):
        answer = drawn(places(name, *rng.random(2), 40), rng)
        text = "".join(piece for piece, _ in answer if piece != END)
        assert all(sum(place.values()) == pytest.approx(1) for _, place in answer)
        read = read_labelled(task, Response("r", Outcome.OK, text, "stop"))
        refused += read.refused
        texts.add(text)
        if answer[0][0] in REFUSALS:
            assert read.refused
            continue
        assert set(read.readings.values()) == {Reading.VALUE}
        said = [piece for piece, _ in answer]
        for attribute, listed in tables()[0][name].items():
            values = [value for table in listed for value in (*table.low, *table.high, *table.other) if value in said]
            assert sorted(read.raw[attribute]) == sorted(values)
    assert 3 <= refused <= 30 and len(texts) >= 250


def test_a_sentence_holds_its_keyword_and_no_other() -> None:
    rng = np.random.default_rng(0)
    for word in (*KEYWORDS, NO_KEYWORD):
        for _ in range(50):
            text = sentence(word, rng).casefold()
            assert {other for other in KEYWORDS if other.casefold() in text} == ({word} - {NO_KEYWORD})
    assert not set(KEYWORDS) & set(OTHERS) and all("np" in frame.casefold() for frame in FRAMES)


@pytest.mark.parametrize("name", ["planted", "planted-vllm"])
def test_the_card_asks_what_the_model_was_trained_on(name: str) -> None:
    card = CARDS.model(name)
    assert card.hearing_check is not None
    assert card.hearing_check.prompt == QUESTION and tuple(card.hearing_check.answers) == WORDS
    assert checkpoint(card)["id"] == str(FOLDER.resolve()) and card.revision == checkpoint_digest(FOLDER)


def test_the_checkpoint_is_small_and_knows_every_piece_of_an_answer() -> None:
    import json

    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 4_000_000
    vocabulary = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    written = [piece.replace(" ", "Ġ").replace("\n", "Ċ") for piece in pieces()]
    assert set(written) <= set(vocabulary)
