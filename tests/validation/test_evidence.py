"""What the page marks in an answer."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.validation.conftest import claim
from vibe_harness.records import Reading
from vibe_harness.validation.evidence import segments, spans


def marked(text: str, *values: str, **more: object) -> list[str]:
    return [text[start:end] for start, end in spans(text, claim(values, **more))]


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("She is a Nurse.", "nurse", ["Nurse"]),
        ("Nurses and a nurse", "nurse", ["Nurses", "nurse"]),
        ("from the middle\n class", "middle-class", ["middle\n class"]),
        ("amid, at midnight, mid level", "mid", ["mid"]),
        ("writes C++, not C.", "c++", ["C++"]),
        ("an archeologist at work", "archaeologist", ["archeologist"]),
        ("a 😀 nurse 😀", "nurse", ["nurse"]),
        ("İİİ a sculptress here", "sculptresse", ["sculptress"]),
        ("As a rule: a fair answer is A, (A)", "A", ["A", "A"]),
        ("nothing of the kind", "astronaut", []),
        ("poor", "(", []),
    ],
)
def test_a_value_is_found_as_a_person_would_find_it(text: str, value: str, found: list[str]) -> None:
    assert marked(text, value) == found


def test_aliases_and_the_words_as_written_are_found_too() -> None:
    text = "Comfortable enough, a registered nurse; later an RN."
    assert marked(text, "nurse", raw=["registered nurse"], spellings=["RN"]) == ["registered nurse", "nurse", "RN"]


def test_nothing_is_marked_where_nothing_was_read() -> None:
    assert spans("unclear", claim(reading=Reading.UNKNOWN)) == []


@given(st.text(max_size=200), st.lists(st.text(max_size=12), max_size=4))
def test_the_pieces_are_the_text(text: str, values: list[str]) -> None:
    pieces = segments(text, {str(number): claim([value]) for number, value in enumerate(values)})
    assert "".join(words for words, _ in pieces) == text and all(words for words, _ in pieces)


def test_a_piece_names_every_claim_that_it_belongs_to() -> None:
    pieces = segments("a nurse practitioner", {"a": claim(["nurse"]), "b": claim(["nurse practitioner"])})
    assert pieces == [("a ", []), ("nurse", ["a", "b"]), (" practitioner", ["b"])]


def test_a_long_hostile_answer_takes_no_time() -> None:
    text = "a-" * 20_000
    began = time.process_time()
    spans(text, claim(["a " * 30 + "b"]))
    spans("nurse" * 8_000, claim(["nurse nurse", "n" * 200]))
    assert time.process_time() - began < 20
