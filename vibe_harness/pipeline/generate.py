"""First stage: the audio model answers what it has not answered yet."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vibe_harness.backends.guards import Budget, enforce_limits
from vibe_harness.backends.protocol import Backend
from vibe_harness.errors import EngineError
from vibe_harness.progress import Tick
from vibe_harness.records import Outcome, Request
from vibe_harness.store.journal import Journal
from vibe_harness.store.responses import FinalResponses, StoredResponse


@dataclass
class GenerationCounts:
    """How the asking went: requests asked, those of them whose call failed, and why the first one did."""

    requests: int = 0
    failed: int = 0
    first_error: str | None = None


def generate(
    requests: Iterable[Request],
    finals: FinalResponses,
    backend: Backend,
    tick: Tick,
    budget: Budget,
    served: str | None = None,
) -> GenerationCounts:
    """Ask what has no answer among `finals` yet, and store each response as it arrives.

    tick(n) is called with the number of requests done, the earlier ones included. served: the model that gave earlier
    answers which are not in this journal. Raises EngineError where the backend answers what it was not asked, twice, or
    not at all, where another model answers than the one that gave the answers stored so far, and where the budget is
    used up.
    """
    waiting: dict[str, Request] = {}

    def pending() -> Iterator[Request]:
        for request in requests:
            if request.id not in finals.answered:
                waiting[request.id] = request
                yield request

    asked = GenerationCounts()
    tick(len(finals.answered))
    with Journal(finals.path) as journal:
        for response in enforce_limits(backend, pending(), budget, finals.served_model or served):
            request = waiting.pop(response.request, None)
            if request is None:
                raise EngineError(f"the backend answered request {response.request} twice, or without being asked")
            stored = StoredResponse.of(request.key, response, time.time())
            finals.note(stored, journal.append(stored.fields()))
            asked.requests += 1
            if response.outcome is Outcome.ERROR:
                asked.failed += 1
                asked.first_error = asked.first_error or response.error
            tick(1)
    if waiting:
        raise EngineError(f"the backend left {len(waiting)} requests without an answer: run the same command again")
    return asked
