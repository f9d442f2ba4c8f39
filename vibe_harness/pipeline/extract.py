"""Second stage: the extractor reads the responses that hold text and were not read yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from vibe_harness.cards.loading import Task
from vibe_harness.errors import EngineError
from vibe_harness.extraction.protocol import Extractor
from vibe_harness.progress import Tick
from vibe_harness.records import Response
from vibe_harness.store.journal import Journal


def extract(
    responses: Iterable[tuple[str, str, Response]],
    task_of: Callable[[str, str], Task],
    extractor: Extractor,
    path: Path,
    tick: Tick,
) -> None:
    """Read the responses (see `pending_extractions`), and store each reading under its key as it arrives.

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
