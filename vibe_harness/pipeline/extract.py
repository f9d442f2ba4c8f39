"""Second stage: the extractor reads the responses that hold text and were not read yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path

from vibe_harness.backends.guards import FailureGuard
from vibe_harness.cards.loading import Task
from vibe_harness.errors import EngineError
from vibe_harness.extraction.protocol import Extractor
from vibe_harness.progress import Tick
from vibe_harness.records import Response
from vibe_harness.store.extractions import ExtractionKeys, StoredExtraction
from vibe_harness.store.journal import Journal
from vibe_harness.store.request_ids import Ids
from vibe_harness.store.responses import StoredResponse

Pending = tuple[str, StoredResponse]  # a response that is to be read, with the key of its extraction


def pending_extractions(
    finals: Iterable[StoredResponse], done: Ids, keys: ExtractionKeys, tick: Tick
) -> Iterator[Pending]:
    """Every final response that holds text and whose key is not among `done`; those that are, are ticked off."""
    for stored in finals:
        if stored.readable:
            key = keys.of(stored)
            if key in done:
                tick(1)
            else:
                yield key, stored


def extract(
    pending: Iterable[Pending],
    task_of: Callable[[StoredResponse], Task],
    extractor: Extractor,
    path: Path,
    tick: Tick,
    failed: Container[str] = (),
) -> None:
    """Read the responses, and store each extraction under its key as it arrives.

    task_of: from a response to its task as it stands for that request. failed: keys of extractions that failed in an
    earlier start. Raises EngineError where the extractor answers what it was not asked, twice, or not at all, and where
    many calls fail one after the other.
    """
    waiting: dict[str, str] = {}  # request -> key
    guard = FailureGuard()

    def responses() -> Iterator[tuple[Task, Response]]:
        for key, stored in pending:
            waiting[stored.request] = key
            yield task_of(stored), stored.response()

    with Journal(path) as journal:
        for extraction in extractor.extract(responses()):
            key = waiting.pop(extraction.request, None)
            if key is None:
                raise EngineError(f"the extractor read response {extraction.request} twice, or without being asked")
            stored = StoredExtraction.of(key, extraction, time.time())
            journal.append(stored.fields())
            tick(1)
            guard.count((stored.error or "no reason given") if stored.failed else None, key in failed)
    if waiting:
        raise EngineError(f"the extractor left {len(waiting)} responses unread: run the same command again")
