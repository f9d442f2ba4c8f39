"""Second stage: the extractor reads the responses that hold text and were not read yet."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import Task
from vibe_harness.errors import EngineError
from vibe_harness.extraction.protocol import Extractor
from vibe_harness.pipeline.generate import Tick
from vibe_harness.pipeline.journal import Journal, read_journal
from vibe_harness.records import Extraction, Outcome, Reading, Response

READABLE = (Outcome.OK, Outcome.TRUNCATED)


class ExtractionKeys:
    """Keys of extractions: a digest of everything that can change what is read in a response."""

    def __init__(self, extractor: Extractor, tasks: Mapping[str, Task]) -> None:
        identity = dict(extractor.identity())
        self._bases = {
            name: digest([identity, task.card.extraction.model_dump(mode="json"), task.digest])
            for name, task in tasks.items()
        }

    def key(self, task: str, request: str, text: str) -> str:
        data = f"{self._bases[task]}\n{request}\n{text}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(data).hexdigest()[:32]


def extract(
    responses: Path, path: Path, planned: set[str], extractor: Extractor, tasks: Mapping[str, Task], tick: Tick
) -> int:
    """Read every planned response that holds text and has no reading yet; returns how many were read now.

    Raises EngineError where the extractor answers what it was not asked, twice, or not at all.
    """
    keys = ExtractionKeys(extractor, tasks)
    done = {record["key"] for record in read_journal(path) if not _failed(record)}
    waiting: dict[str, str] = {}  # request -> key

    def pending() -> Iterator[tuple[Task, Response]]:
        for record in read_journal(responses):
            if record["outcome"] not in READABLE or record["request"] not in planned:
                continue
            key = keys.key(record["task"], record["request"], record["text"])
            if key in done:
                tick(1)
                continue
            waiting[record["request"]] = key
            yield tasks[record["task"]], Response(record["request"], Outcome(record["outcome"]), record["text"])

    read = 0
    with Journal(path) as journal:
        for extraction in extractor.extract(pending()):
            key = waiting.pop(extraction.request, None)
            if key is None:
                raise EngineError(f"the extractor read response {extraction.request} twice, or without being asked")
            journal.append(
                {
                    "key": key,
                    "request": extraction.request,
                    "readings": dict(extraction.readings),
                    "raw": {name: list(raw) for name, raw in extraction.raw.items()},
                    "refused": extraction.refused,
                    "text": extraction.text,
                    "error": extraction.error,
                    "time": time.time(),
                }
            )
            read += 1
            tick(1)
    if waiting:
        raise EngineError(f"the extractor left {len(waiting)} responses unread: run the same command again")
    return read


def _failed(record: Mapping[str, Mapping[str, str]]) -> bool:
    return any(reading == Reading.ERROR for reading in record["readings"].values())


def stored_extraction(record: Mapping[str, object]) -> Extraction:
    """The extraction that a journal record holds."""
    readings, raw = record["readings"], record["raw"]
    assert isinstance(readings, dict) and isinstance(raw, dict)
    return Extraction(
        request=str(record["request"]),
        readings={name: Reading(value) for name, value in readings.items()},
        raw={name: tuple(values) for name, values in raw.items()},
        refused=bool(record["refused"]),
        text=str(record["text"]),
        error=None if record["error"] is None else str(record["error"]),
    )
