"""Parsing an extractor's JSON answer. Attributes are read independently; nothing is guessed or repaired."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib import resources
from typing import Any

from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import REFUSED, Attribute
from vibe_harness.cards.spelling import fold
from vibe_harness.extraction.canonical import Canonicaliser, canonicalisers
from vibe_harness.records import Extraction, Reading

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)


@lru_cache(maxsize=1)
def unknown_words() -> frozenset[str]:
    """Folded texts that count as unknown: the lines of `unknown_words.txt`."""
    text = resources.files("vibe_harness.extraction").joinpath("unknown_words.txt").read_text(encoding="utf-8")
    return frozenset(fold(line) for line in text.splitlines() if line.strip() and not line.startswith("#"))


def parse_answer(task: Task, request: str, text: str) -> Extraction:
    """Parse an extractor's answer. request: id of the request whose response was read.

    The answer is one JSON object that follows `answer_schema`, optionally in a code fence. Otherwise all attributes are
    unparsed. `refused` counts only if no attribute has a value and none is unparsed.
    """
    try:
        answer = _read_object(text)
    except ValueError as error:
        return unparsed(task, request, text, f"the extractor's answer is not one JSON object: {error}")
    readings: dict[str, Reading] = {}
    raw: dict[str, tuple[str, ...]] = {}
    for name, canonicaliser in canonicalisers(task).items():
        if name not in answer:
            readings[name] = Reading.UNPARSED
            continue
        readings[name], found = _read_attribute(answer[name], task.card.extraction.attributes[name], canonicaliser)
        if found:
            raw[name] = found
    answered = Reading.VALUE in readings.values()
    refused = answer.get(REFUSED)
    if not answered and not isinstance(refused, bool):
        return unparsed(task, request, text, "the extractor's answer gives no value and does not say 'refused'")
    bad = [name for name, reading in readings.items() if reading is Reading.UNPARSED]
    return Extraction(
        request,
        readings,
        raw,
        refused=refused is True and not answered and not bad,
        text=text,
        error=f"the extractor's answer cannot be read for: {', '.join(bad)}" if bad else None,
    )


def unparsed(task: Task, request: str, text: str, error: str) -> Extraction:
    """An extraction with all attributes unparsed, and the reason."""
    return Extraction(request, dict.fromkeys(task.card.extraction.attributes, Reading.UNPARSED), {}, False, text, error)


def _read_object(text: str) -> dict[str, Any]:
    """Strict JSON: raises ValueError for repeated keys, NaN and Infinity, text around the object, and non-objects."""
    text = text.strip()
    fenced = _FENCED.fullmatch(text)
    try:
        data = json.loads(fenced[1] if fenced else text, object_pairs_hook=_no_repeats, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError(f"it is a {type(data).__name__}")
    return data


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key is repeated")
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _read_attribute(given: Any, attribute: Attribute, canonicaliser: Canonicaliser) -> tuple[Reading, tuple[str, ...]]:
    """The reading of one attribute, and its raw values, if any."""
    if given is None or given == []:
        return Reading.NONE, ()
    items = given if attribute.up_to > 1 else [given]
    if not isinstance(items, list) or len(items) > attribute.up_to or not all(isinstance(i, str) for i in items):
        return Reading.UNPARSED, ()
    values = tuple(item for item in items if canonicaliser.is_known(item) or fold(item) not in unknown_words())
    if not values:
        return Reading.UNKNOWN, ()
    if any(canonicaliser.canonical(value) is None for value in values):
        return Reading.UNPARSED, ()
    return Reading.VALUE, values
