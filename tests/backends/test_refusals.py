"""A run goes on beside refusals, keeps the waits that a server asks for, and asks no more of it than it gives."""

from __future__ import annotations

import asyncio

import pytest

from tests.backends.asking import answers, ask
from tests.refusing_server import FAULTS, Mixture, RefusingServer
from vibe_harness.backends.remote.call_failed import CallFailed, Refusal
from vibe_harness.backends.remote.concurrency_limiter import ROW, ConcurrencyLimiter
from vibe_harness.backends.remote.dispatcher import Patience, Tries
from vibe_harness.backends.remote.gemini import GeminiEngine
from vibe_harness.cards.schema import ModelCard
from vibe_harness.records import Outcome


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "of-no-use-to-anybody")


def asked(server: RefusingServer, dialect: str, count: int, **connection):
    if dialect == "openai":
        return answers(server.url, [ask(i) for i in range(count)], **connection)
    settings = {"base_url": server.base, "timeout_s": 60.0, **connection}
    engine = GeminiEngine(ModelCard(model="g", backend="gemini", id="loopback", connection=settings), [])
    try:
        return list(engine.generate(ask(i) for i in range(count)))
    finally:
        engine.close()


@pytest.mark.parametrize("dialect", ["openai", "gemini"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_passing_fault_is_asked_again_after_the_wait_and_then_answered(dialect: str, fault: str) -> None:
    """The fault is played for about a third of all calls, so that some requests meet it twice."""
    with RefusingServer(Mixture({fault: 0.3}, wait_s=0.1, latency_s=0.002)) as server:
        got = asked(server, dialect, 24, max_retries=15)
        seen = server.seen()
    assert {response.outcome for response in got} == {Outcome.OK}
    assert seen["played"][fault] == sum(seen["calls"].values()) - 24 > 2
    assert seen["early"] == 0 and set(seen["answered"].values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["openai", "gemini"])
def test_3000_requests_through_all_faults_are_each_answered_once(dialect: str) -> None:
    shares = dict.fromkeys(FAULTS, 0.02)
    with RefusingServer(Mixture(shares, wait_s=0.2, latency_s=0.01, seed=3)) as server:
        got = asked(server, dialect, 3000, max_retries=10)
        seen = server.seen()
    assert sorted(r.request for r in got) == sorted(f"r{i}" for i in range(3000))
    assert {response.outcome for response in got} == {Outcome.OK}
    assert set(seen["answered"].values()) == {1} and len(seen["answered"]) == 3000
    assert sum(seen["calls"].values()) == 3000 + sum(seen["played"].values())
    assert set(seen["played"]) == set(FAULTS) and seen["early"] == 0


@pytest.mark.parametrize("dialect", ["openai", "gemini"])
def test_a_quotas_pause_is_waited_out_and_loses_nothing(dialect: str) -> None:
    with RefusingServer(Mixture(quota=(40, 1.0), latency_s=0.01)) as server:
        got = asked(server, dialect, 120, max_retries=1, concurrency=8)
        seen = server.seen()
    assert {response.outcome for response in got} == {Outcome.OK}
    assert seen["played"]["quota"] <= ROW + 2 * 8 and seen["early"] == 0


def test_a_server_of_so_many_a_second_is_not_asked_for_much_more() -> None:
    with RefusingServer(Mixture(per_second=50.0, burst=5, wait_s=0.2, latency_s=0.05)) as server:
        got = asked(server, "openai", 150, max_retries=20)
        seen = server.seen()
    assert {response.outcome for response in got} == {Outcome.OK}
    assert seen["played"]["too_fast"] < 100  # 270 a second would be refused if its limit were not learnt


def limited(limiter: ConcurrencyLimiter, share, kind: Refusal, rounds: int) -> list[float]:
    """The limit after each round, in which all slots are used at once. share: of refusals, by the calls of a round."""

    async def play() -> list[float]:
        limits, owed = [], 0.0
        for _ in range(rounds):
            slots = [await limiter.take() for _ in range(max(1, int(limiter.limit)))]
            refused = share(len(slots))
            owed += refused * len(slots)
            for number, slot in enumerate(slots):
                if owed >= 1 and number % 3 == 1:
                    owed -= 1
                    limiter.failed(slot, CallFailed("no", retry=True, refusal=kind))
                else:
                    limiter.answered(slot)
            limits.append(limiter.limit)
        return limits

    return asyncio.run(play())


@pytest.mark.parametrize("kind", list(Refusal))
def test_refusals_that_do_not_go_with_the_load_lower_the_limit_little_and_briefly(kind: Refusal) -> None:
    limits = limited(ConcurrencyLimiter(32), lambda calls: 0.1, kind, 200)
    assert min(limits) >= 20 and sum(limits) / len(limits) > 29


@pytest.mark.parametrize("kind", list(Refusal))
def test_refusals_that_go_with_the_load_lower_the_limit_to_what_is_taken(kind: Refusal) -> None:
    limits = limited(ConcurrencyLimiter(32), lambda calls: max(0.0, 1 - 24 / calls), kind, 300)
    assert sum(limits[100:]) / len(limits[100:]) == pytest.approx(24, abs=2.5)


def test_a_request_is_given_up_only_after_the_longest_announced_wait() -> None:
    patience = Patience(max_retries=1)
    refused = CallFailed("429", retry=True, refusal=Refusal.RATE, wait_s=1.0)
    patience.wait(Tries(0.0, sent_at=0.0), CallFailed("429", retry=True, refusal=Refusal.RATE, wait_s=30.0), 0.0)
    tries = Tries(begun=0.0, sent_at=0.0)
    assert 1 <= (patience.wait(tries, refused, 0.1) or 0) <= 1.2
    tries.sent_at = 1.2
    assert 28.7 <= (patience.wait(tries, refused, 1.3) or 0) <= 28.9  # its retries are used up, the quota is not back
    tries.sent_at = 30.1
    assert patience.wait(tries, refused, 30.2) is None
    assert patience.wait(Tries(0.0), CallFailed("429", retry=True, refusal=Refusal.RATE, wait_s=3600.0), 0.0) is None


def test_the_wait_grows_while_the_server_answers_nobody() -> None:
    patience, tries = Patience(max_retries=6), Tries(begun=0.0)
    broken = CallFailed("HTTP 500", retry=True)
    waits = []
    for at in range(6):
        tries.sent_at = float(at)
        waits.append(patience.wait(tries, broken, at + 0.5))
    tries.sent_at = 6.0
    assert patience.wait(tries, broken, 6.5) is None
    assert all(w is not None and 0.1 * 3**i <= w <= 0.2 * 3**i for i, w in enumerate(waits))
    patience, tries, waits = Patience(max_retries=6), Tries(begun=0.0), []
    for at in range(6):
        tries.sent_at = float(at)
        patience.answered(at + 0.4)
        waits.append(patience.wait(tries, broken, at + 0.5))
    assert all(w is not None and 0.05 * (i + 1) <= w <= 0.1 * (i + 1) for i, w in enumerate(waits))
