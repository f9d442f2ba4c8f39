"""Answers to choice tasks, read by rules or by a model, end as what the letter meant in the order that was asked."""

from __future__ import annotations

import pytest

from tests.choice_corpora import question_rows
from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.extraction.answer_schema import answer_schema
from vibe_harness.extraction.observe import observations
from vibe_harness.extraction.parse import parse_answer
from vibe_harness.extraction.rules import read_letter
from vibe_harness.kinds.base import kind_of
from vibe_harness.records import Clip, Extraction, Observation, Outcome, Reading, Response

[TASK] = CardIndex().tasks(["biasinear"])
ROW = next(row for row in question_rows() if row["order"] == "reversed")
CLIP = Clip("c", ROW["file"], ROW["speaker"], ROW, ROW["text"])
VARIANT = "standard.reversed"


def asked() -> Task:
    return kind_of(TASK.card).bind(TASK, VARIANT, CLIP)


def observed(text: str, extraction: Extraction | None, outcome: Outcome = Outcome.OK) -> Observation:
    [found] = observations(TASK, VARIANT, CLIP, Response("r", outcome, text), extraction)
    return found


@pytest.mark.parametrize(
    ("answer", "letter", "content"),
    [("The answer is A.", "A", "d"), ("(b)", "B", "c"), ("thing A of 0", "D", "a"), ("the last option", "D", "a")],
)
def test_rules_read_a_letter_and_the_order_says_what_it_meant(answer: str, letter: str, content: str) -> None:
    found = observed(answer, read_letter(asked(), Response("r", Outcome.OK, answer)))
    assert (found.reading, found.raw, found.values) == (Reading.VALUE, (letter,), (content,))


def test_rules_tell_refusing_from_what_cannot_be_read() -> None:
    declined = "I'm sorry, but I can't help with that."
    assert observed(declined, read_letter(asked(), Response("r", Outcome.OK, declined))).outcome is Outcome.REFUSED
    for answer, reading in (("Both", Reading.UNKNOWN), ("It goes on:", Reading.UNPARSED)):
        found = observed(answer, read_letter(asked(), Response("r", Outcome.OK, answer)))
        assert (found.outcome, found.reading, found.values) == (Outcome.OK, reading, ())
    assert observed("", None, Outcome.BLOCKED).reading is Reading.NONE


def test_a_model_is_told_the_options_and_may_give_one_letter() -> None:
    prompt = asked().extraction_prompt("I take the first thing.")
    assert all(f"{a}. thing {b} of 0" in prompt for a, b in zip("ABCD", "DCBA", strict=True))
    schema = answer_schema(TASK.card.extraction.attributes)["properties"]["choice"]
    assert schema["enum"] == ["A", "B", "C", "D", "unclear", None]


@pytest.mark.parametrize(
    ("given", "reading", "content"),
    [
        ('"B"', Reading.VALUE, ("c",)),
        ('"unclear"', Reading.UNKNOWN, ()),
        ("null", Reading.NONE, ()),
        ('"E"', Reading.UNPARSED, ()),
        ('["A", "B"]', Reading.UNPARSED, ()),
    ],
)
def test_what_a_model_reads_is_a_letter_of_the_card_or_none(
    given: str, reading: Reading, content: tuple[str, ...]
) -> None:
    extraction = parse_answer(asked(), "r", f'{{"refused": false, "choice": {given}}}')
    found = observed("words", extraction)
    assert (found.reading, found.values) == (reading, content)
