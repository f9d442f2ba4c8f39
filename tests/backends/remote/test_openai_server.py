"""The `openai` backend on the wire: what a server is sent, and what it says of itself."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
from typing import Any

import jsonschema
import numpy as np
import pytest
import soundfile

from tests.backends.asking import RATE, answers, ask, model_card, tone
from tests.loopback import Loopback
from vibe_harness.backends.protocol import check_options
from vibe_harness.backends.remote.chat_reply import read_reply
from vibe_harness.backends.remote.openai_server import OpenAIEngine
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Outcome, Waveform


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
        content = engine._body(ask(1, long))["messages"][-1]["content"]
        engine.close()
    assert [part["type"] for part in content] == ["input_audio"] * 3 + ["text"]
    pieces = [soundfile.read(io.BytesIO(base64.b64decode(part["input_audio"]["data"])))[0] for part in content[:-1]]
    np.testing.assert_array_equal(np.concatenate(pieces).astype(np.float32), long.samples)
    assert all(len(piece) <= 0.5 * RATE for piece in pieces)


def test_tokens_of_the_clip_are_counted_apart() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"audio_tokens": 64}}
    reply = {"choices": [{"message": {"content": "Chess."}, "finish_reason": "stop"}], "usage": usage}
    response = read_reply("r", reply, 0.1)
    assert (response.input_tokens, response.audio_tokens, response.output_tokens) == (100, 64, 7)
    assert read_reply("r", {**reply, "usage": {"prompt_tokens": 100}}, 0.1).audio_tokens is None


def test_the_wav_is_what_another_reader_reads() -> None:
    from vibe_harness.backends.request_audio import wav_bytes

    wave = Waveform(np.array([0.0, 0.5, -0.5, 1.5, -1.5], np.float32), 8000)
    samples, rate = soundfile.read(io.BytesIO(wav_bytes(wave)), dtype="int16")
    assert rate == 8000 and samples.tolist() == [0, 16384, -16384, 32767, -32768]
