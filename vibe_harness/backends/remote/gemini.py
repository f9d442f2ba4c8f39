"""The `gemini` backend: Google's API through google-genai. The key comes from the environment alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from vibe_harness.backends.finish_reasons import outcome_of
from vibe_harness.backends.protocol import Options
from vibe_harness.backends.remote.api_keys import hidden
from vibe_harness.backends.remote.dispatcher import CallFailed, ServerConnection, asked_wait
from vibe_harness.backends.remote.reply_limits import (
    GOOGLE,
    LONGEST_TEXT,
    MISREAD,
    ReplyRefused,
    sent_on,
    told_tokens,
    words_of,
)
from vibe_harness.backends.remote.server import ServerEngine
from vibe_harness.backends.request_audio import pieces_of, wav_bytes
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Request, Response

PROBE_TIMEOUT_MS = 20_000


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
    package = "google.genai"
    extra = "gemini"

    def _open(self) -> ServerConnection:
        import httpx2
        from google import genai
        from google.genai import types

        from vibe_harness.backends.remote.transport import client_arguments

        at_once = self.connection.concurrency
        self._http = httpx2.AsyncClient(
            limits=httpx2.Limits(max_connections=at_once, max_keepalive_connections=at_once),
            **client_arguments(LONGEST_TEXT, self.connection.timeout_s, wait=False),
        )
        self._client: Any = genai.Client(
            api_key=self._key,
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=self.connection.base_url,
                api_version="v1beta",
                timeout=int(self.connection.timeout_s * 1000),
                retry_options=types.HttpRetryOptions(attempts=1),  # without this, the SDK retries after 1 to 10 s
                httpx_async_client=self._http,
            ),
        )
        limits: ServerConnection = self.connection
        return limits

    async def _leave(self) -> None:
        await self._client.aio.aclose()
        await self._http.aclose()  # which the SDK leaves open, since it did not make it

    def describe(self) -> Mapping[str, str]:
        """SDK, address, and whether the model decodes greedily."""
        from google import genai

        greedy = "no: the model ignores temperature" if self.arguments.ignores_temperature else "as asked"
        return {
            "backend": "gemini",
            "sdk": f"google-genai {genai.__version__}",
            "server": self.connection.base_url or GOOGLE,
            "structured_output": "json_schema",
            "temperature": greedy,
        }

    def _prepare(self, request: Request) -> tuple[list[Any], Any]:
        """Contents, the clip ahead of the words, and settings."""
        from google.genai import types

        pieces = pieces_of(request, self.card)
        parts = [types.Part.from_bytes(data=wav_bytes(wave), mime_type="audio/wav") for wave in pieces]
        parts.append(types.Part.from_text(text=request.prompt))
        thinking = {
            name: value
            for name in ("thinking_budget", "thinking_level")
            if (value := getattr(self.arguments, name)) is not None
        }
        config = types.GenerateContentConfig(
            system_instruction=self.card.layout.system,
            temperature=request.generation.temperature,
            top_p=self.arguments.top_p,
            seed=request.sampling_seed if request.generation.temperature > 0 else request.generation.seed,
            max_output_tokens=request.generation.max_tokens,
            candidate_count=1,
            thinking_config=types.ThinkingConfig.model_validate(thinking) if thinking else None,
            response_mime_type=None if request.schema is None else "application/json",
            response_json_schema=None if request.schema is None else dict(request.schema),
        )
        return [types.Content(role="user", parts=parts)], config

    async def _send(self, request: Request, prepared: tuple[list[Any], Any]) -> Response:
        contents, config = prepared
        started = time.monotonic()
        reply = await self._call(
            self._client.aio.models.generate_content, model=self.card.id, contents=contents, config=config
        )
        return read_reply(request.id, reply, time.monotonic() - started)

    async def _find(self) -> None:
        try:
            await self._call(
                self._client.aio.models.get, model=self.card.id, config={"http_options": {"timeout": PROBE_TIMEOUT_MS}}
            )
        except CallFailed as fault:
            raise EngineError(f"Gemini cannot be reached: {fault}") from None

    async def _call(self, method: Any, **arguments: Any) -> Any:
        """One call. Raises Fault, or EngineError where the failure concerns every request."""
        import httpx2
        from google.genai import errors

        try:
            return await method(**arguments)
        except errors.APIError as error:
            raise self._fault(error) from None
        except ReplyRefused as error:
            raise CallFailed(str(error)) from None
        except MISREAD as error:
            raise CallFailed(f"malformed reply: {hidden(str(error), self._key)}") from None
        except httpx2.TimeoutException:
            raise CallFailed(f"no answer within {self.connection.timeout_s:g} s", again=True) from None
        except httpx2.HTTPError as error:
            raise CallFailed(f"the connection failed: {words_of(error, self._key)}", again=True) from None

    def _fault(self, error: Any) -> Exception:
        said = hidden(str(error.message or error), self._key)
        variable = self.connection.api_key_env
        if error.code in (401, 403) or (error.code == 400 and "API key" in said):
            return EngineError(f"Gemini refuses the key (HTTP {error.code}: {said}): check the key in {variable}")
        if 300 <= error.code < 400:
            return sent_on(self.connection.base_url or GOOGLE, error.response.headers, self._key)
        if error.code == 404:
            return EngineError(f"Gemini has no model '{self.card.id}': {said}. Set another with id=NAME")
        headers = getattr(error.response, "headers", {})
        return CallFailed(
            f"HTTP {error.code}: {said}",
            again=error.code in (408, 429, 500, 502, 503, 504),
            crowded=error.code in (429, 503),
            wait_s=asked_wait(headers),
        )


def read_reply(request: str, reply: Any, seconds: float) -> Response:
    """The response that a GenerateContentResponse holds. Thoughts are no part of the text."""
    usage, served = reply.usage_metadata, reply.model_version
    blocked = reply.prompt_feedback.block_reason if reply.prompt_feedback else None
    counts: dict[str, Any] = {
        "seconds": seconds,
        "served_model": served,
        "input_tokens": told_tokens(usage.prompt_token_count) if usage else None,
        "audio_tokens": _audio_tokens(usage),
        "output_tokens": _sum([usage.candidates_token_count, usage.thoughts_token_count]) if usage else None,
    }
    if blocked:
        return Response(request, Outcome.BLOCKED, finish_reason=f"prompt: {_word(blocked)}", **counts)
    if not reply.candidates or len(reply.candidates) != 1:
        return Response(request, Outcome.ERROR, error="malformed reply: not exactly one candidate", **counts)
    candidate = reply.candidates[0]
    parts = (candidate.content.parts if candidate.content else None) or []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    reason = _word(candidate.finish_reason)
    outcome = outcome_of(text, reason.lower() if reason else None)
    error = f"unknown finish reason {reason!r}" if outcome is Outcome.ERROR else None
    return Response(request, outcome, text=text, finish_reason=reason, error=error, **counts)


def _audio_tokens(usage: Any) -> int | None:
    """Prompt tokens of the clip, where the reply counts them apart."""
    details = (usage.prompt_tokens_details if usage else None) or []
    counts = [one.token_count for one in details if _word(one.modality) == "AUDIO"]
    return _sum(counts) if counts else None


def _sum(counts: list[int | None]) -> int | None:
    """Of counts of which one that is left out is 0; None where one of them is no count."""
    told = [told_tokens(count or 0) for count in counts]
    return None if None in told else sum(count or 0 for count in told)


def _word(reason: Any) -> str | None:
    return None if reason is None else str(getattr(reason, "value", reason))
