"""extractions.jsonl: the extraction of each response, under a key that depends on the exact text."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Mapping, Set
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import Task
from vibe_harness.records import Extraction, Reading
from vibe_harness.store.journal import journal_lines, read_journal, whole_lines, without_half_pairs
from vibe_harness.store.request_ids import Ids
from vibe_harness.store.responses import NAMED_WITHIN, StoredResponse
from vibe_harness.store.run_folder import TaskRecord


class ExtractionKeys:
    """Computes the keys of extractions: digests of everything that can change an extraction."""

    def __init__(self, identity: Mapping[str, Any], tasks: Mapping[str, Task | TaskRecord]) -> None:
        """identity: of the extractor."""
        self._bases = {
            name: digest([dict(identity), task.card.extraction.model_dump(mode="json"), task.digest])
            for name, task in tasks.items()
        }

    def of(self, stored: StoredResponse) -> str:
        """The key of the reading of one response (32 hex digits)."""
        answer = stored.response().text  # without the thought, which no extractor is given
        data = f"{self._bases[stored.task]}\n{stored.request}\n{answer}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(data).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExtraction:
    """One line of extractions.jsonl."""

    key: str
    request: str
    readings: Mapping[str, Reading]
    raw: Mapping[str, tuple[str, ...]]
    refused: bool
    text: str
    error: str | None = None
    time: float | None = None  # when it was stored, in seconds since 1970
    served_model: str | None = None  # of an extractor model: its name as the engine reported it

    @classmethod
    def of(cls, key: str, extraction: Extraction, time: float) -> StoredExtraction:
        """The line of a new extraction."""
        fields = {name: getattr(extraction, name) for name in Extraction.__dataclass_fields__}
        return cls(key=key, **fields, time=time)

    @property
    def failed(self) -> bool:
        """Whether the extractor's call failed. It is repeated when the run is resumed."""
        return any(reading is Reading.ERROR for reading in self.readings.values())

    def extraction(self) -> Extraction:
        """The extraction as the extractor returned it."""
        return Extraction(**{name: getattr(self, name) for name in Extraction.__dataclass_fields__})

    def fields(self) -> dict[str, Any]:
        """The line as plain data for JSON. Rules, which no engine serves, have no field for its name."""
        fields = asdict(self)
        if self.served_model is None:
            del fields["served_model"]
        return fields


_LINE = TypeAdapter(StoredExtraction)


def decode_extraction(line: bytes) -> StoredExtraction:
    """The extraction in a line. Raises ValueError for an invalid line, such as an edited one."""
    return _LINE.validate_json(without_half_pairs(line), strict=True)


def read_extractions(path: Path) -> Iterator[StoredExtraction]:
    """Every extraction of a file, in order. Raises UserError as `read_journal` does."""
    return read_journal(path, decode_extraction)


@dataclass(frozen=True, slots=True)
class CompletedExtractions:
    """What a file of extractions holds already."""

    keys: Ids  # of extractions that succeeded
    failed: Set[str]  # of those that only failed
    served_model: str | None  # the extractor model's name, as its engine reported it first


def completed_extractions(path: Path) -> CompletedExtractions:
    """What is done in a file. Raises UserError as `read_journal` does."""
    failed: set[str] = set()
    served: list[str] = []

    def succeeded() -> Iterator[str]:
        for stored in read_extractions(path):
            if stored.served_model is not None and not served:
                served.append(stored.served_model)
            if stored.failed:
                failed.add(stored.key)
            else:
                failed.discard(stored.key)
                yield stored.key

    keys = Ids(succeeded())
    return CompletedExtractions(keys, failed, served[0] if served else None)


def extractor_served_model(path: Path) -> str | None:
    """The name of the extractor model, as its engine gave it; None where the first extractions do not have one."""
    return next((one.served_model for one in islice(read_extractions(path), NAMED_WITHIN) if one.served_model), None)


def count_extractions(path: Path) -> int:
    """Number of extractions in a file. Invalid lines are skipped."""
    return sum(1 for line in journal_lines(path, decode_extraction) if line.record is not None)


class ExtractionsByKey:
    """The last extraction under each key. Holds only the offsets of lines, and reads a line when it is requested."""

    def __init__(self, path: Path) -> None:
        self._offsets = array("q")

        def noted() -> Iterator[str]:
            for offset, stored in whole_lines(path, decode_extraction):
                self._offsets.append(offset)
                yield stored.key

        self._keys = Ids(noted())
        self._file = path.open("rb") if path.exists() else None

    def get(self, key: str) -> StoredExtraction | None:
        index = self._keys.index(key)
        if index is None or self._file is None:
            return None
        self._file.seek(self._offsets[index])
        return decode_extraction(self._file.readline())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
