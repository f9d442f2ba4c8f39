"""The `openai` backend against a server that misbehaves as scripted."""

from __future__ import annotations

import base64
import gc
import hashlib
import io
import json
import logging
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import soundfile

from tests.loopback import FINAL, TRANSIENT, Loopback, Script
from tests.support import hears_interrupts
from vibe_harness.backends import dispatch
from vibe_harness.backends.chat_reply import read_reply
from vibe_harness.backends.dispatch import Slots, asked_wait
from vibe_harness.backends.openai_server import OpenAIEngine
from vibe_harness.backends.protocol import check_options
from vibe_harness.cards.schema import Layout, ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Generation, Outcome, Request, Response, Waveform

ROOT = Path(__file__).parents[2]
RATE = 16_000


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "FIRST_WAIT_S", 0.02)


def tone(pitch: float, seconds: float = 0.1) -> Waveform:
    """A sine, quantised to 16 bits so that nothing gets lost on the way."""
    wave = 0.3 * np.sin(2 * np.pi * pitch * np.arange(int(seconds * RATE)) / RATE)
    return Waveform((np.round(wave * 32768) / 32768).astype(np.float32), RATE)


def ask(number: int, wave: Waveform | None = None, **more: Any) -> Request:
    audio = (lambda: wave) if wave is not None else None
    return Request(f"r{number}", "story", "plain", "c", f"question {number}", Generation(64, seed=3), audio, **more)


def model_card(url: str, args: dict[str, Any] | None = None, **connection: Any) -> ModelCard:
    return ModelCard(
        model="m", backend="openai", id="loopback", layout=Layout(system="Be brief."), args=args or {},
        connection={"base_url": url, "timeout_s": 60.0, **connection},
    )  # fmt: skip


def answers(url: str, requests: Iterator[Request] | list[Request], **connection: Any) -> list[Response]:
    engine = OpenAIEngine(model_card(url, **connection), [])
    try:
        return list(engine.generate(requests))
    finally:
        engine.close()


def test_the_clip_arrives_unspoiled_and_ahead_of_the_words() -> None:
    waves = [tone(120), tone(1000), tone(220, 0.35)]
    with Loopback() as server:
        got = {r.request: r for r in answers(server.url, [ask(i, wave) for i, wave in enumerate(waves)])}
        heard = server.seen()["heard"]
    for wave in waves:
        pcm = (wave.samples * 32768).astype(np.int16).tobytes()
        clip = heard[hashlib.sha256(pcm).hexdigest()]
        assert (clip["rate"], clip["frames"]) == (RATE, len(wave.samples))
    assert got["r0"].text.startswith("A low voice") and got["r1"].text.startswith("A high voice")
    for r in got.values():
        assert (r.outcome, r.finish_reason, r.served_model, r.error) == (Outcome.OK, "stop", "loopback", None)
    assert all(r.seconds and r.input_tokens == 20 and r.output_tokens for r in got.values())


