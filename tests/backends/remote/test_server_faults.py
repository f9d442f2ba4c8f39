"""The `openai` backend against a server that misbehaves as scripted, and when it is stopped."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.backends.asking import answers, ask, model_card, tone
from tests.loopback import AT_ONCE, FINAL, Loopback, Script
from tests.raw_server import raw_server, whole
from tests.support import PATIENCE_S, ROOT, hears_interrupts, wait_until
from vibe_harness.backends.remote import dispatcher as dispatch
from vibe_harness.backends.remote.api_keys import without_key
from vibe_harness.backends.remote.chat_reply import read_reply
from vibe_harness.backends.remote.openai_server import OpenAIEngine
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Request, Response


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "FIRST_WAIT_S", 0.02)


EXPECTED = {
    "bad_request": Outcome.ERROR, "no_choices": Outcome.ERROR, "odd_finish": Outcome.ERROR, "filtered": Outcome.BLOCKED,
    "refused": Outcome.REFUSED, "empty": Outcome.EMPTY, "blank": Outcome.EMPTY, "length": Outcome.TRUNCATED,
    "length_empty": Outcome.EMPTY, "well": Outcome.OK,
}  # fmt: skip


@pytest.mark.slow
def test_2000_requests_each_end_in_one_outcome_as_played() -> None:
    endings = [name for name in FINAL if name != "prompt_filtered"]  # that one is Gemini's
    rates = dict.fromkeys(endings, 0.02) | dict.fromkeys(AT_ONCE, 0.01)
    waves = [tone(pitch) for pitch in (110, 220, 440, 880)]
    with Loopback(rates=rates, seed=5) as server:
        got = answers(server.url, (ask(i, waves[i % 4]) for i in range(2000)), timeout_s=300.0)
        seen = server.seen()
    assert sorted(r.request for r in got) == sorted(f"r{i}" for i in range(2000))
    played = seen["played"]
    expected: Counter[Outcome] = Counter()
    for ending, count in played.items():
        if ending not in AT_ONCE:
            expected[EXPECTED[ending]] += count
    assert Counter(r.outcome for r in got) == expected
    assert set(played) == {*endings, *AT_ONCE, "well"}
    # Nothing is asked twice without need: once each, and once more for each transient fault that was played.
    transient = sum(count for ending, count in played.items() if ending in AT_ONCE)
    assert len(seen["asked"]) == 2000 and sum(seen["asked"].values()) == 2000 + transient
    assert seen["most"] <= 32
    for response in got:
        assert (response.error is not None) == (response.outcome is Outcome.ERROR)


def test_a_call_without_an_answer_is_given_up_and_asked_again() -> None:
    with Loopback(rates={"timeout": 1.0}) as server:
        got = answers(server.url, [ask(i) for i in range(3)], timeout_s=1.0, max_retries=20)
        seen = server.seen()
    assert [r.outcome for r in got] == [Outcome.OK] * 3
    assert seen["played"]["timeout"] == 3 and min(seen["asked"].values()) >= 2  # more where the machine is that slow


def test_a_fault_that_stays_is_an_error_after_the_last_retry() -> None:
    rates = dict.fromkeys(AT_ONCE, 0.02)
    with Loopback(rates=rates, times=-1, seed=1) as server:
        got = answers(server.url, [ask(i) for i in range(300)], max_retries=2)
        seen = server.seen()
    errors = [r for r in got if r.outcome is Outcome.ERROR]
    refused = [r for r in errors if re.search("429|503|overloaded", str(r.error))]
    tries = {r.request: int(str(r.error).rpartition("(asked ")[2].removesuffix(" times)")) for r in errors}
    assert {tries[r.request] for r in errors if r not in refused} == {3}
    assert len(refused) > 5 and all(3 <= tries[r.request] <= 7 for r in refused)
    assert max(tries[r.request] for r in refused) > 3  # what is refused while others are answered is asked longer
    assert sum(tries.values()) == sum(seen["played"][name] for name in rates)


@pytest.mark.parametrize(
    "reply",
    [None, [], "text", {}, {"choices": None}, {"choices": [None]}, {"choices": [{"message": None}]},
     {"choices": [{"message": {"content": ["part"]}, "finish_reason": "stop"}]},
     {"choices": [{"message": {"content": 7}, "finish_reason": "stop"}]},
     {"choices": [{"message": {"content": [{"type": "image_url"}]}, "finish_reason": "stop"}]},
     {"choices": [{"message": {"content": "x"}, "finish_reason": ["stop"]}]},
     {"choices": [{"message": {"content": "x"}, "finish_reason": {"stop": 1}}]},
     {"choices": [{"message": {"content": "x"}, "finish_reason": 1}]},
     {"choices": [{"message": {"content": "x"}, "finish_reason": "tool_calls"}]},
     {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}] * 2}],
)  # fmt: skip
def test_a_malformed_reply_is_an_error(reply: Any) -> None:
    assert read_reply("r", reply, 0.1).outcome is Outcome.ERROR


BODIES = ['{"id": ' + "[" * 100_000, '{"usage": ' + "9" * 5_000 + "}", "\xff", "", '{"choices": [{"mess']


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_body_that_is_no_json_is_asked_again_and_then_an_error(body: str) -> None:
    with raw_server(lambda: whole(body.encode("latin-1"))) as server:
        [response] = answers(f"{server.url}/v1", [ask(1)], max_retries=1)
        questions = [request for request in server.requests if request.startswith(b"POST ")]
    assert response.outcome is Outcome.ERROR and len(questions) == 2
    assert str(response.error).startswith("the server's reply is not JSON")
    assert str(response.error).endswith("(asked 2 times)")


def test_no_clip_follows_a_server_that_sends_it_elsewhere() -> None:
    with Loopback() as other, Loopback(moved=f"{other.url}/chat/completions") as server:
        with pytest.raises(EngineError, match=f"sends on to {other.url}/chat/completions: name that address"):
            answers(server.url, [ask(1, tone(200))])
        assert not other.seen()["heard"]


ECHOES = [
    {"error": {"message": "KEY"}},
    {"error": {"message": "x" * 290 + "KEY"}},
    ["x" * 90, "KEY"],
    {"choices": [{"message": {"content": "I see KEY"}, "finish_reason": "stop"}], "model": "m KEY"},
    {"choices": [{"message": {"content": "a"}, "finish_reason": "odd KEY"}]},
]


@pytest.mark.parametrize("reply", ECHOES, ids=range(len(ECHOES)))
def test_a_key_that_the_server_says_again_is_in_no_response(reply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-4f9a1c77deadbeef"
    monkeypatch.setenv("THEIR_KEY", key)
    with Loopback(body=json.dumps(reply).replace("KEY", key)) as server:
        try:
            [said] = map(str, answers(server.url, [ask(1)], api_key_env="THEIR_KEY"))
        except EngineError as error:  # the model's name in it is another
            said = str(error)
    assert key[:6] not in said
    assert "[key]" in said or "error=" in said


def test_a_short_key_leaves_answers_as_they_are() -> None:
    said = Response("r", Outcome.OK, text="EMPTY hands", served_model="EMPTY")
    assert without_key(said, "EMPTY") == Response("r", Outcome.OK, text="EMPTY hands", served_model="[key]")


@pytest.mark.slow
def test_requests_are_drawn_as_there_is_room_and_memory_stays_flat() -> None:
    drawn = 0

    def source() -> Iterator[Request]:
        nonlocal drawn
        for i in range(1000):
            drawn += 1
            yield ask(i)

    with Loopback() as server:
        engine = OpenAIEngine(model_card(server.url, concurrency=8), [])
        sizes = []
        tracemalloc.start()
        for done, _ in enumerate(engine.generate(source()), 1):
            assert drawn - done <= 10
            if done in (300, 950):
                wait_until(lambda: not asyncio.all_tasks(engine._dispatcher.loop))  # what calls under way hold varies
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        engine.close()
    assert done == 1000 and sizes[1] - sizes[0] < 300_000  # one kept request would be 650 kB and more


def test_stopping_early_cancels_what_is_under_way() -> None:
    with Loopback(hold_after=0) as server:
        engine = OpenAIEngine(model_card(server.url, timeout_s=300.0), [])
        stream = engine.generate([ask(i) for i in range(100)])
        with pytest.raises(RuntimeError, match="enough"):
            raise_when(stream, lambda: server.seen()["held"] == 32)
        stream.close()
        engine.close()
        wait_until(lambda: server.seen()["held"] == 0)


def raise_when(stream: Iterator[Response], under_way: Callable[[], bool]) -> None:
    """Wait for the next answer, and stop as a person's Ctrl-C does, once so much is under way."""

    def stop(*_: object) -> None:
        raise RuntimeError("enough")

    def send() -> None:
        wait_until(under_way)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, stop)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        next(stream)
    finally:
        thread.join()
        signal.signal(signal.SIGALRM, before)


