"""The `gemini` backend: Google's API. The key comes from the environment alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from pydantic import Field

from vibe_harness.backends.protocol import Options
from vibe_harness.backends.remote.api_keys import hidden
from vibe_harness.backends.remote.call_failed import CallFailed, failure_of
from vibe_harness.backends.remote.chat_reply import error_in, words_of
from vibe_harness.backends.remote.dispatcher import ServerConnection
from vibe_harness.backends.remote.gemini_reply import read_reply
from vibe_harness.backends.remote.http_client import ConnectionFailed, HttpClient, NotJson, Reply, client_version
from vibe_harness.backends.remote.reply_limits import LONGEST_TEXT, sent_on
from vibe_harness.backends.remote.server import PROBE_TIMEOUT_S, ServerEngine
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError
from vibe_harness.records import Request, Response

GOOGLE = "https://generativelanguage.googleapis.com"


def open_gemini(base_url: str | None, key: str | None, longest: int, connections: int = 0) -> HttpClient:
    """A client of Google's API, or of what stands in for it at another address. longest: bytes of a reply."""
    base = (base_url or GOOGLE).rstrip("/")
    return HttpClient(f"{base}/v1beta", {"x-goog-api-key": key or ""}, longest, connections)


def path_of(model: str) -> str:
    """Where a model stands below the base address."""
    return f"/{model}" if model.startswith(("models/", "tunedModels/")) else f"/models/{model}"


class GeminiArguments(Options):
    """What can change an answer."""

    top_p: float | None = Field(None, gt=0, le=1)
    thinking_budget: int | None = Field(
        None, ge=-1, description="tokens of thinking; 0 switches it off where it can be"
    )
    thinking_level: Literal["minimal", "low", "medium", "high"] | None = Field(None, description="of Gemini 3")
    ignores_temperature: bool = Field(False, description="the model is documented to ignore it: never greedy")


class GeminiConnection(ServerConnection):
    """What cannot change an answer."""

    base_url: str | None = Field(None, pattern=r"^https?://[^@?]+$", description="another address than Google's")
    api_key_env: str | None = Field("GEMINI_API_KEY", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")


class GeminiEngine(ServerEngine):
    """One Gemini model."""

    Arguments = GeminiArguments
    Connection = GeminiConnection

    def _open(self) -> ServerConnection:
        limits: ServerConnection = self.connection
        self._client = open_gemini(self.connection.base_url, self._key, LONGEST_TEXT, limits.concurrency)
        return limits

    async def _leave(self) -> None:
        await self._client.close()

    @classmethod
    def addresses(cls, card: ModelCard) -> tuple[str, ...]:
        """The address of a card's server."""
        return (GeminiConnection.model_validate(card.connection).base_url or GOOGLE,)

    def describe(self) -> Mapping[str, str]:
        """Client, address, and whether the model decodes greedily."""
        greedy = "no: the model ignores temperature" if self.arguments.ignores_temperature else "as asked"
        return {
            "backend": "gemini",
            "client": client_version(),
            **super().describe(),
            "structured_output": "json_schema",
            "temperature": greedy,
        }

    def _body(self, request: Request) -> dict[str, Any]:
        """Contents, the clip ahead of the words, and settings."""
        parts: list[dict[str, Any]] = [
            {"inlineData": {"mimeType": "audio/wav", "data": data}} for data in self._clips.of(request)
        ]
        parts.append({"text": request.prompt})
        settings: dict[str, Any] = {
            "temperature": request.generation.temperature,
            "seed": request.sampling_seed if request.generation.temperature > 0 else request.generation.seed,
            "maxOutputTokens": request.generation.max_tokens,
            "candidateCount": 1,
        }
        if self.arguments.top_p is not None:
            settings["topP"] = self.arguments.top_p
        thinking: dict[str, Any] = {}
        if self.arguments.thinking_budget is not None:
            thinking["thinkingBudget"] = self.arguments.thinking_budget
        if self.arguments.thinking_level is not None:
            thinking["thinkingLevel"] = self.arguments.thinking_level.upper()
        if thinking:
            settings["thinkingConfig"] = thinking
        if request.schema is not None:
            settings |= {"responseMimeType": "application/json", "responseJsonSchema": dict(request.schema)}
        body: dict[str, Any] = {"contents": [{"role": "user", "parts": parts}], "generationConfig": settings}
        if self.card.layout.system:
            body["systemInstruction"] = {"parts": [{"text": self.card.layout.system}]}
        return body

    async def _send(self, request: Request, prepared: bytes) -> Response:
        return await self._named(self._client, partial(self._ask, request, prepared))

    async def _ask(self, request: Request, prepared: bytes) -> Response:
        started = time.monotonic()
        path = f"{path_of(self.card.id)}:generateContent"
        body = self._read(await self._client.send("POST", path, self.connection.timeout_s, prepared))
        return read_reply(request.id, body, time.monotonic() - started, request.generation.max_tokens)

    async def _find(self) -> None:
        try:
            self._read(await self._client.send("GET", path_of(self.card.id), PROBE_TIMEOUT_S))
        except (ConnectionFailed, NotJson) as failure:
            raise EngineError(f"Gemini cannot be reached: {hidden(str(failure), self._key)}") from None
        except CallFailed as failure:
            if not failure.retry:
                raise EngineError(f"Gemini cannot be reached: {hidden(str(failure), self._key)}") from None

    def _read(self, reply: Reply) -> Any:
        """The decoded body. Raises CallFailed for an error, EngineError where it concerns every request."""
        body = reply.json(self._key) if reply.status == 200 else reply.json_or_none()
        error, status = error_in(body), reply.status
        if status == 200 and error is None:
            return body
        if status == 200 and error is not None:
            status = error[0] or status
        raise self._failure(status, reply, body)

    def _failure(self, status: int, reply: Reply, body: Any) -> Exception:
        said = hidden(words_of(body, reply.body), self._key)
        variable = self.connection.api_key_env
        if status in (401, 403) or (status == 400 and "API key" in said):
            return EngineError(f"Gemini refuses the key (HTTP {status}: {said}): check the key in {variable}")
        if 300 <= status < 400:
            return sent_on(self.address, reply.headers, self._key)
        if status == 404:
            return EngineError(f"Gemini has no model '{self.card.id}': {said}. Set another with id=NAME")
        return failure_of(status, said, reply.headers, body)
