"""extractions.jsonl: what an extractor read in each response, under a key that names the exact text."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import Task
from vibe_harness.records import Extraction, Outcome, Reading, Response
from vibe_harness.store.journal import read_journal
from vibe_harness.store.request_ids import Ids, Planned
from vibe_harness.store.responses import READABLE, final_responses
from vibe_harness.store.run_folder import TaskRecord


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


def pending_extractions(
    responses: Path, planned: Planned, done: Ids, keys: ExtractionKeys
) -> Iterator[tuple[str, str, Response]]:
    """Key, task and response of every planned response that holds text and whose key is not among `done`."""
    for record in final_responses(responses, planned):
        if record["outcome"] in READABLE:
            key = keys.key(record["task"], record["request"], record["text"])
            if key not in done:
                yield key, record["task"], Response(record["request"], Outcome(record["outcome"]), record["text"])


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
