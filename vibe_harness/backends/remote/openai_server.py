"""Any server that speaks OpenAI's chat completions and takes `input_audio`: vLLM's own, NIM, Mistral, OpenAI."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from vibe_harness.backends.protocol import Options
from vibe_harness.backends.remote.api_keys import hidden
from vibe_harness.backends.remote.chat_reply import read_reply
from vibe_harness.backends.remote.dispatcher import CallFailed, ServerConnection, asked_wait
from vibe_harness.backends.remote.pool import Server, ServerPool
from vibe_harness.backends.remote.reply_limits import (
    LONGEST_TEXT,
    UNREADABLE,
    ReplyRefused,
    cause_of,
    sent_on,
    words_of,
)
from vibe_harness.backends.remote.server import ServerEngine
from vibe_harness.backends.request_audio import pieces_of, wav_bytes
from vibe_harness.cards.schema import Lax
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Request, Response

OURS = frozenset({"model", "messages", "max_tokens", "max_completion_tokens", "temperature", "seed", "top_p",
                  "response_format", "stream", "n"})  # fmt: skip
IGNORED_BY_VLLM = frozenset({"guided_json", "guided_choice", "guided_regex", "guided_grammar"})
PROBE_TIMEOUT_S = 20.0


class OpenAIArguments(Options):
    """What can change an answer."""

    top_p: float | None = Field(None, gt=0, le=1)
    limit_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        "max_tokens", description="the name by which the server knows the token limit"
    )
    omit: Annotated[tuple[Literal["temperature", "seed"], ...], Lax] = Field(
        (), description="settings that the server does not take"
    )
    structured_output: Literal["json_schema", "json_object", "none"] = Field(
        "json_schema", description="how the server constrains an answer to JSON"
    )
    extra_body: dict[str, Any] = Field({}, description="further fields of the request's body")

    @field_validator("extra_body")
    @classmethod
    def _takes_effect(cls, value: dict[str, Any]) -> dict[str, Any]:
        if OURS & value.keys():
            raise ValueError(f"'{min(OURS & value.keys())}' is set by the harness itself")
        if IGNORED_BY_VLLM & value.keys():
            raise ValueError(f"'{min(IGNORED_BY_VLLM & value.keys())}' is silently ignored by vLLM: leave it out")
        return value


class OpenAIConnection(ServerConnection):
    """What cannot change an answer."""

    base_url: str | Annotated[tuple[str, ...], Lax] = Field(
        "http://localhost:8000/v1",
        description="address of the server, /v1 included; or a list of them, which share the work",
    )

    @field_validator("base_url")
    @classmethod
    def _no_secret(cls, value: str | tuple[str, ...]) -> tuple[str, ...]:
        urls = (value,) if isinstance(value, str) else value
        for url in urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("write it as http://HOST:PORT/v1")
            if parts.username or parts.password or parts.query:
                raise ValueError("no user, password or query in the address: a key goes into a variable (api_key_env)")
        urls = tuple(url.rstrip("/") for url in urls)
        if not urls or len(set(urls)) < len(urls):
            raise ValueError("write each address once")
        return urls


class OpenAIEngine(ServerEngine):
    """One model on one server or several that speak the API of OpenAI."""

    Arguments = OpenAIArguments
    Connection = OpenAIConnection
    package = "openai"
    extra = "openai"

    def _open(self) -> ServerConnection:
        import aiohttp
        import openai

        self._answered = False
        self._served: list[str] = []  # the models that the server lists
        self._engine: str | None = None  # what the server is, where it says so
        urls = self.connection.base_url
        self._where = ", ".join(urls)
        servers = [Server(url, self._client(url)) for url in urls]
        ill = (openai.InternalServerError, *UNREADABLE)
        self._lost = (openai.APIConnectionError, aiohttp.ClientError)  # the latter where what answers speaks no HTTP
        self._pool = ServerPool(servers, self._probe, self._lost, ill)
        at_once = self.connection.concurrency * len(urls)  # which is of one server
        limits: ServerConnection = self.connection.model_copy(update={"concurrency": at_once})
        return limits

    async def _leave(self) -> None:
        await self._pool.close()

    def describe(self) -> Mapping[str, str]:
        """Engine, address and what of the settings is not sent."""
        import openai

        described = {
            "backend": "openai",
            "sdk": f"openai {openai.__version__}",
            "server": self._where,
            "structured_output": self.arguments.structured_output,
        }
        if self._engine:
            described["engine"] = self._engine
        if self.arguments.omit:
            described["not_sent"] = ", ".join(self.arguments.omit)
        return described

    def _client(self, url: str) -> Any:
        import openai

        from vibe_harness.backends.remote.transport import client_arguments

        rules = client_arguments(LONGEST_TEXT, self.connection.timeout_s, wait=False)
        return openai.AsyncOpenAI(
            base_url=url,
            api_key=self._key or "none",
            max_retries=0,
            timeout=self.connection.timeout_s,
            # A third less processor time a call than the default.
            http_client=openai.DefaultAioHttpClient(**rules),
        )

    def _prepare(self, request: Request) -> dict[str, Any]:
        """The request's JSON body."""
        encoded = [base64.b64encode(wav_bytes(wave)).decode("ascii") for wave in pieces_of(request, self.card)]
        content: str | list[dict[str, Any]] = request.prompt
        if encoded:
            content = [{"type": "input_audio", "input_audio": {"data": data, "format": "wav"}} for data in encoded]
            content.append({"type": "text", "text": request.prompt})
        system = self.card.layout.system
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        body: dict[str, Any] = {"model": self.card.id, "messages": [*messages, {"role": "user", "content": content}]}
        body[self.arguments.limit_field] = request.generation.max_tokens
        seed = request.sampling_seed if request.generation.temperature > 0 else request.generation.seed
        for name, value in (("temperature", request.generation.temperature), ("seed", seed)):
            if name not in self.arguments.omit:
                body[name] = value
        if self.arguments.top_p is not None:
            body["top_p"] = self.arguments.top_p
        if request.schema is not None and self.arguments.structured_output == "json_schema":
            form = {"name": "answer", "strict": True, "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif request.schema is not None and self.arguments.structured_output == "json_object":
            body["response_format"] = {"type": "json_object"}
        return {**body, **self.arguments.extra_body}

    async def _send(self, request: Request, prepared: dict[str, Any]) -> Response:
        import openai

        started = time.monotonic()
        try:
            reply = await self._pool.send(lambda client: self._post(client, prepared))
        except openai.APIStatusError as error:
            return self._refusal(request, error)
        except openai.APITimeoutError:
            raise CallFailed(f"no answer within {self.connection.timeout_s:g} s", again=True) from None
        except (*self._lost, *UNREADABLE) as error:
            if isinstance(cause_of(error), ReplyRefused):  # the first versions of the SDK take it for a lost connection
                raise CallFailed(words_of(error, self._key)) from None
            if isinstance(error, UNREADABLE):
                raise CallFailed(f"the server's reply is not JSON: {error}") from None
            raise CallFailed(f"the connection failed: {words_of(error, self._key)}", again=True) from None
        response = read_reply(request.id, reply, time.monotonic() - started)
        self._answered = self._answered or response.outcome is not Outcome.ERROR
        return response

    async def _post(self, client: Any, body: Mapping[str, Any]) -> Any:
        """The decoded reply. Raises ValueError where it is no JSON, such as the page of a proxy."""
        # Not client.chat.completions.create, which walks the whole body and builds typed objects without checking
        # them: that took half of the processor time, and a malformed reply passed.
        reply = await client.post("/chat/completions", cast_to=object, body=body)
        if isinstance(reply, str):
            raise ValueError(f"it begins with {hidden(reply, self._key)[:60]!r}")
        return reply

    def _refusal(self, request: Request, error: Any) -> Response:
        """What an HTTP error means: for this request, for its next try, or for all requests."""
        status, said = error.status_code, hidden(_said(error), self._key)
        if status == 401 or (status == 403 and not self._answered):
            raise EngineError(self._key_trouble(status, said))
        if 300 <= status < 400:
            raise sent_on(self._where, error.response.headers, self._key)
        if status == 402 or error.code == "insufficient_quota":
            raise EngineError(f"{self._where}: the account has no credit left: {said}")
        if status == 404:
            raise EngineError(self._no_such_model(said))
        if error.code in ("content_filter", "content_policy_violation"):
            return Response(request.id, Outcome.BLOCKED, finish_reason=error.code, error=said)
        raise CallFailed(
            f"HTTP {status}: {said}",
            again=status in (408, 409, 425, 429) or (status >= 500 and status != 501),
            crowded=status in (429, 503),
            wait_s=asked_wait(error.response.headers),
        )

    async def _find(self) -> None:
        import openai

        try:
            await self._pool.open()
        except (*self._lost, openai.InternalServerError) as error:
            where = self._in_card("base_url=http://HOST:PORT/v1")
            raise EngineError(
                f"no server answers at {self._where} ({words_of(error, self._key)}): start it, or name another {where}"
            ) from None

    async def _probe(self, server: Server) -> str:
        """Find a server, and the model in its list where it has one, before its first request; what it says it is."""
        import openai

        try:
            reply = await self._get(server, "/models")
        except openai.AuthenticationError as error:
            raise EngineError(self._key_trouble(401, hidden(_said(error), self._key))) from None
        except openai.InternalServerError:
            if len(self.connection.base_url) > 1:  # the others do its work until it is well
                raise
            return ""
        except (openai.APIStatusError, *UNREADABLE):
            return ""  # a server without this list: the first request will tell
        rows = reply.get("data") if isinstance(reply, dict) else None
        rows = [
            row
            for row in (rows if isinstance(rows, list) else [])
            if isinstance(row, dict) and isinstance(row.get("id"), str)
        ]
        self._served = [row["id"] for row in rows]
        known = {name.removeprefix("models/") for name in self._served} | set(self._served)
        if rows and self.card.id not in known and not any("*" in name for name in known):
            raise EngineError(self._no_such_model())
        if any(row.get("owned_by") == "vllm" for row in rows):
            self._engine = await self._vllm_version(server)
        row: dict[str, Any] = next((row for row in rows if row["id"] == self.card.id), {})
        about = [
            hidden(str(row[name]), self._key) for name in ("id", "root", "max_model_len") if row.get(name) is not None
        ]
        return ", ".join([*about, *([self._engine] if self._engine else [])])

    async def _vllm_version(self, server: Server) -> str:
        import openai

        try:
            about = await self._get(server, f"{server.url.removesuffix('/v1')}/version")
        except (openai.APIError, *UNREADABLE):
            return "vllm"  # behind a proxy that passes on the API alone
        return hidden(f"vllm {about.get('version')}", self._key) if isinstance(about, dict) else "vllm"

    async def _get(self, server: Server, path: str) -> Any:
        return await server.client.get(path, cast_to=object, options={"timeout": PROBE_TIMEOUT_S, "max_retries": 1})

    def _key_trouble(self, status: int, said: str) -> str:
        variable = self.connection.api_key_env
        todo = f"check the key in {variable}" if variable else "name the variable that holds it: api_key_env=NAME"
        return f"{self._where} refuses the key (HTTP {status}: {said}): {todo}"

    def _no_such_model(self, said: str = "") -> str:
        listed = hidden(", ".join(sorted(self._served)[:20]), self._key)
        todo = f"It serves: {listed}" if listed else "Check the address (/v1?) and the id"
        where = self._in_card("id=NAME")
        return f"{self._where} has no model '{self.card.id}'{said and f': {said}'}. {todo}; name it {where}"

    def _in_card(self, setting: str) -> str:
        """Where a setting is made: an extractor's has its card alone."""
        return f"in the card '{self.card.model}' (for the model that is asked, --model-args {setting} does it too)"


def _said(error: Any) -> str:
    """An HTTP error's own words."""
    body = error.body
    message = body.get("message") or body.get("detail") if isinstance(body, dict) else None
    return str(message or error.message)
