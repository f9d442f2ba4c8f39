"""The first call to a server goes alone, whatever becomes of it."""

import asyncio

import pytest

from vibe_harness.backends.remote import first_call
from vibe_harness.backends.remote.call_failed import CallFailed
from vibe_harness.backends.remote.first_call import FirstCall
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Response

DONE = Response("r", Outcome.OK)


class Calls:
    """Calls to a stand-in, which counts those begun."""

    def __init__(self, first: Exception | None = None) -> None:
        self.begun = 0
        self.go_on = asyncio.Event()
        self._first = first

    async def call(self) -> Response:
        self.begun += 1
        if self.begun == 1:
            await self.go_on.wait()
            if self._first is not None:
                raise self._first
        return DONE


def play(first: Exception | None, *, ends: bool = True) -> tuple[int, int, list[object]]:
    """Calls begun while the first was under way, calls begun in all, and what five calls came to."""

    async def played() -> tuple[int, int, list[object]]:
        calls, gate = Calls(first), FirstCall()
        tasks = [asyncio.create_task(gate.before_others(calls.call)) for _ in range(5)]
        await asyncio.sleep(0.02)
        alone = calls.begun
        if ends:
            calls.go_on.set()
        done, others = await asyncio.wait(tasks, timeout=0.3)
        for task in others:
            task.cancel()
        return alone, calls.begun, [task.exception() or task.result() for task in tasks if task in done]

    return asyncio.run(played())


def test_the_others_go_once_the_first_is_answered_or_has_failed() -> None:
    assert play(None) == (1, 5, [DONE] * 5)
    failure = CallFailed("busy", retry=True)
    assert play(failure) == (1, 5, [failure, *[DONE] * 4])


def test_none_goes_where_the_first_shows_that_none_can_succeed() -> None:
    error = EngineError("another model")
    assert play(error) == (1, 1, [error] * 5)


def test_a_first_call_that_hangs_does_not_hold_up_the_others_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_call, "LONGEST_ALONE_S", 0.05)
    assert play(None, ends=False) == (1, 5, [DONE] * 4)
