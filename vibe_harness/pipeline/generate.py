"""First stage: the model answers the requests that have no response yet."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vibe_harness.backends.guards import Budget, FailureGuard, enforce_limits
from vibe_harness.backends.protocol import Backend
from vibe_harness.errors import EngineError
from vibe_harness.progress import Tick
from vibe_harness.records import Outcome, Request
from vibe_harness.store.journal import Journal
from vibe_harness.store.responses import FinalResponses, StoredResponse


@dataclass
class GenerationCounts:
    """Requests sent, how many of them failed, and the first error."""

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
    """Send the requests that have no answer in `finals` yet, and store each response as it arrives.

    tick: called with the number of finished requests, earlier ones included. served: name of the model that gave
    earlier answers outside this journal. Raises EngineError if the back end returns a response that was not requested,
    or twice, or leaves one out; if another model answers than before; if many calls in a row fail; and if the budget is
    used up.
    """
    waiting: dict[str, Request] = {}

    def pending() -> Iterator[Request]:
        for request in requests:
            if request.id not in finals.answered:
                waiting[request.id] = request
                yield request

    counts, guard = GenerationCounts(), FailureGuard()
    tick(len(finals.answered))
    with Journal(finals.path) as journal:
        for response in enforce_limits(backend, pending(), budget, finals.served_model or served):
            request = waiting.pop(response.request, None)
            if request is None:
                raise EngineError(f"the backend answered request {response.request} twice, or without being asked")
            failed_before = finals.failed(request.id)
            stored = StoredResponse.of(request.key, response, time.time())
            finals.note(stored, journal.append(stored.fields()))
            counts.requests += 1
            if response.outcome is Outcome.ERROR:
                counts.failed += 1
                counts.first_error = counts.first_error or response.error
            tick(1)
            guard.count(response.error if response.outcome is Outcome.ERROR else None, failed_before)
    if waiting:
        raise EngineError(f"the backend left {len(waiting)} requests without an answer: run the same command again")
    return counts
