"""The interface of extractors."""

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
        """Read responses with text (outcome ok or truncated), each exactly once, in any order.

        Responses are taken as there is room, never all at once. A failed call gives an Extraction with `error` set.
        """

    def close(self) -> None:
        """Release the extractor's resources."""


class ExtractorType(Protocol):
    """What an extractor registers. A class with a static method `identity` is enough."""

    def identity(self) -> Mapping[str, Any]:
        """Everything that can change a reading, as plain data; part of every extraction's key. Opens nothing."""

    def __call__(self, tasks: Sequence[Task]) -> Extractor:
        """Open the extractor. tasks: those whose responses it will read."""


EXTRACTORS: Registry[ExtractorType] = Registry(
    "extractor", "vibe_harness.extractors", {"rules": "vibe_harness.extraction.rules:RulesExtractor"}
)
