"""Replies without end, without sense, and from elsewhere, of all that ask a server."""

from __future__ import annotations

import gzip
import io
import json
import re
import time
import tracemalloc
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.backends.asking import ask, model_card, tone
from tests.raw_server import endless, endless_chunks, endless_head, head, raw_server, whole
from vibe_harness.backends.remote import blocking_client, dispatcher
from vibe_harness.backends.remote import reply_limits as replies
from vibe_harness.backends.remote.gemini import GeminiEngine
from vibe_harness.backends.remote.openai_server import OpenAIEngine
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Waveform
from vibe_harness.speech_sets import server_voices
from vibe_harness.speech_sets.recognition import ServerRecogniser, ServerRecogniserSettings
from vibe_harness.speech_sets.server_voices import GeminiVoice, GeminiVoiceSettings, ServerVoice, ServerVoiceSettings

KEY = "sk-4f9a1c77deadbeef"
READ_AHEAD = 100 << 20  # bytes that a server may have written, which lie in the system's buffers, unread


@pytest.fixture(autouse=True)
def one_try_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("THEIR_KEY", KEY)
    monkeypatch.setattr(blocking_client, "RETRIES", 0)
    monkeypatch.setattr(dispatcher, "FIRST_WAIT_S", 0.02)
    monkeypatch.setattr(server_voices, "LONGEST_SPEECH", replies.LONGEST_TEXT)


def ask_openai(url: str, seconds: float = 60.0) -> str:
    card = model_card(f"{url}/v1", timeout_s=seconds, max_retries=1, api_key_env="THEIR_KEY")
    return _answered(OpenAIEngine(card, []))


def gemini_card(url: str, **connection: Any) -> ModelCard:
    settings = {"base_url": url, "max_retries": 1, **connection}
    return ModelCard(model="g", backend="gemini", id="loopback", connection=settings)


def ask_gemini(url: str, seconds: float = 60.0) -> str:
    return _answered(GeminiEngine(gemini_card(url, timeout_s=seconds), []))


def _answered(engine: OpenAIEngine | GeminiEngine) -> str:
    try:
        [response] = engine.generate([ask(1, tone(200))])
    finally:
        engine.close()
    assert response.outcome is Outcome.ERROR and not response.text
    return str(response.error)


def _refused(ask_it: Callable[[], object]) -> str:
    with pytest.raises(EngineError) as caught:
        ask_it()
    return str(caught.value)


def ask_voice(url: str, seconds: float = 60.0) -> str:
    settings = ServerVoiceSettings(
        base_url=f"{url}/v1", model="m", voice="v", timeout_s=seconds, api_key_env="THEIR_KEY"
    )
    return _refused(lambda: ServerVoice(settings).speak("Hello."))


def ask_gemini_voice(url: str, seconds: float = 60.0) -> str:
    settings = GeminiVoiceSettings(model="m", voice="v", base_url=url, timeout_s=seconds)
    return _refused(lambda: GeminiVoice(settings).speak("Hello."))


def ask_recogniser(url: str, seconds: float = 60.0) -> str:
    settings = ServerRecogniserSettings(base_url=f"{url}/v1", model="m", timeout_s=seconds, api_key_env="THEIR_KEY")
    wave = Waveform(np.full(8_000, 0.1, np.float32), 16_000)
    return _refused(lambda: ServerRecogniser(settings).transcribe(wave, "en"))


ASKERS = [ask_openai, ask_gemini, ask_voice, ask_gemini_voice, ask_recogniser]
BODIES = {"text": endless, "chunks": endless_chunks, "refusal": lambda: endless("500 Broken"),
          "page": lambda: endless(kind="text/html"),
          "told": lambda: whole(b" " * (replies.LONGEST_TEXT + 1))}  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("ask_one", ASKERS)
def test_a_reply_without_end_is_given_up(ask_one: Callable[[str], str], body: str) -> None:
    with raw_server(BODIES[body]) as server:
        said = ask_one(server.url)
        questions = [request for request in server.requests if request.startswith(b"POST ")]
    assert "the reply is longer than 8 MiB and was not read to its end" in said and "\n" not in said
    assert server.sent < replies.LONGEST_TEXT + READ_AHEAD
    assert len(questions) == 1  # it would be as long the next time


