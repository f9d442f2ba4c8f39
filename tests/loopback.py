"""A stand-in for an OpenAI-compatible server, and for Gemini's: it hears, follows a schema, and plays faults.

Run as `python -m tests.loopback '{"rates": {"busy": 0.02}}'`; it prints its base URL and serves until it is stopped.
Tests use `Loopback`, which runs it in a process of its own. What is played for a request depends on the request and
the seed alone, so the counts are the same in whatever order requests arrive.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import random
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

import jsonschema
import numpy as np
import soundfile
from aiohttp import web

from tests import loopback_dialects as dialects
from tests.support import FORKS, held_port, wait_until
from vibe_harness.backends.hearing_check import PROMPT
from vibe_harness.backends.request_audio import wav_bytes
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.records import Waveform

GARBLED = ("bad_json", "not_json", "error_in_200", "broke_off")  # under a status of success
AT_ONCE = ("busy", "busy_with_date", "limited", "broken", "unavailable", "reset", "half", *GARBLED)
TRANSIENT = (*AT_ONCE, "timeout")
FINAL = (
    "bad_request", "no_choices", "odd_finish",
    "filtered", "prompt_filtered", "refused", "empty", "blank", "length", "length_empty",
)  # fmt: skip
WORDS = ("teacher", "nurse", "engineer", "farmer", "hiking", "chess", "pottery", "cooking", "calm", "curious")


@dataclass
class Script:
    """What the server plays.

    rates: ending -> share of distinct requests. A transient one is played `times` times, and the request answered
    well after that; `times: -1` plays it for ever. The rest are answered well from the start.
    """

    rates: dict[str, float] = field(default_factory=dict)
    times: int = 1
    seed: int = 0
    latency_s: float = 0.0
    retry_after: str = "0.05"
    hang_s: float = 600.0  # which is what a timeout takes; none waits for its end
    hold_after: int | None = None  # answer so many questions, and keep those after them until told to go on
    models: list[str] | None = field(default_factory=lambda: ["loopback"])  # None: no /v1/models
    key: str | None = None  # the key to insist on
    model_length: int | None = None  # as vLLM lists it
    root: str | None = None  # the checkpoint that the list of models names
    vllm: str | None = None  # its version, where it says that it is vLLM
    served_model: str | None = None  # the name in replies; None echoes the request's
    other_model_after: int | None = None  # from this many answers on, replies name another version
    at_once: int | None = None  # more requests than this at one time get a 429
    drop_audio: bool = False  # answer as if no clip had come
    says: dict[str, str] = field(default_factory=dict)  # digest of a clip (`clip_digest`) -> what is said in it
    ignore_schema: bool = False
    moved: str | None = None  # every question is sent on to this address
    listing: int | None = None  # status in place of the list of models
    body: str | None = None  # every reply, in Latin-1
    port: int = 0  # any free one where 0

    def ending(self, body_digest: str) -> str | None:
        """The ending drawn for a request."""
        draw = random.Random(f"{self.seed}/{body_digest}").random()
        for name, rate in self.rates.items():
            if name not in (*TRANSIENT, *FINAL):
                raise ValueError(f"unknown ending {name}")
            if draw < rate:
                return name
            draw -= rate
        return None


@dataclass
class Heard:
    """A clip as it arrived."""

    rate: int
    frames: int
    digest: str  # SHA-256 of the PCM16 samples
    rms: float
    crossings: float  # zero crossings a second, a crude pitch


def hear(data: str) -> Heard:
    """Decode a base64 WAV."""
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(data, validate=True)), dtype="int16", always_2d=True)
    if samples.shape[1] != 1:
        raise ValueError("not mono")
    wave = samples[:, 0].astype(np.float64) / 32768
    crossings = np.count_nonzero(np.diff(np.signbit(wave))) / 2 / (len(wave) / rate)
    digest = hashlib.sha256(samples.tobytes()).hexdigest()
    return Heard(rate, len(wave), digest, float(np.sqrt(np.mean(wave**2))), float(crossings))


def clip_digest(wave: Waveform) -> str:
    """The digest of a clip, as it arrives."""
    return hear(base64.b64encode(wav_bytes(wave)).decode()).digest


def texts_of(corpus: Corpus, rate: int = 16_000) -> dict[str, str]:
    """What is said in the clips of a corpus, for `Script.says`."""
    return {clip_digest(read_audio(corpus.path(clip), rate)): clip.text for clip in corpus.clips if clip.text}


def follow(schema: dict[str, Any], text: str, rng: random.Random, root: dict[str, Any] | None = None) -> Any:
    """An instance of a JSON Schema; open strings are words of the text where it has any that we know."""
    root = root or schema
    if "$ref" in schema:
        target: Any = root
        for key in schema["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        return follow(target, text, rng, root)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return follow(rng.choice(schema[key]), text, rng, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = schema.get("type", "object")
    kind = rng.choice(kind) if isinstance(kind, list) else kind
    if kind == "object":
        return {name: follow(part, text, rng, root) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        least = schema.get("minItems", 0)
        size = rng.randint(least, max(least, min(schema.get("maxItems", 3), 3)))
        return [follow(schema.get("items", {"type": "string"}), text, rng, root) for _ in range(size)]
    if kind == "string":
        return rng.choice([word for word in WORDS if word in text] or WORDS)
    return {"integer": rng.randint(0, 9), "number": rng.random(), "boolean": rng.random() < 0.5, "null": None}[kind]


class Server:
    """The state of one stand-in: what it played and what it saw."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.played: dict[str, int] = {}
        self.asked: dict[str, int] = {}  # digest of a request -> times it arrived
        self.heard: dict[str, dict[str, Any]] = {}  # SHA-256 of samples -> the clip
        self.answers = 0
        self.now = 0
        self.most = 0
        self.arrived = 0
        self.held = 0
        self.going_on = asyncio.Event()
        self.last: dict[str, Any] = {}

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_get("/version", self.version)
        app.router.add_get("/v1beta/models/{model}", self.gemini_model)
        app.router.add_post("/v1beta/models/{call}", self.chat)
        app.router.add_get("/seen", self.seen)
        app.router.add_post("/go-on", self.go_on)
        return app

    async def seen(self, _: web.Request) -> web.Response:
        return web.json_response(
            {"played": self.played, "asked": self.asked, "heard": self.heard, "most": self.most, "last": self.last,
             "held": self.held}
        )  # fmt: skip

    async def go_on(self, _: web.Request) -> web.Response:
        self.going_on.set()
        return web.json_response({})

    async def models(self, request: web.Request) -> web.Response:
        if self.script.listing is not None:
            return _error(self.script.listing, "bad gateway")
        if self.script.body is not None:
            return self._raw()
        if self.script.models is None:
            return web.json_response({"detail": "Not Found"}, status=404)
        more: dict[str, Any] = {} if self.script.model_length is None else {"max_model_len": self.script.model_length}
        if self.script.vllm is not None:
            more["owned_by"] = "vllm"
        if self.script.root is not None:
            more["root"] = self.script.root
        return self._locked(request) or web.json_response(
            {"object": "list", "data": [{"id": name, "object": "model", **more} for name in self.script.models]}
        )

    async def version(self, request: web.Request) -> web.Response:
        if self.script.vllm is None:
            return web.json_response({"detail": "Not Found"}, status=404)
        return self._locked(request) or web.json_response({"version": self.script.vllm})

    async def gemini_model(self, request: web.Request) -> web.Response:
        name = request.match_info["model"]
        if self.script.models is not None and name not in self.script.models:
            return _error(404, f"models/{name} is not found")
        return self._locked(request) or web.json_response({"name": f"models/{name}"})

    def _locked(self, request: web.Request) -> web.Response | None:
        given = request.headers.get("x-goog-api-key") or request.headers.get("Authorization", "")[len("Bearer ") :]
        if self.script.key in (None, given):
            return None
        return _error(401, f"Incorrect API key provided: {given}")

    async def chat(self, request: web.Request) -> web.StreamResponse:
        self.now += 1
        self.most = max(self.most, self.now)
        self.arrived += 1
        try:
            if self.script.hold_after is not None and self.arrived > self.script.hold_after:
                await self._hold()
            return await self._chat(request)
        finally:
            self.now -= 1

    async def _hold(self) -> None:
        self.held += 1
        try:
            await self.going_on.wait()
        finally:
            self.held -= 1

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        due = asyncio.get_running_loop().time() + self.script.latency_s
        raw = await request.read()
        question = dialects.read(request.path, json.loads(raw))
        key = hashlib.sha256(raw).hexdigest()[:16]
        self.asked[key] = self.asked.get(key, 0) + 1
        locked = self._locked(request)
        if locked:
            return locked
        if self.script.models is not None and question.model not in self.script.models:
            return _error(404, f"The model `{question.model}` does not exist.")
        if self.script.moved is not None:
            return web.Response(status=307, headers={"Location": self.script.moved})
        if self.script.body is not None:
            return self._raw()
        if self.script.at_once is not None and self.now > self.script.at_once:
            return self._play("crowded", _error(429, "too many at once"))
        ending = self.script.ending(key)
        if ending in TRANSIENT and 0 <= self.script.times < self.asked[key]:
            ending = None
        reply = None if ending in TRANSIENT else self._answer(question, ending)
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        if reply is None:
            return await self._fault(str(ending), request)
        return self._play(ending or "well", reply)

    def _raw(self) -> web.Response:
        return web.Response(body=str(self.script.body).encode("latin-1"), content_type="application/json")

    def _play(self, ending: str, reply: web.Response) -> web.Response:
        self.played[ending] = self.played.get(ending, 0) + 1
        return reply

    async def _fault(self, ending: str, request: web.Request) -> web.StreamResponse:
        self._play(ending, web.Response())
        if ending in ("busy", "busy_with_date"):
            wait = self.script.retry_after if ending == "busy" else "Thu, 01 Jan 1970 00:00:00 GMT"
            return _error(429, "slow down", {"Retry-After": wait})
        if ending == "timeout":
            await asyncio.sleep(self.script.hang_s)
        if ending in ("timeout", "reset"):
            assert request.transport
            request.transport.abort()
            return web.Response()
        if ending in GARBLED:
            return _garbled(ending)
        if ending == "half":
            reply = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "500"})
            await reply.prepare(request)
            await reply.write(b'{"id": "x", "choices": [{"index": 0, "mess')
            assert request.transport
            request.transport.abort()
            return reply
        return _error({"limited": 429, "broken": 500, "unavailable": 503}[ending], f"{ending} for now")

    def _answer(self, question: dialects.Question, ending: str | None) -> web.Response:
        if ending == "bad_request":
            return _error(400, "this clip is too short")
        clip = None if question.audio is None else hear(question.audio)
        if clip is not None:
            self.heard[clip.digest] = asdict(clip)
        answer = self._text(question, None if self.script.drop_audio else clip)
        self.last = question.settings
        return web.json_response(question.reply(answer, ending, self._served(question.model)))

    def _served(self, model: str) -> str:
        self.answers += 1
        other = self.script.other_model_after
        name = model if self.script.served_model is None else self.script.served_model
        return f"{name}-next" if other is not None and self.answers > other else name

    def _text(self, question: dialects.Question, clip: Heard | None) -> str:
        basis = question.text + (clip.digest if clip else "")
        rng = random.Random(f"{self.script.seed}/{basis}")
        if question.schema is not None and not self.script.ignore_schema:
            value = follow(question.schema, question.text, rng)
            jsonschema.validate(value, question.schema)
            return json.dumps(value)
        if clip is not None and question.text == PROMPT and self.script.says:
            return self.script.says.get(clip.digest, "(nothing)")
        voice = "high" if clip and clip.crossings > 400 else "low"
        heard = f"A {voice} voice at {clip.rms:.4f} of {clip.digest[:8]}. " if clip else "I heard nothing. "
        return heard + f"Perhaps a {rng.choice(WORDS[:4])}, {rng.choice(WORDS[8:])}, fond of {rng.choice(WORDS[4:8])}."


