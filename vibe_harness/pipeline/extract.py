"""Second stage: the extractor reads the responses that hold text and were not read yet."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import Task
from vibe_harness.errors import EngineError
from vibe_harness.extraction.protocol import Extractor
from vibe_harness.pipeline.generate import Tick, final_responses
from vibe_harness.pipeline.ids import Ids, Planned
from vibe_harness.pipeline.journal import Journal, read_journal
from vibe_harness.pipeline.run_folder import TaskRecord
from vibe_harness.records import Extraction, Outcome, Reading, Response

READABLE = (Outcome.OK, Outcome.TRUNCATED)


class ExtractionKeys:
    """Keys of extractions: a digest of everything that can change what is read in a response."""

    def __init__(self, identity: Mapping[str, Any], tasks: Mapping[str, Task | TaskRecord]) -> None:
        """identity: of the extractor."""
        self._bases = {
            name: digest([dict(identity), task.card.extraction.model_dump(mode="json"), task.digest])
            for name, task in tasks.items()
        }

    def key(self, task: str, request: str, text: str) -> str:
        data = f"{self._bases[task]}\n{request}\n{text}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(data).hexdigest()[:32]


def extracted(path: Path) -> Ids:
    """Keys of the readings that a journal holds; one that failed is made again."""
    return Ids(record["key"] for record in read_journal(path) if not reading_failed(record))


def unread(responses: Path, planned: Planned, done: Ids, keys: ExtractionKeys) -> Iterator[tuple[str, str, Response]]:
    """Key, task and response of every planned response that holds text and whose key is not among `done`."""
    for record in final_responses(responses, planned):
        if record["outcome"] in READABLE:
            key = keys.key(record["task"], record["request"], record["text"])
            if key not in done:
                yield key, record["task"], Response(record["request"], Outcome(record["outcome"]), record["text"])


def extract(
    responses: Iterable[tuple[str, str, Response]],
    task_of: Callable[[str, str], Task],
    extractor: Extractor,
    path: Path,
    tick: Tick,
) -> None:
    """Read the responses (see `unread`), and store each reading under its key as it arrives.

    task_of: from a task's name and a request's id to the task as it stands for that request.

    Raises EngineError where the extractor answers what it was not asked, twice, or not at all.
    """
    waiting: dict[str, str] = {}  # request -> key

    def pending() -> Iterator[tuple[Task, Response]]:
        for key, task, response in responses:
            waiting[response.request] = key
            yield task_of(task, response.request), response

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
            tick(1)
    if waiting:
        raise EngineError(f"the extractor left {len(waiting)} responses unread: run the same command again")


def reading_failed(record: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether the extractor's call failed: such a reading is made again."""
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