def test_ctrl_c_ends_the_process_promptly() -> None:
    code = (
        "import sys, pathlib; sys.path.insert(0, '.')\n"
        "from tests.backends.asking import OpenAIEngine, model_card, ask\n"
        "e = OpenAIEngine(model_card(sys.argv[1], timeout_s=300.0), [])\n"
        "list(e.generate(ask(i) for i in range(100)))"
    )
    with Loopback(hold_after=0) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", code, server.url],
            stderr=subprocess.PIPE,
            cwd=ROOT,
            preexec_fn=hears_interrupts,
        )
        wait_until(lambda: process.poll() is not None or server.seen()["held"] == 32)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)  # while the server keeps what it was asked for ever
        assert process.returncode != 0 and b"KeyboardInterrupt" in error


def test_a_crowded_server_gets_fewer_requests_at_once() -> None:
    with Loopback(at_once=6, latency_s=0.02) as server:
        got = answers(server.url, (ask(i) for i in range(400)), max_retries=12)
        seen = server.seen()
    assert {r.outcome for r in got} == {Outcome.OK}
    # Without adapting, four fifths of all calls would come back; how many do hangs on the machine, and is under half.
    assert seen["played"]["crowded"] < seen["played"]["well"] == 400


def test_retry_after_is_waited_out() -> None:
    with Loopback(rates={"busy": 1.0}, retry_after="0.6") as server:
        start = time.monotonic()
        assert [r.outcome for r in answers(server.url, [ask(1)])] == [Outcome.OK]
        assert time.monotonic() - start > 0.6


def test_the_stand_in_draws_endings_at_their_rates() -> None:
    script = Script(rates={"busy": 0.3, "empty": 0.1}, seed=2)
    drawn = Counter(script.ending(str(i)) for i in range(5000))
    assert abs(drawn["busy"] / 5000 - 0.3) < 0.03 and abs(drawn["empty"] / 5000 - 0.1) < 0.02
