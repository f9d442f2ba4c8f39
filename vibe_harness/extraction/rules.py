"""The rules extractor: reads labelled lines ("Occupation: nurse"), and the letter of an answer to a choice task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import CHOICE, Attribute
from vibe_harness.cards.spelling import fold
from vibe_harness.extraction.answer_reader import VERSION as READER_VERSION
from vibe_harness.extraction.answer_reader import read_choice
from vibe_harness.extraction.canonical import Canonicaliser, canonicalisers
from vibe_harness.extraction.parse import unknown_words
from vibe_harness.records import Extraction, Reading, Response

VERSION = 2
REFUSED_WITHIN = 200  # characters at the beginning that are searched for a refusal
_BULLET = re.compile(r"\s*(?:[-*•–]|#+|\d+[.)])\s+")
_MARKS = re.compile(r"[,;\n]")
_WORDS = re.compile(r"\s+and\s+|\s*[/&]\s*")
_AND = re.compile(r"\s*and\s+")
_TRIMMED = " \t\r\"'“”‘’.!"


class RulesExtractor:
    """Reads the text after an attribute's label. Text without a label is not read.

    Of two lines with the same label the first counts. This is for the simulated model and other answers in a fixed
    form; free text of real models needs an extractor model. Answers to choice tasks are read by `answer_reader`.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        """tasks: ignored, since all tasks are read in the same way."""

    @staticmethod
    def identity() -> Mapping[str, Any]:
        return {"extractor": "rules", "version": VERSION, "answer_reader": READER_VERSION}

    def describe(self) -> Mapping[str, str]:
        return {"engine": "rules", "version": str(VERSION)}

    def extract(self, responses: Iterable[tuple[Task, Response]]) -> Iterator[Extraction]:
        for task, response in responses:
            yield read_letter(task, response) if task.offered else read_labelled(task, response)

    def close(self) -> None:
        return


def read_letter(task: Task, response: Response) -> Extraction:
    """Read the letter that an answer to a choice task chooses. task: bound to the offered options."""
    choice = read_choice(response.text, task.offered)
    raw = {CHOICE: (choice.label,)} if choice.label else {}
    return Extraction(response.request, {CHOICE: choice.reading}, raw, refused=not raw and _refuses(response.text))


def read_labelled(task: Task, response: Response) -> Extraction:
    """Read the labelled lines of one response.

    A label is the card's label or the attribute's name, in any case, in bold or after a bullet, and ends with a colon
    or a dash. Its value is the rest of the line or, if that is empty, the bulleted or numbered lines below. A list is
    split at commas, semicolons, slashes and "and", unless the whole is a value of the card.
    """
    found = _labelled(task, response.text)
    readings: dict[str, Reading] = {}
    raw: dict[str, tuple[str, ...]] = {}
    for name, canonicaliser in canonicalisers(task).items():
        attribute = task.card.extraction.attributes[name]
        readings[name], values = _read(found.get(name, ""), attribute, canonicaliser)
        if values:
            raw[name] = values
    answered = not {Reading.VALUE, Reading.UNPARSED}.isdisjoint(readings.values())
    refused = not answered and _refuses(response.text)
    return Extraction(response.request, readings, raw, refused=refused)


def _labelled(task: Task, text: str) -> dict[str, str]:
    """Attribute -> the text after its first label. Lines of a list are joined with line breaks."""
    label = _labels(task)
    found: dict[str, str] = {}
    listing: str | None = None  # the attribute whose list may continue in this line
    for line in text.splitlines():
        line = line.replace("**", "").replace("__", "")
        bullet = _BULLET.match(line)
        line = line[bullet.end() if bullet else 0 :].replace("*", "").strip()
        if match := label.match(line):
            name, value = str(match.lastgroup), line[match.end() :].strip()
            listing = None if value or name in found else name
            found.setdefault(name, value)
        elif bullet and listing is not None:
            found[listing] = f"{found[listing]}\n{line}"
        elif line:
            listing = None
    return found


def _read(text: str, attribute: Attribute, canonicaliser: Canonicaliser) -> tuple[Reading, tuple[str, ...]]:
    items = _items(text, canonicaliser) if attribute.up_to > 1 else text.split("\n")
    items = [item for item in (item.strip(_TRIMMED) for item in items) if item]
    if not items:
        return Reading.NONE, ()
    values = tuple(item for item in items if not _is_unknown(item, canonicaliser))
    if not values:
        return Reading.UNKNOWN, ()
    if len(values) > attribute.up_to or any(canonicaliser.canonical(value) is None for value in values):
        return Reading.UNPARSED, ()
    return Reading.VALUE, values


def _items(text: str, canonicaliser: Canonicaliser) -> list[str]:
    """The items of a list, as written."""
    items: list[str] = []
    whole = [text] if _is_word(text, canonicaliser) else _MARKS.split(text)
    for part in whole:
        bullet = _BULLET.match(part) or _AND.match(part)
        part = part[bullet.end() if bullet else 0 :]
        parts = [part] if _is_word(part, canonicaliser) else _WORDS.split(part)
        items += parts
    return items


def _is_word(text: str, canonicaliser: Canonicaliser) -> bool:
    """Whether a text that looks like a list is one value of the card, or means "unknown" ("n/a")."""
    return canonicaliser.is_known(text) or fold(text) in unknown_words()


def _is_unknown(text: str, canonicaliser: Canonicaliser) -> bool:
    """Whether a text means "unknown". The card's own values take precedence ("uncertain")."""
    return fold(text) in unknown_words() and not canonicaliser.is_known(text)


@lru_cache(maxsize=64)
def _labels(task: Task) -> re.Pattern[str]:
    """A pattern for lines that begin with a label. The matching group has the attribute's name."""
    groups = []
    for name, spec in task.card.extraction.attributes.items():
        labels = {name.replace("_", " "), spec.label or ""} - {""}
        words = (r"[\s_]+".join(map(re.escape, label.split())) for label in sorted(labels))
        groups.append(f"(?P<{name}>{'|'.join(words)})")
    return re.compile(rf"(?:{'|'.join(groups)})(?:\s*:|\s+[-–—])", re.IGNORECASE)


@lru_cache(maxsize=1)
def _refusal_phrases() -> tuple[str, ...]:
    text = resources.files("vibe_harness.extraction").joinpath("refusal_phrases.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def _refuses(text: str) -> bool:
    beginning = text[:REFUSED_WITHIN].replace("’", "'").casefold()
    return any(phrase in beginning for phrase in _refusal_phrases())
