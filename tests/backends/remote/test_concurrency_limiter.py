"""How fast requests get on with a server that refuses some of them, on a clock of its own.

The bound: seconds of all calls shared by the slots, and the longest sum of waits that one request was told; for a
server with a limit of its own, what that limit allows.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from tests.virtual_clock import run_virtually
from vibe_harness.backends.remote.call_failed import CallFailed, Refusal
from vibe_harness.backends.remote.concurrency_limiter import ConcurrencyLimiter
from vibe_harness.backends.remote.dispatcher import Patience, Tries

AT_ONCE, LATENCY_S, FAST_S = 32, 0.1, 0.004


@dataclass
class Server:
    """shares: (share of calls, why they are refused or None for another failure, the wait that is announced)."""

    shares: Sequence[tuple[float, Refusal | None, float | None]] = ()
    fails_fast: bool = False
    per_second: float | None = None
    burst: int = 10
    at_once: int | None = None
    pause: tuple[int, float] | None = None  # after so many calls, all are refused for so many seconds
    seed: int = 0
    calls: int = 0
    under_way: int = 0
    limited: int = 0  # calls that a limit of the server refused
    slot_s: float = 0.0
    longest_wait_s: float = 0.0
    _tokens: float = 0.0
    _filled_at: float = 0.0
    _paused_until: float | None = None
    _random: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self._tokens = float(self.burst)
        self._random.seed(self.seed)

    async def call(self) -> None:
        """Raises CallFailed where the call is refused or fails."""
        loop = asyncio.get_running_loop()
        self.calls, self.under_way = self.calls + 1, self.under_way + 1
        took, failure = self._play(loop.time())
        await asyncio.sleep(took)
        self.under_way -= 1
        self.slot_s += took
        if failure:
            raise failure

    def _play(self, now: float) -> tuple[float, CallFailed | None]:
        limited = self._limited(now)
        if limited:
            self.limited += 1
            return FAST_S, limited
        took, drawn = LATENCY_S * self._random.uniform(0.7, 1.3), self._random.random()
        for share, refusal, wait_s in self.shares:
            if drawn < share:
                failure = CallFailed("refused", retry=True, refusal=refusal, wait_s=wait_s)
                return (FAST_S if self.fails_fast else took), failure
            drawn -= share
        return took, None

    def _limited(self, now: float) -> CallFailed | None:
        if self.at_once is not None and self.under_way > self.at_once:
            return CallFailed("crowded", retry=True, refusal=Refusal.OVERLOAD)
        if self.pause is not None:
            if self._paused_until is None and self.calls > self.pause[0]:
                self._paused_until = now + self.pause[1]
            if self._paused_until is not None and now < self._paused_until:
                return CallFailed("quota", retry=True, refusal=Refusal.RATE, wait_s=self._paused_until - now)
        if self.per_second is not None:
            self._tokens = min(float(self.burst), self._tokens + (now - self._filled_at) * self.per_second)
            self._filled_at = now
            if self._tokens < 1:
                return CallFailed("too fast", retry=True, refusal=Refusal.RATE, wait_s=1.0)
            self._tokens -= 1
        return None


async def ask(server: Server, count: int) -> tuple[float, int]:
    """Seconds that `count` requests take, and how many were given up."""
    loop = asyncio.get_running_loop()
    slots, patience = ConcurrencyLimiter(AT_ONCE), Patience(max_retries=6)
    ahead = asyncio.Semaphore(9 * AT_ONCE)
    lost = 0

    async def request() -> None:
        nonlocal lost
        tries, told_s = Tries(loop.time()), 0.0
        while True:
            slot = await slots.take(again=tries.count > 0)
            tries.sent_at = loop.time()
            try:
                await server.call()
            except CallFailed as failure:
                slots.failed(slot, failure)
                wait = patience.wait(tries, failure, loop.time())
                told_s += failure.wait_s or 0.0
                server.longest_wait_s = max(server.longest_wait_s, told_s)
                if wait is None:
                    lost += 1
                    return
                await asyncio.sleep(wait)
            else:
                slots.answered(slot)
                patience.answered(loop.time())
                return

    async def turn() -> None:
        async with ahead:
            await request()

    await asyncio.gather(*(turn() for _ in range(count)))
    return loop.time(), lost


RATE, OVERLOAD = Refusal.RATE, Refusal.OVERLOAD
SHARES = {
    "no faults": [],
    "5 % 503": [(0.05, OVERLOAD, None)],
    "20 % overloaded": [(0.2, OVERLOAD, None)],
    "10 % 429, a second": [(0.1, RATE, 1.0)],
    "30 % 429, two seconds": [(0.3, RATE, 2.0)],
    "15 % broken": [(0.15, None, None)],
    "all kinds": [(0.12, RATE, 1.0), (0.03, OVERLOAD, None), (0.08, None, None)],
}


@pytest.mark.parametrize("fails_fast", [False, True])
@pytest.mark.parametrize("shares", SHARES.values(), ids=list(SHARES))
def test_refusals_that_do_not_go_with_the_load_cost_little(
    shares: list[tuple[float, Refusal | None, float | None]], fails_fast: bool
) -> None:
    for seed in range(2):
        server = Server(shares, fails_fast=fails_fast, seed=seed)
        took, lost = run_virtually(ask(server, 1500))
        assert (server.slot_s / AT_ONCE + server.longest_wait_s) / took >= 0.75
        assert lost <= sum(refusal is None for _, refusal, _ in shares)


@pytest.mark.parametrize(
    ("server", "most_a_second"),
    [
        (Server(per_second=50.0), 50.0),
        (Server(per_second=5.0, burst=5), 5.0),
        (Server(at_once=6), 6 / LATENCY_S),
        (Server(at_once=20), 20 / LATENCY_S),
        (Server(at_once=1), 1 / LATENCY_S),
    ],
    ids=["50 a second", "5 a second", "6 at once", "20 at once", "1 at once"],
)
def test_a_limit_of_the_servers_own_is_found_and_kept(server: Server, most_a_second: float) -> None:
    count = int(40 * most_a_second)
    took, lost = run_virtually(ask(server, count))
    assert count / took >= 0.75 * most_a_second and lost == 0
    assert server.limited <= 0.15 * count + 4 * AT_ONCE


def test_a_quotas_pause_is_waited_for_and_then_all_goes_on() -> None:
    server = Server(pause=(400, 6.0))
    took, lost = run_virtually(ask(server, 2000))
    assert (server.slot_s / AT_ONCE + 6.0) / took >= 0.9 and lost == 0
    assert server.limited <= 2 * AT_ONCE + 6


def test_a_limit_and_refusals_besides_do_not_end_in_a_standstill() -> None:
    for seed in range(3):
        server = Server([(0.1, OVERLOAD, None)], at_once=6, seed=seed)
        took, lost = run_virtually(ask(server, 1000))
        assert 1000 / took >= 0.3 * 6 / LATENCY_S and lost == 0


def test_a_server_that_answers_nobody_is_given_up() -> None:
    server = Server([(1.0, OVERLOAD, None)])
    took, lost = run_virtually(ask(server, 40))
    assert lost == 40 and took < 600 and server.calls <= 40 * 8