def test_settings_and_schema_reach_the_server() -> None:
    schema = {
        "type": "object", "additionalProperties": False, "required": ["vibe", "activity"],
        "properties": {
            "vibe": {"enum": ["good", "bad"]},
            "activity": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
        },
    }  # fmt: skip
    with Loopback() as server:
        engine = OpenAIEngine(model_card(server.url, {"top_p": 0.9, "extra_body": {"top_k": 5}}), [])
        [response] = engine.generate([ask(1, schema=schema)])
        engine.close()
        sent = server.seen()["last"]
    jsonschema.validate(json.loads(response.text), schema)
    form = sent.pop("response_format")
    assert form == {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    assert sent == {"model": "loopback", "max_tokens": 64, "temperature": 0.0, "seed": 3, "top_p": 0.9, "top_k": 5}


def test_settings_that_a_server_does_not_take_are_left_out_and_named() -> None:
    args = {"omit": ["temperature", "seed"], "limit_field": "max_completion_tokens", "structured_output": "none"}
    with Loopback() as server:
        engine = OpenAIEngine(model_card(server.url, args), [])
        list(engine.generate([ask(1, schema={"type": "object"})]))
        assert engine.describe()["not_sent"] == "temperature, seed"
        engine.close()
        assert server.seen()["last"] == {"model": "loopback", "max_completion_tokens": 64}


EXPECTED = {
    "bad_request": Outcome.ERROR, "bad_json": Outcome.ERROR, "not_json": Outcome.ERROR, "no_choices": Outcome.ERROR,
    "error_in_200": Outcome.ERROR, "odd_finish": Outcome.ERROR, "filtered": Outcome.BLOCKED,
    "refused": Outcome.REFUSED, "empty": Outcome.EMPTY, "blank": Outcome.EMPTY, "length": Outcome.TRUNCATED,
    "length_empty": Outcome.EMPTY, "well": Outcome.OK,
}  # fmt: skip


@pytest.mark.slow
def test_2000_requests_each_end_in_one_outcome_as_played() -> None:
    endings = [name for name in FINAL if name != "prompt_filtered"]  # that one is Gemini's
    rates = dict.fromkeys(endings, 0.02) | dict.fromkeys(TRANSIENT, 0.01) | {"timeout": 0.003}
    waves = [tone(pitch) for pitch in (110, 220, 440, 880)]
    with Loopback(rates=rates, seed=5, hang_s=30.0) as server:
        got = answers(server.url, (ask(i, waves[i % 4]) for i in range(2000)), timeout_s=10.0)
        seen = server.seen()
    assert sorted(r.request for r in got) == sorted(f"r{i}" for i in range(2000))
    played = seen["played"]
    expected: Counter[Outcome] = Counter()
    for ending, count in played.items():
        if ending not in TRANSIENT:
            expected[EXPECTED[ending]] += count
    assert Counter(r.outcome for r in got) == expected
    assert set(played) == {*endings, *TRANSIENT, "well"}
    # Nothing is asked twice without need: once each, and once more for each transient fault that was played.
    transient = sum(count for ending, count in played.items() if ending in TRANSIENT)
    assert len(seen["asked"]) == 2000 and sum(seen["asked"].values()) == 2000 + transient
    assert seen["most"] <= 32
    for response in got:
        assert (response.error is not None) == (response.outcome is Outcome.ERROR)


def test_a_fault_that_stays_is_an_error_after_the_last_retry() -> None:
    rates = {name: 0.02 for name in TRANSIENT if name != "timeout"}
    with Loopback(rates=rates, times=-1, seed=1) as server:
        got = answers(server.url, [ask(i) for i in range(300)], max_retries=2)
        seen = server.seen()
    bad = sum(seen["played"][name] for name in rates)
    errors = [r for r in got if r.outcome is Outcome.ERROR]
    assert len(errors) == bad / 3 > 10 and all("asked 3 times" in str(r.error) for r in errors)
    assert max(seen["asked"].values()) == 3


def test_a_server_gone_for_good_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "HOPELESS_AFTER", 10)
    with Loopback(latency_s=0.01) as server:
        engine = OpenAIEngine(model_card(server.url, concurrency=4, max_retries=1), [])
        got = 0
        with pytest.raises(EngineError, match="10 requests in a row failed"):
            for response in engine.generate(ask(i) for i in range(100_000)):
                got += response.outcome is Outcome.OK
                if got == 20:
                    server.stop()
        engine.close()
    assert 20 <= got < 40


def test_a_server_that_hears_no_audio_at_all_stops_the_run() -> None:
    with Loopback(rates={"bad_request": 1.0}) as server, pytest.raises(EngineError, match="this clip is too short"):
        answers(server.url, (ask(i, tone(200)) for i in range(1000)))


@pytest.mark.parametrize("models", [["loopback"], None])
def test_a_server_without_a_model_list_works(models: list[str] | None) -> None:
    with Loopback(models=models) as server:
        assert [r.outcome for r in answers(server.url, [ask(1)])] == [Outcome.OK]


def test_no_server() -> None:
    with pytest.raises(EngineError, match=r"^no server answers at http://127.0.0.1:9/v1 .*base_url=") as caught:
        OpenAIEngine(model_card("http://127.0.0.1:9/v1"), [])
    assert "\n" not in str(caught.value) and caught.value.exit_code == 3


def test_a_model_that_the_server_does_not_serve() -> None:
    with Loopback(models=["qwen", "voxtral"]) as server, pytest.raises(EngineError, match=r"It serves: qwen, voxtral"):
        answers(server.url, [ask(1)])


