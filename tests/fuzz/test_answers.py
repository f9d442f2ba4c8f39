"""The reader of choices on answers put together at random: it takes no letter that is denied, and never runs on."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vibe_harness.extraction.answer_reader import read_choice
from vibe_harness.records import Option
from vibe_harness.thoughts import split_thought

OPTIONS = tuple(
    Option(label, text, text) for label, text in zip("ABCD", ("London", "Paris", "Rome", "Oslo"), strict=True)
)
TAKEN = (
    "The answer is {}.", "I choose {}.", "My final answer: {}", "I'd go with option {}.", "Answer: [[{}]]",
    "It must be {}.", "So the correct option is ({}).", "**Answer:** {}", "$\\boxed{{{}}}$", "정답은 {}입니다.",
    "答案是{}。",
    "Die richtige Antwort ist {}.", "La respuesta correcta es {}.", "La bonne réponse est {}.",
)  # fmt: skip
DENIED = (
    "{} is wrong.", "{} is not correct.", "It can't be {}.", "{} is hardly right.", "{} seems less natural.", "Not {}.",
    "I would never choose {}.", "The answer is not {}.", "{} isn't the best answer.", "I rule out {}.", "{}: no.",
    "I don't think that the answer is {}.", "정답은 {}가 아닙니다.", "答案不是{}。",
    "{} ist nicht richtig.",
    "{} es incorrecta.",
)  # fmt: skip
PIECES = (
    "!", "?", "(", "[", '"', "'", "*", "`", "~~", "#", ">", "-", " – ", ",", ".", "...", ":", "\n",
    "\\boxed{", "[[", "A", "b", "A ", "B, ", "C or ", "D) ", "a. ", "the answer is ", "answer: ", "not ",
    "if ", "so ", "but ", "no, ", "I think that ", "the first option ", "most ", "probably ", "the ",
    "option ", "Paris ", "答案", "不", "답", "B입니다", "아니라 ", "<think>", "</think>", "[/THINK]", "é", "0",
    "\u3000", "ﷺ",
)  # fmt: skip
LONG = 20_000  # characters: an answer of 4,000 tokens
SECONDS = 3.0  # some fifteen times what the slowest of them takes; 8,000 lines of "!" once took 13 s


@given(
    st.sampled_from(TAKEN),
    st.sampled_from("ABCD"),
    st.lists(st.tuples(st.sampled_from(DENIED), st.sampled_from("ABCD"))),
)
def test_what_is_taken_is_read_among_what_is_denied(taken: str, label: str, denied: list[tuple[str, str]]) -> None:
    others = [form.format(other) for form, other in denied if other != label]
    for said in ("\n".join([*others, taken.format(label)]), "\n".join([taken.format(label), *others])):
        assert read_choice(said, OPTIONS).label == label, said


@given(st.lists(st.tuples(st.sampled_from(DENIED), st.sampled_from("ABCD")), min_size=1), st.sampled_from((" ", "\n")))
def test_what_is_denied_is_never_read(denied: list[tuple[str, str]], between: str) -> None:
    said = between.join(form.format(label) for form, label in denied)
    assert read_choice(said, OPTIONS).label not in {label for _, label in denied}, said


def seconds(text: str) -> float:
    begun = time.process_time()
    read_choice(split_thought(text)[0], OPTIONS)
    return time.process_time() - begun


def test_lines_of_marks_are_read_at_once() -> None:
    read_choice("B", OPTIONS)  # which makes the patterns
    for text in ("!\n" * 8_000, "!?" * LONG, "A, " * 8_000, "(" * LONG, " " * LONG + "(", "the answer is " * 2_000):
        assert seconds(text) < SECONDS, text[:20]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5), st.text(max_size=3))
def test_the_time_grows_with_the_length_and_no_faster(pieces: list[str], more: str) -> None:
    one = "".join(pieces) + more
    text = (one * (LONG // len(one) + 1))[:LONG]
    assert seconds(text) < SECONDS, one
