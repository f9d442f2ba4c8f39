"""First stage: the audio model answers what it has not answered yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vibe_harness.backends.guards import Budget, watched
from vibe_harness.backends.protocol import Backend
from vibe_harness.errors import EngineError, UserError
from vibe_harness.pipeline.ids import Marks, Planned
from vibe_harness.pipeline.journal import Journal, read_journal
from vibe_harness.records import Outcome, Request

Tick = Callable[[int], None]


@dataclass
class Asked:
    """How the asking went: requests asked, those of them whose call failed, and why the first one did."""

    requests: int = 0
    failed: int = 0
    first_error: str | None = None


def answered(path: Path, planned: Planned) -> Marks:
    """The planned requests that have an outcome other than error: an error is asked again.

    Raises UserError for a record that names another task, prompt or clip than its request: somebody edited it.
    """
    found = Marks(planned)
    for record in read_journal(path):
        place = planned.get(record["request"])
        if place is None:
            continue
        if place != (record["task"], record["variant"], record["clip"]):
            raise UserError(
                f"{path}: the response to {record['request']} does not name the task, prompt and clip that were asked "
                f"({', '.join(place)}): the file was edited; remove that line to have its request asked again"
            )
        if record["outcome"] != Outcome.ERROR:
            found.add(record["request"])
    return found


def final_responses(path: Path, planned: Planned) -> Iterator[dict[str, Any]]:
    """One record for each planned request that was asked: its answer, or its error where it has no answer."""
    settled, seen = answered(path, planned), Marks(planned)
    for record in read_journal(path):
        request = record["request"]
        if (record["outcome"] != Outcome.ERROR or request not in settled) and seen.add(request):
            yield record


def served_model(path: Path) -> str | None:
    """The model that gave the answers stored so far, as it named itself."""
    return next((record["served_model"] for record in read_journal(path) if record["served_model"]), None)


def generate(
    requests: Iterable[Request],
    done: Marks,
    backend: Backend,
    path: Path,
    tick: Tick,
    budget: Budget,
    served: str | None = None,
) -> Asked:
    """Ask what is not among `done`, and store each response as it arrives.

    tick(n) is called with the number of requests done, the earlier ones included. served: the model that gave earlier
    answers which are not in this journal. Raises EngineError where the backend answers what it was not asked, twice, or
    not at all, where another model answers than the one that gave the answers stored so far, and where the budget is
    used up.
    """
    waiting: dict[str, Request] = {}

    def pending() -> Iterator[Request]:
        for request in requests:
            if request.id not in done:
                waiting[request.id] = request
                yield request

    asked = Asked()
    tick(len(done))
    with Journal(path) as journal:
        for response in watched(backend, pending(), budget, served_model(path) or served):
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
                    "audio_tokens": response.audio_tokens,
                    "output_tokens": response.output_tokens,
                    "seconds": response.seconds,
                    "served_model": response.served_model,
                    "error": response.error,
                    "time": time.time(),
                    **({} if response.likelihoods is None else {"likelihoods": dict(response.likelihoods)}),
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