def test_keys(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "sk-very-secret-0123456789"
    with Loopback(key=secret) as server:
        with pytest.raises(EngineError, match=r"refuses the key .*api_key_env"):
            answers(server.url, [ask(1)])
        with pytest.raises(UserError, match=r"set the environment variable VIBE_TEST_KEY"):
            answers(server.url, [ask(1)], api_key_env="VIBE_TEST_KEY")
        monkeypatch.setenv("VIBE_TEST_KEY", secret + "-wrong")
        with pytest.raises(EngineError, match="check the key in VIBE_TEST_KEY") as caught:
            answers(server.url, [ask(1)], api_key_env="VIBE_TEST_KEY")
        assert secret not in str(caught.value) and "[key]" in str(caught.value)
        monkeypatch.setenv("VIBE_TEST_KEY", secret)
        engine = OpenAIEngine(model_card(server.url, api_key_env="VIBE_TEST_KEY"), [])
        assert [r.outcome for r in engine.generate([ask(1)])] == [Outcome.OK]
        assert secret not in str(engine.describe())
        engine.close()
    assert secret not in caplog.text


@pytest.mark.parametrize(
    ("args", "connection", "message"),
    [
        ({"temprature": 1}, {}, r"args.temprature: the backend 'openai' takes no such argument"),
        ({"extra_body": {"guided_json": {}}}, {}, r"'guided_json' is silently ignored by vLLM"),
        ({"extra_body": {"temperature": 1}}, {}, r"'temperature' is set by the harness"),
        ({}, {"base_url": "localhost:8000"}, r"connection.base_url: write it as"),
        ({}, {"base_url": "http://user:secret@host/v1"}, r"connection.base_url: no user, password"),
        ({}, {"api_key_env": "sk-12345"}, r"connection.api_key_env: .*match pattern"),
    ],
)
def test_wrong_options(args: dict[str, Any], connection: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        check_options(ModelCard(model="m", backend="openai", id="x", args=args, connection=connection))
    assert "secret" not in str(caught.value) and "12345" not in str(caught.value)


def test_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(UserError, match=r"pip install 'vibe-harness\[openai\]'"):
        OpenAIEngine(model_card("http://localhost:1/v1"), [])


@pytest.mark.parametrize(
    ("wave", "message"),
    [
        (Waveform(np.zeros(800, np.float32), 8000), "came at 8000 Hz, but 'm' takes 16000 Hz"),
        (Waveform(np.array([np.nan], np.float32), RATE), "not a mono clip of finite samples"),
        (Waveform(np.zeros(0, np.float32), RATE), "not a mono clip"),
        (Waveform(np.zeros((800, 2), np.float32), RATE), "not a mono clip"),
    ],
)
def test_a_clip_that_would_be_misheard_stops_the_run(wave: Waveform, message: str) -> None:
    with Loopback() as server, pytest.raises(EngineError, match=message):
        answers(server.url, [ask(1, wave)])


def test_long_clips_are_cut_only_where_the_card_says_so() -> None:
    with Loopback() as server:
        for long_clips in ("refuse", "truncate"):
            card = model_card(server.url).model_copy(update={"max_seconds": 0.05, "long_clips": long_clips})
            engine = OpenAIEngine(card, [])
            if long_clips == "refuse":
                with pytest.raises(EngineError, match=r"lasts 0.1 s, but 'm' takes 0.05 s"):
                    list(engine.generate([ask(1, tone(200))]))
            else:
                assert len(list(engine.generate([ask(1, tone(200))]))) == 1
            engine.close()
        assert [clip["frames"] for clip in server.seen()["heard"].values()] == [800]


def test_a_long_clip_comes_in_pieces_in_one_request_in_order() -> None:
    long = tone(200, 1.2)
    with Loopback() as server:
        card = model_card(server.url).model_copy(update={"max_seconds": 0.5, "long_clips": "split"})
        check_options(card)
        engine = OpenAIEngine(card, [])
        content = engine._prepare(ask(1, long))["messages"][-1]["content"]
        engine.close()
    assert [part["type"] for part in content] == ["input_audio"] * 3 + ["text"]
    pieces = [soundfile.read(io.BytesIO(base64.b64decode(part["input_audio"]["data"])))[0] for part in content[:-1]]
    np.testing.assert_array_equal(np.concatenate(pieces).astype(np.float32), long.samples)
    assert all(len(piece) <= 0.5 * RATE for piece in pieces)


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
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        engine.close()
    assert done == 1000 and sizes[1] - sizes[0] < 300_000  # one kept request would be 650 kB and more


def test_stopping_early_cancels_what_is_under_way() -> None:
    with Loopback(latency_s=300.0) as server:
        engine = OpenAIEngine(model_card(server.url, timeout_s=300.0), [])
        start = time.monotonic()
        stream = engine.generate([ask(i) for i in range(100)])
        with pytest.raises(RuntimeError, match="enough"):
            raise_after(stream)
        stream.close()
        engine.close()
        assert time.monotonic() - start < 60


def raise_after(stream: Iterator[Response]) -> None:
    def stop(*_: object) -> None:
        raise RuntimeError("enough")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    next(stream)


def test_ctrl_c_ends_the_process_promptly() -> None:
    code = (
        "import sys, pathlib; sys.path.insert(0, '.')\n"
        "from tests.backends.test_openai_server import OpenAIEngine, model_card, ask\n"
        "e = OpenAIEngine(model_card(sys.argv[1], timeout_s=300.0), [])\n"
        "list(e.generate(ask(i) for i in range(100)))"
    )
    with Loopback(latency_s=300.0) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", code, server.url],
            stderr=subprocess.PIPE,
            cwd=ROOT,
            preexec_fn=hears_interrupts,
        )
        while not server.seen()["most"]:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        assert process.returncode != 0 and b"KeyboardInterrupt" in error


def test_a_crowded_server_gets_fewer_requests_at_once() -> None:
    with Loopback(at_once=6, latency_s=0.02) as server:
        got = answers(server.url, (ask(i) for i in range(400)), max_retries=12)
        seen = server.seen()
    assert {r.outcome for r in got} == {Outcome.OK}
    assert seen["played"]["crowded"] < 120  # without adapting, four fifths of all calls would come back


def test_slots_halve_once_a_round_and_grow_by_one_a_round() -> None:
    slots = Slots(16)
    slots.crowded(sent_at=1.0, now=2.0)
    slots.crowded(sent_at=1.5, now=2.1)  # was under way at the cut
    assert slots.limit == 8
    for _ in range(8):
        slots.answered()
    assert 8.9 < slots.limit <= 9
    for _ in range(1000):
        slots.answered()
    assert slots.limit == 16


def test_retry_after_is_seconds_or_a_date() -> None:
    now = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
    assert asked_wait({}, now) is None and asked_wait({"retry-after": "soon"}, now) is None
    assert asked_wait({"retry-after": "1.5"}, now) == 1.5 and asked_wait({"retry-after": "-3"}, now) == 0
    assert asked_wait({"retry-after": "Mon, 30 Nov 2026 12:01:00 GMT"}, now) == 60
    assert asked_wait({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, now) == 0


def test_retry_after_is_waited_out() -> None:
    with Loopback(rates={"busy": 1.0}, retry_after="0.6") as server:
        start = time.monotonic()
        assert [r.outcome for r in answers(server.url, [ask(1)])] == [Outcome.OK]
        assert time.monotonic() - start > 0.6


@pytest.mark.parametrize(
    "reply",
    [None, [], "text", {}, {"choices": None}, {"choices": [None]}, {"choices": [{"message": None}]},
     {"choices": [{"message": {"content": ["part"]}, "finish_reason": "stop"}]},
     {"choices": [{"message": {"content": "x"}, "finish_reason": None}]},
     {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}] * 2}],
)  # fmt: skip
def test_a_malformed_reply_is_an_error(reply: Any) -> None:
    assert read_reply("r", reply, 0.1).outcome is Outcome.ERROR


