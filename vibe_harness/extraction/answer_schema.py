"""The JSON Schema of an extractor's answer, for constrained decoding and for OpenAI's strict mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vibe_harness.cards.schema import REFUSED, Attribute
from vibe_harness.cards.spelling import fold

UNCLEAR = "unclear"


def answer_schema(attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    """The schema: `refused`, then every attribute in the card's order. All are required, others are not allowed.

    A closed attribute is one of the card's values, "unclear" or null; an open one is a string or null; an attribute
    with several values is a list, empty for none. Strings have no `maxLength`, which strict mode does not document; the
    token limit bounds them.
    """
    return {
        "type": "object",
        "properties": {REFUSED: {"type": "boolean"}, **{name: _attribute(spec) for name, spec in attributes.items()}},
        "required": [REFUSED, *attributes],
        "additionalProperties": False,
    }


def _attribute(spec: Attribute) -> dict[str, Any]:
    several = spec.up_to > 1
    item: dict[str, Any] = {"type": "string"} if several else {"type": ["string", "null"]}
    if spec.values != "open":
        words = [] if UNCLEAR in map(fold, spec.values) else [UNCLEAR]
        item["enum"] = [*spec.values, *words] if several else [*spec.values, *words, None]
    return {"type": "array", "items": item, "maxItems": spec.up_to} if several else item