@pytest.mark.parametrize("ask_one", ASKERS)
def test_a_head_without_end_is_given_up(ask_one: Callable[[str], str]) -> None:
    with raw_server(endless_head) as server:
        assert ask_one(server.url)
    assert server.sent < 2 * READ_AHEAD


SAID = {
    "openai": '{"choices": [{"message": {"content": "Chess."}, "finish_reason": "stop"}]}',
    "gemini": '{"candidates": [{"content": {"role": "model", "parts": [{"text": "Chess."}]}, "finishReason": "STOP"}]}',
}
PACKED: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}


@cache
def _swelling(encoding: str) -> bytes:
    return PACKED[encoding](b" " * (128 << 20))


@pytest.mark.parametrize("encoding", PACKED)
@pytest.mark.parametrize("ask_one", ASKERS)
def test_a_reply_that_swells_without_end_is_not_unpacked_to_its_end(
    ask_one: Callable[[str], str], encoding: str
) -> None:
    packed = _swelling(encoding)
    with raw_server(lambda: whole(packed, Content_Encoding=encoding)) as server:
        tracemalloc.start()
        assert "the reply is longer than 8 MiB and was not read to its end" in ask_one(server.url)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert b"accept-encoding: identity" in server.requests[-1].lower()
    assert most < 64 << 20  # bytes


@pytest.mark.parametrize("encoding", PACKED)
@pytest.mark.parametrize("engine", ["openai", "gemini"])
def test_a_reply_that_a_proxy_packs_all_the_same_is_read(engine: str, encoding: str) -> None:
    said = PACKED[encoding](SAID[engine].encode())
    with raw_server(lambda: whole(said, Content_Encoding=encoding)) as server:
        asked = OpenAIEngine(model_card(f"{server.url}/v1"), []) if engine == "openai" else GeminiEngine(
            gemini_card(server.url), [])  # fmt: skip
        [response] = asked.generate([ask(1)])
        asked.close()
    assert (response.outcome, response.text) == (Outcome.OK, "Chess.")


def test_speech_that_a_proxy_packs_all_the_same_is_heard() -> None:
    file, wave = io.BytesIO(), np.linspace(-0.5, 0.5, 2_000, dtype=np.float32)
    soundfile.write(file, wave, 24_000, format="WAV", subtype="FLOAT")
    with raw_server(lambda: whole(gzip.compress(file.getvalue()), kind="audio/wav", Content_Encoding="gzip")) as server:
        settings = ServerVoiceSettings(base_url=f"{server.url}/v1", model="m", voice="v")
        heard = ServerVoice(settings).speak("Hello.")
    assert heard.rate == 24_000 and np.array_equal(heard.samples, wave)


def test_a_refusal_that_is_packed_says_why() -> None:
    refusal = gzip.compress(b'{"error": {"message": "no such voice: v"}}')
    with raw_server(lambda: whole(refusal, "400 Bad", Content_Encoding="gzip")) as server:
        assert "no such voice: v" in ask_openai(server.url)


BROKEN = {
    "cut short": lambda: whole(gzip.compress(b" " * 9_000 + b"7")[:-12], Content_Encoding="gzip"),
    "longer": lambda: whole(gzip.compress(b"7") + gzip.compress(b"8"), Content_Encoding="gzip"),
    "not packed": lambda: whole(b'{"choices": []}', Content_Encoding="gzip"),
    "otherwise": lambda: whole(b"7", Content_Encoding="br"),
    "twice": lambda: whole(gzip.compress(gzip.compress(b"7")), Content_Encoding="gzip, gzip"),
}


@pytest.mark.parametrize("body", BROKEN)
@pytest.mark.parametrize("ask_one", ASKERS)
def test_a_packed_reply_that_cannot_be_unpacked_whole_is_one_failure(ask_one: Callable[[str], str], body: str) -> None:
    with raw_server(BROKEN[body]) as server:
        said = ask_one(server.url)
    assert "compressed" in said or "cannot be unpacked" in said