def test_tokens_of_the_clip_are_counted_apart() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"audio_tokens": 64}}
    reply = {"choices": [{"message": {"content": "Chess."}, "finish_reason": "stop"}], "usage": usage}
    response = read_reply("r", reply, 0.1)
    assert (response.input_tokens, response.audio_tokens, response.output_tokens) == (100, 64, 7)
    assert read_reply("r", {**reply, "usage": {"prompt_tokens": 100}}, 0.1).audio_tokens is None


def test_the_stand_in_draws_endings_at_their_rates() -> None:
    script = Script(rates={"busy": 0.3, "empty": 0.1}, seed=2)
    drawn = Counter(script.ending(str(i)) for i in range(5000))
    assert abs(drawn["busy"] / 5000 - 0.3) < 0.03 and abs(drawn["empty"] / 5000 - 0.1) < 0.02


def test_the_wav_is_what_another_reader_reads() -> None:
    from vibe_harness.backends.audio import wav_bytes

    wave = Waveform(np.array([0.0, 0.5, -0.5, 1.5, -1.5], np.float32), 8000)
    samples, rate = soundfile.read(io.BytesIO(wav_bytes(wave)), dtype="int16")
    assert rate == 8000 and samples.tolist() == [0, 16384, -16384, 32767, -32768]
