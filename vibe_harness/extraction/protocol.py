"""What every extractor offers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from vibe_harness.cards.loading import Task
from vibe_harness.records import Extraction, Response
from vibe_harness.registry import Registry


class Extractor(Protocol):
    """Reads the attributes of a task in responses to it."""

    def describe(self) -> Mapping[str, str]:
        """Name and version, for the run's record."""

    def extract(self, responses: Iterable[tuple[Task, Response]]) -> Iterator[Extraction]:
        """Read responses that hold text (outcome ok or truncated), in any order, each exactly once.

        Taken as there is room for them, never all at once. A call that failed is an Extraction with `error` set.
        """

    def close(self) -> None:
        """Release what the extractor holds."""


class ExtractorType(Protocol):
    """What an extractor registers: what it is, and how to open it. A class with a static `identity` will do."""

    def identity(self) -> Mapping[str, Any]:
        """What can change a reading, as plain data: part of every extraction's key. Opens nothing."""

    def __call__(self, tasks: Sequence[Task]) -> Extractor:
        """Open the extractor. tasks: whose responses it will be given."""


EXTRACTORS: Registry[ExtractorType] = Registry(
    "extractor", "vibe_harness.extractors", {"rules": "vibe_harness.extraction.rules:RulesExtractor"}
)
