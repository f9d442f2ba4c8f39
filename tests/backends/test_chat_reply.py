"""What the replies of servers mean that are written in other ways than OpenAI's."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.backends.asking import answers, ask, model_card, tone
from tests.raw_server import head, raw_server, whole
from vibe_harness.backends.remote import gemini, openai_server
from vibe_harness.backends.remote.call_failed import CallFailed, Refusal
from vibe_harness.backends.remote.chat_reply import read_reply
from vibe_harness.backends.remote.encoded_clips import KEPT, EncodedClips
from vibe_harness.backends.remote.gemini import GeminiEngine
from vibe_harness.backends.remote.gemini_reply import read_reply as read_gemini
from vibe_harness.backends.remote.http_client import HttpClient, proxy_for
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Outcome, Waveform


def chat(content: object = "Chess.", reason: object = "stop", tokens: int | None = None, **message: object) -> object:
    usage = {} if tokens is None else {"usage": {"prompt_tokens": 5, "completion_tokens": tokens}}
    return {"choices": [{"message": {"content": content, **message}, "finish_reason": reason}], **usage}


@pytest.mark.parametrize(
    ("reply", "outcome", "text"),
    [
        (chat(reason="STOP"), Outcome.OK, "Chess."),
        (chat(reason="eos_token"), Outcome.OK, "Chess."),
        (chat(reason="MAX_TOKENS"), Outcome.TRUNCATED, "Chess."),
        (chat(reason=None), Outcome.OK, "Chess."),
        (chat(reason=None, tokens=63), Outcome.OK, "Chess."),
        (chat(reason=None, tokens=64), Outcome.TRUNCATED, "Chess."),
        (chat([{"type": "text", "text": "Che"}, {"type": "text", "text": "ss."}]), Outcome.OK, "Chess."),
        (chat([{"type": "thinking", "thinking": []}, {"type": "text", "text": "Chess."}]), Outcome.OK, "Chess."),
        (chat([]), Outcome.EMPTY, ""),
        (chat(None), Outcome.EMPTY, ""),
    ],
)
def test_replies_written_otherwise_are_read(reply: object, outcome: Outcome, text: str) -> None:
    response = read_reply("r", reply, 0.1, max_tokens=64)
    assert (response.outcome, response.text, response.error) == (outcome, text, None)


def test_thoughts_without_an_answer_are_said() -> None:
    response = read_reply("r", chat(None, "length", 64, reasoning_content="Let me see"), 0.1, max_tokens=64)
    assert response.outcome is Outcome.EMPTY and not response.text
    assert "thought in 64 tokens (reasoning_content) and wrote no answer" in str(response.error)


@pytest.mark.parametrize("reason", ["error", "abort"])
def test_an_answer_that_the_server_broke_off_may_come_the_next_time(reason: str) -> None:
    with pytest.raises(CallFailed, match="broke the answer off") as caught:
        read_reply("r", chat("", reason), 0.1)
    assert caught.value.retry


@pytest.mark.parametrize("reason", [["STOP"], {"stop": 1}, 7])
def test_a_finish_reason_that_is_no_word_is_a_malformed_reply(reason: object) -> None:
    reply = {"candidates": [{"content": {"parts": [{"text": "Chess."}]}, "finishReason": reason}]}
    for response in (read_gemini("r", reply, 0.1), read_reply("r", chat(reason=reason), 0.1)):
        assert response.outcome is Outcome.ERROR and "malformed reply" in str(response.error)


ERRORS = [
    ({"code": 429, "message": "rate limited"}, True, Refusal.RATE),
    ({"code": "502", "message": "bad gateway"}, True, None),
    ({"type": "overloaded_error", "message": "busy"}, True, Refusal.OVERLOAD),
    ({"code": "rate_limit_exceeded", "message": "slow"}, True, Refusal.RATE),
    ({"code": 400, "message": "too short"}, False, None),
    ("broken", False, None),
]


@pytest.mark.parametrize(("error", "retried", "refusal"), ERRORS, ids=range(len(ERRORS)))
@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_an_error_under_a_status_of_success_is_what_it_says(
    error: object, retried: bool, refusal: Refusal | None, kind: str
) -> None:
    replies = iter([whole(json.dumps({"error": error}).encode(), kind=kind)])
    well = json.dumps(chat()).encode()
    with raw_server(lambda: next(replies, None) or whole(well, kind=kind)) as server:
        [response] = answers(f"{server.url}/v1", [ask(1)], max_retries=2)
    assert response.outcome is (Outcome.OK if retried else Outcome.ERROR)


def test_a_closed_connection_is_called_so() -> None:
    with raw_server(lambda: [head(Content_Length="500") + b'{"id": ']) as server:
        [response] = answers(f"{server.url}/v1", [ask(1)], max_retries=0, timeout_s=3.0)
    assert str(response.error).startswith("the server closed the connection before its reply was whole")


def dripping() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in range(100):
        time.sleep(0.05)
        yield f"X-{number}: 1\r\n".encode()


@pytest.mark.parametrize("dialect", ["openai", "gemini"])
def test_a_server_that_drips_its_headers_does_not_hold_up_the_start(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "of-no-use-to-anybody")
    for module in (openai_server, gemini):
        monkeypatch.setattr(module, "PROBE_TIMEOUT_S", 0.3)
    start = time.monotonic()
    with raw_server(dripping, lists=False) as server, pytest.raises(EngineError, match=r"no answer within 0\.3 s"):
        if dialect == "openai":
            answers(f"{server.url}/v1", [ask(1)])
        else:
            GeminiEngine(ModelCard(model="g", backend="gemini", id="x", connection={"base_url": server.url}), [])
    assert time.monotonic() - start < 4


def test_requests_go_through_the_proxy_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with raw_server(lambda: whole(b"{}")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "localhost,.inside.example")

        async def get(url: str) -> int:
            client = HttpClient(url, {}, 1 << 20)
            try:
                return (await client.send("GET", "/models", 5.0)).status
            finally:
                await client.close()

        assert asyncio.run(get("http://model.example/v1")) == 200
        assert proxy.requests[0].startswith(b"GET http://model.example/v1/models HTTP/1.1")
        assert proxy_for("http://gpu.inside.example/v1") is None and proxy_for("http://localhost:8000/v1") is None
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:1080")
    with pytest.raises(UserError, match="does not speak HTTP"):
        proxy_for("https://model.example/v1")


def test_a_clip_is_decoded_and_encoded_once_for_all_its_requests() -> None:
    decoded: list[int] = []

    def decode() -> Waveform:
        decoded.append(1)
        return tone(100)

    clips = EncodedClips(model_card("http://localhost/v1"))
    first = [clips.of(replace(ask(number), audio=decode)) for number in range(3)]
    assert len(decoded) == 1 and first[0] is first[1] is first[2] and len(first[0]) == 1
    for pitch in range(KEPT):
        clips.of(ask(9, tone(pitch)))
    clips.of(replace(ask(1), audio=decode))
    assert len(decoded) == 2  # it was kept no longer than the last clips are
    assert clips.of(ask(1)) == []
