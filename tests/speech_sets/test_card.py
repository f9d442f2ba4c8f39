"""Cards of speech sets: what is wrong is said with its place, before anything is spoken."""

from typing import Any

import pytest

from tests.speech_sets.conftest import CARD, QUESTIONS, WriteSet
from vibe_harness.errors import UserError
from vibe_harness.speech_sets.card import load_speech_set


def test_a_card_gives_its_items_in_order(write_set: WriteSet) -> None:
    speech_set = load_speech_set(write_set())
    assert [item.id for item in speech_set.items] == ["1", "2", "3"]
    assert speech_set.items[2].row["question"] == "What is 2 + 3, please?"


AMY, BOB = CARD["voices"]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"voices": [AMY, {**BOB, "voice": "amy"}]}, "two voices have one name"),
        ({"texts": ["question", "question"]}, "stands twice"),
        ({"keep": ["duration_s"]}, "'duration_s' has a meaning of its own"),
        ({"keep": ["option_a_text"]}, "'option_a_text' has a meaning of its own"),
        ({"keep": ["gender"]}, "'gender' has a meaning of its own"),
        ({"texts": ["question", "option_e"]}, "no column 'option_e'. Did you mean 'option_b' or 'option_a'"),
        ({"id": "subjekt"}, "no column 'subjekt'. Did you mean 'subject'?"),
        ({"source": "nothing.csv"}, "there is no file 'nothing.csv' beside set.yaml"),
        ({"source": "../set.yaml"}, "is outside of"),
        ({"voises": []}, "voises"),
        ({"voices": []}, "voices"),
        ({"version": 0}, "version"),
    ],
)
def test_a_faulty_card_is_refused(write_set: WriteSet, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said.replace("+", r"\+").replace("?", r"\?")):
        load_speech_set(write_set(**fields))


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        (QUESTIONS.replace("2,How", "1,How"), "'1' stands twice"),
        (QUESTIONS.replace("Paris", ""), ":2: 'option_a' is empty"),
        (QUESTIONS.replace("Six,", ""), ":3: 5 cells where the header has 6"),
        (QUESTIONS.splitlines()[0] + "\n", "no rows"),
        (QUESTIONS.replace("answer,", "question,"), "the column 'question' is repeated"),
        (QUESTIONS.replace("capital of", "capital\0of"), ":2: 'question' holds a control character"),
        (QUESTIONS.replace('please?"', "please?"), "not a CSV line"),
    ],
)
def test_a_faulty_source_is_refused(write_set: WriteSet, questions: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_speech_set(write_set(questions))
