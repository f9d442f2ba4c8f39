"""A server that refuses and breaks off calls by a seed, and keeps account of what each call and each wait took.

What happens to the nth call of a request depends on the request, n and the seed alone. It speaks both dialects, and is
run in a process of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import urllib.request
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from aiohttp import web

from tests import loopback_dialects as dialects
from tests.support import FORKS

FAULTS = ("limited", "limited_in_body", "limited_until_reset", "limited_in_200", "unavailable", "overloaded", "broken",
          "reset", "half", "bad_json", "broke_off")  # fmt: skip


@dataclass
class Mixture:
    """What the server does. shares: fault -> share of all calls."""

    shares: Mapping[str, float] = field(default_factory=dict)
    wait_s: float = 1.0  # which a refusal announces
    latency_s: float = 0.1  # of every call but those refused by one of the limits below
    seed: int = 0
    per_second: float | None = None  # a bucket of tokens, one a call; what finds it empty gets a 429
    burst: int = 10  # what the bucket holds
    at_once: int | None = None  # more calls than this at one time get a 503
    quota: tuple[int, float] | None = None  # after so many calls, all are refused for so many seconds

    def fault(self, key: str, call: int) -> str | None:
        """What happens to a call of a request, counted from 1."""
        draw = random.Random(f"{self.seed}/{key}/{call}").random()
        for name, share in self.shares.items():
            if name not in FAULTS:
                raise ValueError(f"unknown fault {name}")
            if draw < share:
                return name
            draw -= share
        return None


class _Server:
    def __init__(self, mixture: Mixture) -> None:
        self.mixture = mixture
        self.calls: Counter[str] = Counter()  # by request
        self.waits: dict[str, float] = {}  # seconds announced, by request
        self.early = 0  # calls that came before the wait was over that their request was told
        self.told: dict[str, float] = {}  # request -> when it may come again
        self.played: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.slot_s = 0.0
        self.now = 0
        self.tokens, self.filled_at = float(mixture.burst), 0.0
        self.paused_until: float | None = None

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/v1beta/models/{model}", self.models)
        app.router.add_post("/v1/chat/completions", self.ask)
        app.router.add_post("/v1beta/models/{call}", self.ask)
        app.router.add_get("/seen", self.seen)
        return app

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "loopback"}], "name": "models/loopback"})

    async def seen(self, _: web.Request) -> web.Response:
        return web.json_response(
            {"calls": self.calls, "played": self.played, "answered": self.answered, "slot_s": self.slot_s,
             "longest_wait_s": max(self.waits.values(), default=0.0), "early": self.early}
        )  # fmt: skip

    async def ask(self, request: web.Request) -> web.StreamResponse:
        begun = asyncio.get_running_loop().time()
        self.now += 1
        try:
            return await self._ask(request, begun)
        finally:
            self.now -= 1
            self.slot_s += asyncio.get_running_loop().time() - begun

    async def _ask(self, request: web.Request, begun: float) -> web.StreamResponse:
        raw = await request.read()
        key = hashlib.sha256(raw).hexdigest()[:16]
        question = dialects.read(request.path, json.loads(raw))
        self.calls[key] += 1
        self.early += begun < self.told.get(key, 0.0)
        refused = self._refused(key, begun)
        if refused is not None:
            return refused
        fault = self.mixture.fault(key, self.calls[key])
        await asyncio.sleep(max(0.0, begun + self.mixture.latency_s - asyncio.get_running_loop().time()))
        if fault is not None:
            return await self._play(fault, key, request)
        self.answered[key] += 1
        return web.json_response(question.reply(f"Answer to {question.text}.", None, question.model))

    def _refused(self, key: str, now: float) -> web.Response | None:
        mixture = self.mixture
        if mixture.at_once is not None and self.now > mixture.at_once:
            self.played["crowded"] += 1
            return web.json_response({"error": {"message": "overloaded"}}, status=503)
        if mixture.quota is not None:
            if self.paused_until is None and sum(self.calls.values()) > mixture.quota[0]:
                self.paused_until = now + mixture.quota[1]
            if self.paused_until is not None and now < self.paused_until:
                return self._limited("quota", key, self.paused_until - now)
        if mixture.per_second is not None:
            filled = self.tokens + (now - self.filled_at) * mixture.per_second
            self.tokens, self.filled_at = min(float(mixture.burst), filled), now
            if self.tokens < 1:
                return self._limited("too_fast", key, mixture.wait_s)
            self.tokens -= 1
        return None

    def _limited(self, name: str, key: str, wait_s: float, **more: Any) -> web.Response:
        self.played[name] += 1
        self.waits[key] = self.waits.get(key, 0.0) + wait_s
        self.told[key] = asyncio.get_running_loop().time() + wait_s
        error: dict[str, Any] = {"code": 429, "message": "slow down"}
        headers, status = {}, 429
        if name == "limited_in_200":
            status = 200
        if name in ("limited_in_body", "limited_in_200", "quota"):
            info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait_s:.3f}s"}
            error["details"] = [info]
        elif name == "limited_until_reset":
            headers = {"x-ratelimit-reset-requests": f"{wait_s * 1000:.0f}ms", "x-ratelimit-remaining-requests": "0",
                       "x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "999"}  # fmt: skip
        else:
            headers = {"Retry-After": f"{wait_s:g}"}
        return web.json_response({"error": error}, status=status, headers=headers)

    async def _play(self, name: str, key: str, request: web.Request) -> web.StreamResponse:
        if name.startswith("limited"):
            return self._limited(name, key, self.mixture.wait_s)
        self.played[name] += 1
        if name in ("unavailable", "overloaded", "broken"):
            status = 500 if name == "broken" else 503
            return web.json_response({"error": {"message": f"the model is {name}"}}, status=status)
        if name == "bad_json":
            return web.Response(text='{"choices": [{"mess', content_type="application/json")
        if name == "broke_off":
            return web.json_response({"error": {"code": 502, "message": "upstream failed"}})
        if name == "half":
            reply = web.StreamResponse(headers={"Content-Length": "500"})
            await reply.prepare(request)
            await reply.write(b'{"choices": [')
        assert request.transport
        request.transport.abort()
        return web.Response()


class RefusingServer:
    """The server, for the length of a `with`. url: of OpenAI's API; `base` is that of Gemini's."""

    def __init__(self, mixture: Mixture) -> None:
        self._mixture = mixture

    def __enter__(self) -> RefusingServer:
        here, there = FORKS.Pipe(duplex=False)
        self._process = FORKS.Process(target=_play, args=(self._mixture, there))
        self._process.start()
        there.close()
        with here:
            self.base = here.recv()
        self.url = f"{self.base}/v1"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.join()

    def seen(self) -> dict[str, Any]:
        """Calls and answers by request, faults played, seconds of slots, and the longest wait told to a request."""
        with urllib.request.urlopen(f"{self.base}/seen") as reply:
            seen: dict[str, Any] = json.load(reply)
            return seen


def _play(mixture: Mixture, there: Connection) -> None:
    asyncio.run(_serve(mixture, there))


async def _serve(mixture: Mixture, there: Connection) -> None:
    runner = web.AppRunner(_Server(mixture).app(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    there.send(f"http://127.0.0.1:{runner.addresses[0][1]}")
    await asyncio.Event().wait()
