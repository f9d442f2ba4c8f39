"""Calls that fail one after the other end a run, unless they are known to fail from an earlier start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from vibe_harness.backends.guards import HOPELESS_AFTER, Budget, FailureGuard
from vibe_harness.errors import EngineError
from vibe_harness.pipeline.generate import GenerationCounts, generate
from vibe_harness.records import Generation, Outcome, Request, Response
from vibe_harness.store.request_ids import RequestTable
from vibe_harness.store.responses import FinalResponses

REQUESTS = [Request(f"{number:032x}", "story", "plain", f"c{number}", "Hello.", Generation(8)) for number in range(200)]
FAILING = {request.id for request in REQUESTS[::3]}  # 67: more than may fail in a row


class Answering:
    """A model that cannot answer some requests, ever."""

    def __init__(self, failing: set[str]) -> None:
        self.failing = failing
        self.asked = 0

    def describe(self) -> dict[str, str]:
        return {}

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for request in requests:
            self.asked += 1
            bad = request.id in self.failing
            yield Response(request.id, Outcome.ERROR if bad else Outcome.OK, error="too short" if bad else None)

    def close(self) -> None:
        pass


def asked(path: Path, failing: set[str]) -> GenerationCounts:
    finals = FinalResponses(path, RequestTable((request.id, request.key) for request in REQUESTS))
    return generate(REQUESTS, finals, Answering(failing), lambda steps: None, Budget())


def test_what_failed_for_good_ends_the_second_start_as_it_ended_the_first(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    assert (asked(path, FAILING).requests, asked(path, FAILING).requests) == (200, 67)
    assert replace(asked(path, set()), first_error=None) == GenerationCounts(67, 0)
    assert asked(path, FAILING) == GenerationCounts()


def test_a_server_gone_for_good_ends_a_start_also_where_some_had_failed_before(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    everything = {request.id for request in REQUESTS}
    with pytest.raises(EngineError, match=f"{HOPELESS_AFTER} requests in a row failed, the last with: too short"):
        asked(path, everything)
    with pytest.raises(EngineError, match="in a row failed"):  # 50 of these failed before, the next 50 did not
        asked(path, everything)
    assert sum(1 for _ in path.open(encoding="utf-8")) == HOPELESS_AFTER + 2 * HOPELESS_AFTER


def test_one_answer_between_them_starts_the_count_anew() -> None:
    guard = FailureGuard()
    for number in range(10 * HOPELESS_AFTER):
        guard.count(None if number % HOPELESS_AFTER == 0 else "broken")
    guard = FailureGuard()
    for _ in range(HOPELESS_AFTER - 1):
        guard.count("broken")
        guard.count("broken", failed_before=True)
    with pytest.raises(EngineError, match="the last with: broken"):
        guard.count("broken")
