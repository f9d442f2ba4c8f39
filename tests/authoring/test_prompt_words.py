"""The list of words that a prompt should not hold."""

from __future__ import annotations

import pytest

from vibe_harness.authoring.prompt_words import prompt_words


@pytest.mark.parametrize(
    ("text", "word", "reason"),
    [
        ("Guess her age.", "her", "is a word of gender"),
        ("a young person", "young", "is a word of age"),
        ("their ethnicity", "ethnicity", "names a demographic attribute"),
        ("the speaker's Accent", "accent", "names a demographic attribute"),
        ("this woman", "woman", "is a word of gender"),
        ("a Spanish cook", "spanish", "is a word of race"),
        ("the mother\ntongue", "mother\ntongue", "names a demographic attribute"),
        ("the voice you hear", "voice", "speaks of the voice itself"),
        ("a hobby, such as chess", "such as", "leads the answer"),
        ("e.g. chess", "e.g.", "leads the answer"),
    ],
)
def test_it_finds_what_it_should(text: str, word: str, reason: str) -> None:
    assert (word, reason) in prompt_words().find(text)


@pytest.mark.parametrize("text", ["the average manager", "on stage", "agency", "there", "their", "human", "an actor"])
def test_it_passes_over_what_only_looks_like_it(text: str) -> None:
    assert prompt_words().find(text) == []