def _garbled(ending: str) -> web.Response:
    if ending == "bad_json":
        return web.Response(text='{"id": "x", "choices": [{]}', content_type="application/json")
    if ending == "not_json":
        return web.Response(text="<html>proxy</html>", content_type="text/html")
    if ending == "error_in_200":
        return web.json_response({"error": {"message": "upstream failed", "code": 502}})
    choice = {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "error"}
    return web.json_response({"choices": [choice], "error": {"message": "overloaded", "code": "overloaded_error"}})


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "error"}}, status=status, headers=headers)


class Loopback:
    """The stand-in in a process of its own, for the length of a `with`."""

    def __init__(self, **script: Any) -> None:
        self.script = Script(**script)

    def __enter__(self) -> Loopback:
        # Also while no server is there, so that nobody else's is ever asked in its place.
        self._held = held_port(self.script.port)
        self.script.port = self._held.getsockname()[1]
        here, there = FORKS.Pipe(duplex=False)
        self._process = FORKS.Process(target=_play, args=(self.script, there))
        self._process.start()
        there.close()
        with here:
            self.url = here.recv()  # raises EOFError where the stand-in did not start
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        self._held.close()

    def stop(self) -> None:
        """End the server, as a crash would."""
        self._process.kill()
        self._process.join()

    def seen(self) -> dict[str, Any]:
        """What it played (ending -> count), was asked (request -> times) and heard.

        most: requests at one time; held: those that it keeps now, which do not count as asked yet.
        """
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/seen") as reply:
            seen: dict[str, Any] = json.load(reply)
            return seen

    def wait_until_held(self, count: int) -> None:
        """Until it keeps so many questions."""
        wait_until(lambda: self.seen()["held"] == count)

    def go_on(self) -> None:
        """Answer the questions that were kept, and keep no more."""
        urllib.request.urlopen(self.url.removesuffix("/v1") + "/go-on", data=b"").close()


def _play(script: Script, there: Connection) -> None:
    asyncio.run(_serve(script, there.send))


async def _serve(script: Script, tell: Callable[[str], object]) -> None:
    runner = web.AppRunner(Server(script).app(), access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", script.port, backlog=1024)
    await site.start()
    tell(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Script(**json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}")), partial(print, flush=True)))
