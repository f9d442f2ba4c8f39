"""First stage: the audio model answers what it has not answered yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from vibe_harness.backends.guards import Budget, watched
from vibe_harness.backends.protocol import Backend
from vibe_harness.errors import EngineError
from vibe_harness.pipeline.journal import Journal, read_journal
from vibe_harness.pipeline.plan import Plan
from vibe_harness.records import Outcome, Request


def _served(path: Path) -> str | None:
    """The model that gave the answers stored so far, as it named itself."""
    return next((record["served_model"] for record in read_journal(path) if record["served_model"]), None)


Tick = Callable[[int], None]


@dataclass
class Asked:
    """How the asking went: requests asked, those of them whose call failed, and why the first one did."""

    requests: int = 0
    failed: int = 0
    first_error: str | None = None


def answered(path: Path) -> set[str]:
    """Ids of the requests that have an outcome other than error: an error is asked again."""
    return {record["request"] for record in read_journal(path) if record["outcome"] != Outcome.ERROR}


def generate(
    plan: Plan, done: Collection[str], backend: Backend, path: Path, tick: Tick, budget: Budget | None = None
) -> Asked:
    """Ask what is not among `done`, and store each response as it arrives.

    tick(n) is called with the number of requests done, the earlier ones included. Raises EngineError where the
    backend answers what it was not asked, twice, or not at all, where another model answers than the one that gave the
    answers stored so far, and where the budget is used up.
    """
    waiting: dict[str, Request] = {}

    def pending() -> Iterator[Request]:
        for request in plan.requests():
            if request.id not in done:
                waiting[request.id] = request
                yield request

    asked = Asked()
    tick(len(done))
    with Journal(path) as journal:
        for response in watched(backend, pending(), served=_served(path), budget=budget):
            request = waiting.pop(response.request, None)
            if request is None:
                raise EngineError(f"the backend answered request {response.request} twice, or without being asked")
            journal.append(
                {
                    "request": request.id,
                    "task": request.task,
                    "variant": request.variant,
                    "clip": request.clip,
                    "outcome": response.outcome,
                    "text": response.text,
                    "finish_reason": response.finish_reason,
                    "input_tokens": response.input_tokens,
                    "output_tokens": response.output_tokens,
                    "seconds": response.seconds,
                    "served_model": response.served_model,
                    "error": response.error,
                    "time": time.time(),
                }
            )
            asked.requests += 1
            if response.outcome is Outcome.ERROR:
                asked.failed += 1
                asked.first_error = asked.first_error or response.error
            tick(1)
    if waiting:
        raise EngineError(f"the backend left {len(waiting)} requests without an answer: run the same command again")
    return asked
