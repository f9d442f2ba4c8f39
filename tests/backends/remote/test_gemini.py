"""The `gemini` backend against a server that misbehaves as scripted."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import jsonschema
import numpy as np
import pytest

from tests.backends.asking import RATE, ask, tone
from tests.loopback import AT_ONCE, FINAL, Loopback
from vibe_harness.backends.guards import Budget, enforce_limits
from vibe_harness.backends.remote import dispatcher as dispatch
from vibe_harness.backends.remote.gemini import GeminiEngine
from vibe_harness.backends.remote.gemini_reply import read_reply
from vibe_harness.cards.schema import Layout, ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Outcome, Request, Response

KEY = "AIza-very-secret-0123"


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "FIRST_WAIT_S", 0.02)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


def model_card(url: str, args: dict[str, Any] | None = None, **connection: Any) -> ModelCard:
    return ModelCard(
        model="g", backend="gemini", id="loopback", layout=Layout(system="Be brief."), args=args or {},
        connection={"base_url": url.removesuffix("/v1"), "timeout_s": 60.0, **connection},
    )  # fmt: skip


def answers(card: ModelCard, requests: Iterable[Request]) -> list[Response]:
    engine = GeminiEngine(card, [])
    try:
        return list(engine.generate(requests))
    finally:
        engine.close()


def test_clip_settings_and_schema_arrive() -> None:
    schema = {
        "type": "object", "required": ["vibe"], "additionalProperties": False,
        "properties": {"vibe": {"enum": ["good", "bad"]}},
    }  # fmt: skip
    wave = tone(700)
    with Loopback(key=KEY) as server:
        card = model_card(server.url, {"thinking_budget": 0})
        [heard] = answers(card, [ask(1, wave)])
        [read] = answers(card, [ask(2, schema=schema)])
        seen = server.seen()
    pcm = (wave.samples * 32768).astype(np.int16).tobytes()
    assert seen["heard"][hashlib.sha256(pcm).hexdigest()]["rate"] == RATE
    assert heard.text.startswith("A high voice") and (heard.outcome, heard.finish_reason) == (Outcome.OK, "STOP")
    assert heard.served_model == "loopback" and heard.input_tokens == 20 and heard.seconds
    jsonschema.validate(json.loads(read.text), schema)
    assert seen["last"]["responseJsonSchema"] == schema
    sent = {name: seen["last"][name] for name in ("temperature", "seed", "maxOutputTokens", "candidateCount")}
    assert sent == {"temperature": 0.0, "seed": 3, "maxOutputTokens": 64, "candidateCount": 1}
    thinking = seen["last"]["thinkingConfig"]
    assert thinking in ({"thinkingBudget": 0}, {"thinking_budget": 0})


EXPECTED = {
    "bad_request": Outcome.ERROR, "no_choices": Outcome.ERROR, "odd_finish": Outcome.ERROR,
    "filtered": Outcome.BLOCKED, "prompt_filtered": Outcome.BLOCKED, "empty": Outcome.EMPTY, "blank": Outcome.EMPTY,
    "length": Outcome.TRUNCATED, "length_empty": Outcome.EMPTY, "well": Outcome.OK,
}  # fmt: skip


def test_a_long_clip_comes_in_pieces_ahead_of_the_words() -> None:
    with Loopback() as server:
        card = model_card(server.url).model_copy(update={"max_seconds": 0.5, "long_clips": "split"})
        engine = GeminiEngine(card, [])
        [content] = engine._body(ask(1, tone(200, 1.2)))["contents"]
        engine.close()
    assert [part.get("text") for part in content["parts"]] == [None, None, None, "question 1"]
    assert all(part["inlineData"]["mimeType"] == "audio/wav" for part in content["parts"][:3])


@pytest.mark.slow
def test_2000_requests_each_end_in_one_outcome_as_played() -> None:
    endings = [name for name in FINAL if name in EXPECTED]
    rates = dict.fromkeys(endings, 0.02) | dict.fromkeys(AT_ONCE, 0.01)
    waves = [tone(pitch) for pitch in (110, 220, 440, 880)]
    with Loopback(rates=rates, seed=6) as server:
        card = model_card(server.url, timeout_s=300.0, concurrency=32)
        got = answers(card, (ask(i, waves[i % 4]) for i in range(2000)))
        seen = server.seen()
    assert sorted(r.request for r in got) == sorted(f"r{i}" for i in range(2000))
    expected: Counter[Outcome] = Counter()
    for ending, count in seen["played"].items():
        if ending not in AT_ONCE:
            expected[EXPECTED[ending]] += count
    assert Counter(r.outcome for r in got) == expected
    assert set(seen["played"]) == {*endings, *AT_ONCE, "well"}
    transient = sum(count for ending, count in seen["played"].items() if ending in AT_ONCE)
    assert len(seen["asked"]) == 2000 and sum(seen["asked"].values()) == 2000 + transient
    assert all((r.error is not None) == (r.outcome is Outcome.ERROR) for r in got)


def test_a_call_without_an_answer_is_given_up_and_asked_again() -> None:
    with Loopback(rates={"timeout": 1.0}) as server:
        got = answers(model_card(server.url, timeout_s=1.0, max_retries=20), [ask(i) for i in range(3)])
        seen = server.seen()
    assert [r.outcome for r in got] == [Outcome.OK] * 3
    assert seen["played"]["timeout"] == 3 and min(seen["asked"].values()) >= 2  # more where the machine is that slow


def test_another_model_version_stops_the_run() -> None:
    with Loopback(other_model_after=20) as server:
        engine = GeminiEngine(model_card(server.url, concurrency=4), [])
        got: list[Response] = []
        with pytest.raises(EngineError, match="model changed from 'loopback' to 'loopback-next' in mid-run"):
            got.extend(enforce_limits(engine, (ask(i) for i in range(100)), Budget()))
        engine.close()
    assert len(got) <= 20 and {response.served_model for response in got} <= {"loopback"}


@pytest.mark.parametrize(("served", "asked"), [("other-model", 1), ("models/Loopback-001", 9), ("", 9), (" ", 9)])
def test_a_model_that_was_not_asked_for_is_paid_for_one_answer(served: str, asked: int) -> None:
    with Loopback(served_model=served, latency_s=0.02) as server:
        engine = GeminiEngine(model_card(server.url, concurrency=8), [])
        try:
            got = list(engine.generate(ask(i) for i in range(9)))
        except EngineError as error:
            assert "was asked for 'loopback' and answers as 'other-model'" in str(error)
        else:
            assert {response.served_model for response in got} == {served.strip() or None}
        finally:
            engine.close()
        assert len(server.seen()["asked"]) == asked


def test_tokens_of_the_clip_are_counted_apart() -> None:
    usage = {
        "promptTokenCount": 100, "candidatesTokenCount": 7,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 36}, {"modality": "AUDIO", "tokenCount": 64}],
    }  # fmt: skip
    content = {"role": "model", "parts": [{"text": "Chess."}]}
    reply = {"usageMetadata": usage, "candidates": [{"content": content, "finishReason": "STOP"}]}
    response = read_reply("r", reply, 0.1)
    assert (response.input_tokens, response.audio_tokens, response.output_tokens) == (100, 64, 7)


def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback(key="another") as server:
        with pytest.raises(EngineError, match=r"refuses the key .*check the key in GEMINI_API_KEY") as caught:
            GeminiEngine(model_card(server.url), [])
        assert KEY not in str(caught.value) and "[key]" in str(caught.value)
        monkeypatch.delenv("GEMINI_API_KEY")
        with pytest.raises(UserError, match="set the environment variable GEMINI_API_KEY"):
            GeminiEngine(model_card(server.url), [])


def test_unknown_model_and_no_server() -> None:
    with (
        Loopback(models=["gemini-9"]) as server,
        pytest.raises(EngineError, match=r"Gemini has no model 'loopback': .*id=NAME"),
    ):
        GeminiEngine(model_card(server.url), [])
    with pytest.raises(EngineError, match="Gemini cannot be reached: the connection failed"):
        GeminiEngine(model_card("http://127.0.0.1:9"), [])


def test_a_model_that_ignores_temperature_says_so() -> None:
    with Loopback() as server:
        engine = GeminiEngine(model_card(server.url, {"ignores_temperature": True}), [])
        assert "ignores temperature" in engine.describe()["temperature"]
        assert KEY not in str(engine.describe())
        engine.close()