def slow() -> Iterator[bytes]:
    yield head()
    while True:  # until the client has had enough
        time.sleep(0.1)  # far under the limit of any one read
        yield b" "


@pytest.mark.parametrize("ask_one", ASKERS)
@pytest.mark.slow
def test_a_reply_that_drips_ends_with_the_time_for_it(ask_one: Callable[..., str]) -> None:
    with raw_server(slow) as server:
        assert "within 3 s" in ask_one(server.url, seconds=3.0)  # enough for the list of models on a slow machine


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
@pytest.mark.parametrize("ask_one", ASKERS)
@pytest.mark.parametrize("here", [True, False], ids=["same host", "other host"])
def test_nothing_follows_a_server_that_sends_it_elsewhere(
    ask_one: Callable[[str], str], status: str, here: bool
) -> None:
    with raw_server(lambda: whole(b"{}")) as other:
        there = "/elsewhere" if here else f"{other.url}/elsewhere"
        with raw_server(lambda: whole(b"", status, Location=f"{there}?key={KEY}")) as server:
            engine = ask_one in (ask_openai, ask_gemini)
            said = _refused(lambda: ask_one(server.url)) if engine else ask_one(server.url)
            assert not [request for request in server.requests if b"/elsewhere" in request.split(b"\r\n")[0]]
        assert not other.requests
    assert f"sends on to {there}?key=[key]: name that address" in said


ODD: dict[str, Callable[[], Iterable[bytes]]] = {
    "nothing": list,
    "no HTTP": lambda: [b"SSH-2.0-OpenSSH_9.2\r\n\r\n"],
    "odd status": lambda: whole(b"{}", "999 Odd"),
    "no content": lambda: [b"HTTP/1.1 204 No Content\r\n\r\n"],
    "half": lambda: [head(Content_Length="500") + b'{"id": '],
    "bad chunks": lambda: [head(Transfer_Encoding="chunked") + b"zz\r\nabc\r\n"],
    "bad length": lambda: [head(Content_Length="-5") + b"{}"],
    "charset of bytes": lambda: whole(b"abc", kind="text/html; charset=hex"),
    "odd charset": lambda: whole(b"\xff\xfe\x00", kind="text/html; charset=utf-7"),
    "unknown charset": lambda: whole(b"{}", "500 Broken", kind="text/html; charset=none-such"),
    "odd refusal": lambda: whole(b'{"error": ["KEY"]}'.replace(b"KEY", KEY.encode()), "400 Bad"),
    "deep refusal": lambda: whole(b"[" * 100_000, "400 Bad"),
    "no UTF-8 in a refusal": lambda: whole(b'{"error": "\xff"}', "400 Bad"),
    "key in a refusal": lambda: whole(json.dumps({"error": {"message": f"bad {KEY}"}}).encode(), "400 Bad"),
    "key in a page": lambda: whole(f"<html>{KEY}".encode(), kind="text/html"),
    "key as the reply": lambda: whole(json.dumps(f"a {KEY}").encode()),
    "list": lambda: whole(b"[1, 2]"),
    "number": lambda: whole(b"7"),
    "null": lambda: whole(b"null"),
    "empty": lambda: whole(b"{}"),
    "long number": lambda: whole(b'{"usage": ' + b"9" * 5_000 + b"}"),
    "deep": lambda: whole(b'{"id": ' + b"[" * 100_000),
    "wrong kinds": lambda: whole(b'{"candidates": 7, "choices": 7, "text": 7, "usageMetadata": "x"}'),
}  # fmt: skip


@pytest.mark.parametrize("reply", ODD)
@pytest.mark.parametrize("ask_one", ASKERS)
def test_whatever_a_server_writes_is_one_failure_in_one_line(ask_one: Callable[[str], str], reply: str) -> None:
    with raw_server(ODD[reply]) as server:
        said = ask_one(server.url)
    assert said and "\n" not in said and KEY not in said


