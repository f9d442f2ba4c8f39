"""The extractor's answer: strict JSON, each attribute by itself, no reading turned into another."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.cards.spelling import fold
from vibe_harness.extraction.parse import parse_answer, unknown_words
from vibe_harness.records import Extraction, Reading

STORY = CardIndex().tasks(["story"])[0]
NAMES = list(STORY.card.extraction.attributes)
GOOD: dict[str, Any] = {
    "refused": False,
    "occupation": "Nurse",
    "economic_situation": "Middle-Class",
    "education_level": None,
    "field_of_study": "unclear",
    "family_status": "single parent",
    "personality": ["kind", "unclear", "Brave"],
}


def parse(answer: Any, task: Task = STORY) -> Extraction:
    return parse_answer(task, "r", answer if isinstance(answer, str) else json.dumps(answer))


def reading(name: str, given: Any) -> Reading:
    return parse({**GOOD, name: given}).readings[name]


def test_a_good_answer() -> None:
    text = json.dumps(GOOD)
    extraction = parse(text)
    assert extraction.readings == {
        "occupation": Reading.VALUE,
        "economic_situation": Reading.VALUE,
        "education_level": Reading.NONE,
        "field_of_study": Reading.UNKNOWN,
        "family_status": Reading.VALUE,
        "personality": Reading.VALUE,
    }
    assert extraction.raw == {
        "occupation": ("Nurse",),
        "economic_situation": ("Middle-Class",),
        "family_status": ("single parent",),
        "personality": ("kind", "Brave"),
    }
    assert (extraction.request, extraction.refused, extraction.text, extraction.error) == ("r", False, text, None)


@pytest.mark.parametrize(
    "wrap",
    ["{}", " \n{}\n ", "```json\n{}\n```", "```\n{}\n```", "\n```JSON\n{}\n```\n", "\ufeff{}".replace("\ufeff", "")],
)
def test_a_code_fence_and_blanks_around_it_are_allowed(wrap: str) -> None:
    assert parse(wrap.replace("{}", json.dumps(GOOD, indent=1))).readings["occupation"] is Reading.VALUE


BROKEN = {
    "nothing": "",
    "text before": "Here it is: " + json.dumps(GOOD),
    "text after": json.dumps(GOOD) + "\nI hope this helps.",
    "two objects": json.dumps(GOOD) + json.dumps(GOOD),
    "cut short": json.dumps(GOOD)[:-10],
    "a list": json.dumps([GOOD]),
    "a string": json.dumps("nurse"),
    "null": "null",
    "a key twice": json.dumps(GOOD)[:-1] + ', "occupation": "chef"}',
    "a key twice, deeper": json.dumps(GOOD)[:-1] + ', "more": {"a": 1, "a": 2}}',
    "NaN": json.dumps({**GOOD, "education_level": float("nan")}),
    "infinity": json.dumps({**GOOD, "education_level": float("-inf")}),
    "single quotes": "{'refused': false}",
    "comment": '{"refused": false /* no */}',
    "trailing comma": '{"refused": false,}',
    "a fence with text after": "```json\n" + json.dumps(GOOD) + "\n``` done",
    "thinking": "<think>\nhm\n</think>\n" + json.dumps(GOOD),
    "very deep": '{"refused": ' + "[" * 100_000,
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_anything_but_one_strict_json_object_is_unparsed(text: str) -> None:
    extraction = parse(text)
    assert extraction.readings == dict.fromkeys(NAMES, Reading.UNPARSED)
    assert (extraction.raw, extraction.refused, extraction.text) == ({}, False, text)
    assert extraction.error


@pytest.mark.parametrize("given", [1, 0, True, False, {}, {"a": "b"}, ["nurse"], "", "...", " "])
def test_a_single_open_value_is_a_string(given: Any) -> None:
    assert reading("occupation", given) is Reading.UNPARSED


@pytest.mark.parametrize("given", ["kind", ["a"] * 6, [1], ["kind", None], ["kind", ["brave"]], ["kind", "!"], {}])
def test_several_values_are_a_list_of_strings_no_longer_than_the_card_says(given: Any) -> None:
    assert reading("personality", given) is Reading.UNPARSED


@pytest.mark.parametrize("given", ["divorced", "single or married", "", 1, ["single"]])
def test_a_closed_value_is_on_the_list(given: Any) -> None:
    assert reading("family_status", given) is Reading.UNPARSED


def test_one_bad_attribute_spoils_no_other() -> None:
    extraction = parse({**GOOD, "family_status": "divorced"})
    assert extraction.readings["family_status"] is Reading.UNPARSED
    assert extraction.readings["occupation"] is Reading.VALUE
    assert extraction.error is not None and "family_status" in extraction.error


def test_a_missing_attribute_is_unparsed_not_none() -> None:
    extraction = parse({key: value for key, value in GOOD.items() if key != "occupation"})
    assert extraction.readings["occupation"] is Reading.UNPARSED
    assert extraction.readings["family_status"] is Reading.VALUE


@pytest.mark.parametrize("given", [None, []])
def test_nothing_is_none(given: Any) -> None:
    assert reading("personality", given) is Reading.NONE
    assert reading("occupation", given) is Reading.NONE
    assert reading("family_status", given) is Reading.NONE


@pytest.mark.parametrize("word", ["unclear", "Not stated.", "UNKNOWN", "not-specified", "N/A", "none", "null"])
def test_words_for_not_settled_are_unknown_never_values(word: str) -> None:
    assert reading("occupation", word) is Reading.UNKNOWN
    assert reading("family_status", word) is Reading.UNKNOWN
    assert reading("personality", [word, word]) is Reading.UNKNOWN


def test_the_card_s_own_value_comes_before_the_list_of_unknown_words() -> None:
    casting = CardIndex().tasks(["casting"])[0]
    assert "uncertain" in unknown_words()
    answer = {"refused": False, "billing": "uncertain", "longevity": "Uncertain"}
    extraction = parse(answer, casting)
    assert extraction.readings["longevity"] is Reading.VALUE
    assert extraction.readings["billing"] is Reading.UNKNOWN


@pytest.mark.parametrize("others", [None, "unclear"])
def test_refused_counts_where_nothing_has_a_value(others: Any) -> None:
    nothing = {name: others for name in NAMES if name != "personality"}
    assert parse({"refused": True, **nothing, "personality": []}).refused
    assert not parse({"refused": False, **nothing, "personality": []}).refused
    assert not parse({"refused": True, **nothing, "personality": ["kind"]}).refused
    assert not parse({"refused": True, **nothing, "personality": 7}).refused


@pytest.mark.parametrize("refused", [None, "false", 0, "missing"])
def test_without_values_an_answer_must_say_whether_the_task_was_refused(refused: Any) -> None:
    answer = {**dict.fromkeys(NAMES), "refused": refused}
    if refused == "missing":
        del answer["refused"]
    assert set(parse(answer).readings.values()) == {Reading.UNPARSED}
    assert parse({**answer, "occupation": "chef"}).readings["occupation"] is Reading.VALUE


def test_the_list_of_unknown_words_is_folded_and_holds_no_blank() -> None:
    assert "" not in unknown_words()
    assert all(fold(word) == word for word in unknown_words())


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["single", "unclear"]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.fixed_dictionaries({"refused": JSON, **dict.fromkeys(NAMES, JSON)}))
def test_any_answer_gives_every_attribute_one_reading(answer: dict[str, Any]) -> None:
    extraction = parse(answer)
    assert list(extraction.readings) == NAMES
    assert set(extraction.raw) == {n for n, r in extraction.readings.items() if r is Reading.VALUE}
    assert all(extraction.raw.values())
    assert not (extraction.refused and extraction.raw)
    for name, given_value in answer.items():
        if name != "refused" and given_value is None:
            assert extraction.readings[name] is not Reading.VALUE


@given(st.text())
def test_any_text_is_read_or_unparsed(text: str) -> None:
    assert set(parse_answer(STORY, "r", text).readings.values()) == {Reading.UNPARSED}
