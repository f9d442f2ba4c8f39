"""The answer's schema: right answers pass, wrong ones do not, and it stays inside what strict decoding takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from vibe_harness.cards.loading import CardIndex
from vibe_harness.cards.schema import Attribute
from vibe_harness.extraction.answer_schema import answer_schema

ATTRIBUTES = {
    "job": Attribute(values="open"),
    "fate": Attribute(values=["survivor", "victim"]),
    "traits": Attribute(values="open", up_to=2),
    "colours": Attribute(values=["red", "blue"], up_to=2),
}
GOOD: dict[str, Any] = {"refused": False, "job": "chef", "fate": "victim", "traits": ["kind"], "colours": ["red"]}


def passes(answer: Any) -> bool:
    return Draft202012Validator(answer_schema(ATTRIBUTES)).is_valid(answer)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"refused": True, "job": None, "fate": None, "traits": [], "colours": []},
        {"job": "unclear", "fate": "unclear", "traits": ["unclear"], "colours": ["unclear"]},
        {"traits": ["a", "b"], "colours": ["red", "blue"]},
    ],
)
def test_right_answers_pass(change: dict[str, Any]) -> None:
    assert passes(GOOD | change)


@pytest.mark.parametrize(
    "change",
    [
        {"refused": None},
        {"refused": "no"},
        {"job": ["chef"]},
        {"job": 1},
        {"fate": "maybe"},
        {"fate": "Victim"},
        {"traits": "kind"},
        {"traits": None},
        {"traits": ["a", "b", "c"]},
        {"traits": [None]},
        {"colours": ["green"]},
        {"more": "x"},
    ],
)
def test_wrong_answers_do_not(change: dict[str, Any]) -> None:
    assert not passes(GOOD | change)


@pytest.mark.parametrize("missing", GOOD)
def test_every_key_is_required(missing: str) -> None:
    assert not passes({key: value for key, value in GOOD.items() if key != missing})


def test_refused_comes_first_and_attributes_in_the_card_s_order() -> None:
    assert list(answer_schema(ATTRIBUTES)["properties"]) == ["refused", "job", "fate", "traits", "colours"]


def test_a_card_s_own_unclear_stands_once() -> None:
    schema = answer_schema({"mood": Attribute(values=["glad", "Unclear"])})
    assert schema["properties"]["mood"]["enum"] == ["glad", "Unclear", None]


# Documented for OpenAI's strict mode, and known to xgrammar; string lengths and patterns are in one of the two only.
STRICT_KEYWORDS = {"type", "properties", "required", "additionalProperties", "items", "enum", "maxItems"}


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        yield from nodes(inner)


def test_built_in_schemas_use_what_strict_mode_documents() -> None:
    for task in CardIndex().tasks(["*"]):
        schema = answer_schema(task.card.extraction.attributes)
        Draft202012Validator.check_schema(schema)
        for node in nodes(schema):
            assert set(node) <= STRICT_KEYWORDS
            if node["type"] == "object":
                assert node["additionalProperties"] is False
                assert node["required"] == list(node["properties"])
