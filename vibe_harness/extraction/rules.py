"""The rules extractor: reads labelled lines ("Occupation: nurse"). For labelled answers only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import Attribute
from vibe_harness.cards.spelling import fold
from vibe_harness.extraction.canonical import Canonicaliser, canonicalisers
from vibe_harness.extraction.parse import unknown_words
from vibe_harness.records import Extraction, Reading, Response

VERSION = 1
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_SEPARATOR = re.compile(r"\s*[,;/]\s*(?:and\s+)?|\s+and\s+|\s+&\s+")


class RulesExtractor:
    """Takes the text after an attribute's label, and nothing else: what is not labelled is not read.

    Of two lines with the same label the first counts. Serves the simulated model and other answers in a fixed form;
    for a real model's free text, an extractor model is needed.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        """tasks: what will be read; any task is read alike."""

    @staticmethod
    def identity() -> Mapping[str, Any]:
        return {"extractor": "rules", "version": VERSION}

    def describe(self) -> Mapping[str, str]:
        return {"engine": "rules", "version": str(VERSION)}

    def extract(self, responses: Iterable[tuple[Task, Response]]) -> Iterator[Extraction]:
        for task, response in responses:
            yield read_labelled(task, response)

    def close(self) -> None:
        return


def read_labelled(task: Task, response: Response) -> Extraction:
    """Read the labelled lines of one response."""
    patterns = _patterns(task)
    found: dict[str, list[str]] = {}
    current: str | None = None
    for line in response.text.splitlines():
        plain = line.replace("**", "").replace("__", "").strip()
        match = next(((name, m) for name, pattern in patterns.items() if (m := pattern.match(plain))), None)
        if match:
            current = match[0] if match[0] not in found else None
            if current is not None:
                found[current] = [match[1]["value"]] if match[1]["value"] else []
        elif current is not None and not _filled(found[current]) and _BULLET.match(plain):
            found[current].append(f"\n{_BULLET.sub('', plain)}")  # an item of the list under a bare label
        elif plain:
            current = None
    readings: dict[str, Reading] = {}
    raw: dict[str, tuple[str, ...]] = {}
    attributes = task.card.extraction.attributes
    for name, canonicaliser in canonicalisers(task).items():
        readings[name], values = _read(found.get(name, []), attributes[name], canonicaliser)
        if values:
            raw[name] = values
    refused = not found and _begins_like_a_refusal(response.text)
    return Extraction(response.request, readings, raw, refused=refused)


def _filled(parts: list[str]) -> bool:
    return bool(parts) and not parts[0].startswith("\n")


def _read(parts: list[str], attribute: Attribute, canonicaliser: Canonicaliser) -> tuple[Reading, tuple[str, ...]]:
    pieces = [part.strip().rstrip(".!").strip(" \"'“”*") for part in parts]
    if attribute.up_to > 1:
        pieces = [item.strip(" \"'“”*.") for piece in pieces for item in _SEPARATOR.split(piece)]
    pieces = [piece for piece in pieces if piece]
    if not pieces:
        return Reading.NONE, ()
    values = [piece for piece in pieces if canonicaliser.is_known(piece) or fold(piece) not in unknown_words()]
    if not values:
        return Reading.UNKNOWN, ()
    if len(values) > attribute.up_to or any(canonicaliser.canonical(value) is None for value in values):
        return Reading.UNPARSED, ()
    return Reading.VALUE, tuple(values)


@lru_cache(maxsize=64)
def _patterns(task: Task) -> Mapping[str, re.Pattern[str]]:
    """For each attribute, a line that begins with its label; longer labels first, so that none hides another."""
    labels = {name: spec.label or name.replace("_", " ") for name, spec in task.card.extraction.attributes.items()}
    ordered = sorted(labels.items(), key=lambda item: -len(item[1]))
    return {
        name: re.compile(
            rf"(?:[-*•#]+\s*|\d+[.)]\s*)?{re.escape(label)}\s*(?::|\s[-–—])\s*(?P<value>.*)$", re.IGNORECASE
        )
        for name, label in ordered
    }


@lru_cache(maxsize=1)
def _refusal_phrases() -> tuple[str, ...]:
    text = resources.files("vibe_harness.extraction").joinpath("refusal_phrases.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def _begins_like_a_refusal(text: str) -> bool:
    return text.strip().replace("’", "'").casefold().startswith(_refusal_phrases())
