"""What a model thought is told from what it answered, however it is set off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vibe_harness.thoughts import split_thought


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Occupation: nurse", "Occupation: nurse"),
        ("<think>Occupation: judge</think>Occupation: nurse", "Occupation: nurse"),
        ("<THINK>\njudge\n</THINK>\nnurse", "\nnurse"),
        ("<thinking>judge</thinking>nurse", "nurse"),
        ("<thought>judge</thought>nurse", "nurse"),
        ("<reasoning>judge</reasoning>nurse", "nurse"),
        ('<think lang="en">judge</think>nurse', "nurse"),
        ("<seed:think>judge</seed:think>nurse", "nurse"),
        ("[THINK]judge[/THINK]nurse", "nurse"),
        ("◁think▷judge◁/think▷nurse", "nurse"),
        ("<|begin_of_thought|>judge<|end_of_thought|>nurse", "nurse"),
        ("judge</think>nurse", "nurse"),  # the prompt began the thought
        ("<think>judge", ""),
        ("nurse<think>judge", "nurse"),
        ("<think></think>nurse", "nurse"),
        ("<think>a</think>nurse <think>b</think>and chef", "nurse and chef"),
        ("<think>a<think>b</think>c</think>nurse", "nurse"),
        ("<think>a <think> b</think>nurse", "nurse"),
        ("<reasoning>it says </think></reasoning>nurse", "nurse"),
        ("I think that a nurse <thinks> so [thinks]", "I think that a nurse <thinks> so [thinks]"),
        ("a < think > b", "a < think > b"),
    ],
)
def test_a_thought_is_split_off(text: str, answer: str) -> None:
    said, thought = split_thought(text)
    assert said == answer
    assert (thought == "") == (text == answer)
    assert sorted(said + thought) == sorted(text)  # nothing is lost


@given(st.text(), st.text(), st.sampled_from(["think", "thinking", "reasoning"]))
def test_whatever_is_thought_the_answer_is_what_follows(thought: str, answer: str, tag: str) -> None:
    assert split_thought(f"<{tag}>{thought}</{tag}>{answer}")[0] == answer


def test_many_tags_take_no_longer_than_their_length() -> None:
    assert split_thought("<think>" * 50_000)[0] == split_thought("</think>" * 50_000)[0] == ""