@pytest.mark.parametrize("ask_one", [ask_openai, ask_gemini])
@pytest.mark.parametrize("reply", ["nothing", "no HTTP", "bad length", "bad chunks"])
def test_what_is_no_server_is_said_to_be_none_before_the_first_request(
    ask_one: Callable[[str], str], reply: str
) -> None:
    with raw_server(ODD[reply], lists=False) as server:
        assert re.search("no server answers at|Gemini cannot be reached", _refused(lambda: ask_one(server.url)))


@pytest.mark.parametrize("ask_one", [ask_openai, ask_gemini])
def test_a_list_of_models_without_end_is_given_up(ask_one: Callable[[str], str]) -> None:
    with raw_server(endless_chunks, lists=False) as server:
        try:
            said = ask_one(server.url)
        except EngineError as error:
            said = str(error)
        requests = len(server.requests)
    assert "the reply is longer than 8 MiB" in said
    assert server.sent < requests * (replies.LONGEST_TEXT + READ_AHEAD)


def test_the_same_holds_of_speech_that_is_small_as_a_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_voices, "MOST_SAMPLES", 24_000)
    file = io.BytesIO()
    soundfile.write(file, np.zeros(25_000, np.float32), 24_000, format="FLAC")
    with raw_server(lambda: whole(file.getvalue(), kind="audio/flac")) as server:
        assert "the speech is longer than 1 s" in ask_voice(server.url)


def test_a_key_that_a_recogniser_says_again_is_in_no_transcript() -> None:
    said = json.dumps({"text": f"my key is {KEY} she said"}).encode()
    settings = ServerRecogniserSettings(base_url="http://127.0.0.1:1/v1", model="m", api_key_env="THEIR_KEY")
    with raw_server(lambda: whole(said)) as server:
        recogniser = ServerRecogniser(settings.model_copy(update={"base_url": f"{server.url}/v1"}))
        assert recogniser.transcribe(Waveform(np.zeros(800, np.float32), 16_000), None) == "my key is [key] she said"


TOLD = [("20", 20), ("0", 0), ("-1", None), (str(10**30), None), (str(10**9 + 1), None)]


def _counted(count: str, said: str, engine: Callable[[str], OpenAIEngine | GeminiEngine]) -> list[int | None]:
    with raw_server(lambda: whole(said.replace("COUNT", count).encode())) as server:
        asked = engine(server.url)
        [response] = asked.generate([ask(1)])
        asked.close()
    assert (response.outcome, response.text) == (Outcome.OK, "Chess.")  # which stays, whatever the figures
    return [response.input_tokens, response.audio_tokens, response.output_tokens]


@pytest.mark.filterwarnings("ignore:the server told a count")
@pytest.mark.parametrize(
    ("count", "told"), [*TOLD, ("1e30", None), ("2.5", None), ("20.0", None), ('"20"', None), ("true", None)]
)
def test_a_count_of_tokens_that_is_none_is_not_told_by_openai(count: str, told: int | None) -> None:
    usage = '{"prompt_tokens": COUNT, "completion_tokens": COUNT, "prompt_tokens_details": {"audio_tokens": COUNT}}'
    said = SAID["openai"][:-1] + ', "usage": ' + usage + "}"
    assert _counted(count, said, lambda url: OpenAIEngine(model_card(f"{url}/v1"), [])) == [told] * 3


@pytest.mark.filterwarnings("ignore:the server told a count")
@pytest.mark.parametrize(
    ("count", "told"), [*TOLD, ("1e30", None), ("2.5", None), ("20.0", None), ('"20"', None), ("true", None)]
)
def test_a_count_of_tokens_that_is_none_is_not_told_by_gemini(count: str, told: int | None) -> None:
    usage = ('{"promptTokenCount": COUNT, "candidatesTokenCount": COUNT, '
             '"promptTokensDetails": [{"modality": "AUDIO", "tokenCount": COUNT}]}')  # fmt: skip
    said = SAID["gemini"][:-1] + ', "usageMetadata": ' + usage + "}"
    assert _counted(count, said, lambda url: GeminiEngine(gemini_card(url), [])) == [told] * 3


def test_a_count_that_is_none_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="a count of tokens that is none: kept as not told"):
        assert replies.told_tokens(-1) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert replies.told_tokens(None) is None  # not told at all
