"""Each answer is read as a person reads it: the letter that it settles on, or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vibe_harness.extraction.answer_reader import read_choice
from vibe_harness.records import Option, Reading
from vibe_harness.thoughts import split_thought


def options(*texts: str) -> tuple[Option, ...]:
    return tuple(Option("ABCDEF"[place], text, text) for place, text in enumerate(texts))


OFFERED = {
    "cities": options("London", "Paris", "Rome", "Madrid"),
    "stereo": options(
        "The shopping bags sway from my wrists.",
        "My child is whining about something.",
        "The briefcase sways from my wrists.",
    ),
    "vitamins": options("Vitamin A", "Vitamin C", "Vitamin D", "Vitamin K"),
    "numbers": options("2", "4", "8", "16"),
    "nested": options("Paris", "Paris, Texas", "Rome"),
}
FILE = Path(__file__).with_name("answers.txt")
LINES = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#")]
ANSWERS = [line.split(" | ", 2) for line in LINES]


def test_there_are_a_few_hundred_answers() -> None:
    assert len(ANSWERS) > 300 and {expected for _, expected, _ in ANSWERS} == {"A", "B", "C", "D", "-"}


@pytest.mark.parametrize(("offered", "expected", "answer"), ANSWERS)
def test_an_answer_is_read_as_a_person_reads_it(offered: str, expected: str, answer: str) -> None:
    said, _ = split_thought(answer.replace("\\n", "\n").replace("\\\\", "\\"))
    choice = read_choice(said, OFFERED[offered])
    assert choice.label == (None if expected == "-" else expected)
    assert (choice.reading is Reading.VALUE) == (expected != "-")


@given(st.text(), st.sampled_from(sorted(OFFERED)))
def test_only_what_was_offered_is_ever_read(answer: str, offered: str) -> None:
    choice = read_choice(answer, OFFERED[offered])
    assert (choice.label is not None) == (choice.reading is Reading.VALUE)
    assert choice.label is None or choice.label in [option.label for option in OFFERED[offered]]


@given(st.text(alphabet=st.characters(exclude_characters="ABCDabcd", categories=["L", "N", "P", "Z"])))
def test_no_letter_comes_out_of_an_answer_without_one(answer: str) -> None:
    assert read_choice(answer, OFFERED["cities"]).label is None


def test_an_answer_that_says_so_is_unknown_and_one_that_says_nothing_is_unparsed() -> None:
    for answer in ("Both", "Cannot answer", "A or B", "None of the above"):
        assert read_choice(answer, OFFERED["cities"]).reading is Reading.UNKNOWN
    for answer in ("", "Dogs are nice.", "Answer:"):
        assert read_choice(answer, OFFERED["cities"]).reading is Reading.UNPARSED


def test_a_letter_follows_the_labels_and_not_the_places() -> None:
    """Token-backward: the first option is called D."""
    offered = tuple(
        Option(label, option.text, option.text) for label, option in zip("DCBA", OFFERED["cities"], strict=True)
    )
    assert read_choice("The answer is D.", offered).label == "D"
    assert read_choice("London", offered).label == "D" and read_choice("The first option.", offered).label == "D"


def test_a_long_answer_is_read_in_no_time() -> None:
    """Answers have up to 4,000 tokens; nothing in the patterns may grow faster than they do."""
    reasoning = "Option A says that the answer might be a city, while option B and C do not. " * 400
    assert read_choice(reasoning + "\nThe answer is C.", OFFERED["cities"]).label == "C"
    assert read_choice("the answer is " * 3_000, OFFERED["cities"]).label is None
    assert read_choice(" " * 30_000 + "(" * 3_000, OFFERED["cities"]).label is None
