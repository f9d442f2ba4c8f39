"""Second stage: the extractor reads the attributes from the responses that have no extraction yet."""

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

Pending = tuple[str, StoredResponse]  # key of an extraction, and the response to read


def pending_extractions(
    finals: Iterable[StoredResponse], done: Ids, keys: ExtractionKeys, tick: Tick
) -> Iterator[Pending]:
    """Yield every final response with text whose key is not in `done`. Those in `done` are counted with `tick`."""
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
    served: str | None = None,
) -> None:
    """Extract the attributes of the responses, and store each extraction as it arrives.

    task_of: returns the task of a response, bound to its request. failed: keys of extractions that failed in an earlier
    start. served: name of the model that made the extractions stored so far. Raises EngineError if the extractor
    returns an extraction that was not requested, or twice, or omits one, if another model answers than before, and if
    many calls in a row fail.
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
            served = served or extraction.served_model
            if extraction.served_model not in (None, served):
                raise EngineError(
                    f"the extractor's server gave its model the name '{served}' before and gives it the name "
                    f"'{extraction.served_model}' now: readings of two models are never put together. --fresh starts a "
                    "new run beside this one"
                )
            stored = StoredExtraction.of(key, extraction, time.time())
            journal.append(stored.fields())
            tick(1)
            guard.count((stored.error or "no reason given") if stored.failed else None, key in failed)
    if waiting:
        raise EngineError(f"the extractor left {len(waiting)} responses unread: run the same command again")
