"""Any server that speaks OpenAI's chat completions and takes `input_audio`: vLLM's own, NIM, Mistral, OpenAI."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from vibe_harness.backends.protocol import Options
from vibe_harness.backends.remote.api_keys import hidden
from vibe_harness.backends.remote.call_failed import CallFailed, failure_of
from vibe_harness.backends.remote.chat_reply import error_in, read_reply, words_of
from vibe_harness.backends.remote.dispatcher import ServerConnection
from vibe_harness.backends.remote.http_client import ConnectionFailed, HttpClient, Reply, client_version
from vibe_harness.backends.remote.pool import Server, ServerPool
from vibe_harness.backends.remote.reply_limits import LONGEST_TEXT, members, sent_on
from vibe_harness.backends.remote.server import PROBE_TIMEOUT_S, ServerEngine
from vibe_harness.cards.schema import Lax, ModelCard
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Request, Response

OURS = frozenset({"model", "messages", "max_tokens", "max_completion_tokens", "temperature", "seed", "top_p",
                  "response_format", "stream", "n"})  # fmt: skip
IGNORED_BY_VLLM = frozenset({"guided_json", "guided_choice", "guided_regex", "guided_grammar"})


def open_openai(base_url: str, key: str | None, longest: int, connections: int = 0) -> HttpClient:
    """A client of a server that speaks OpenAI's API. longest: bytes of a reply."""
    return HttpClient(base_url, {"Authorization": f"Bearer {key or 'none'}"}, longest, connections)


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
    can_be_started = True

    def _open(self) -> ServerConnection:
        self._answered = False
        self._served: list[str] = []  # the models that the server lists
        self._engine: str | None = None  # what the server is, where it says so
        self._checkpoint: str | None = None  # what it has loaded under the model's name, likewise
        urls = self.connection.base_url
        self._where = self.address
        at_once = self.connection.concurrency * len(urls)  # which is of one server
        clients = [open_openai(url, self._key, LONGEST_TEXT, at_once) for url in urls]
        self._pool = ServerPool([Server(url, client) for url, client in zip(urls, clients, strict=True)], self._probe)
        limits: ServerConnection = self.connection.model_copy(update={"concurrency": at_once})
        return limits

    async def _leave(self) -> None:
        await self._pool.close()

    @classmethod
    def addresses(cls, card: ModelCard) -> tuple[str, ...]:
        """The addresses of a card's servers."""
        urls: tuple[str, ...] = OpenAIConnection.model_validate(card.connection).base_url  # type: ignore[assignment]
        return urls

    def describe(self) -> Mapping[str, str]:
        """Engine, address and what of the settings is not sent."""
        described = {
            "backend": "openai",
            "client": client_version(),
            **super().describe(),
            "structured_output": self.arguments.structured_output,
        }
        if self._engine:
            described["engine"] = self._engine
        if self._checkpoint:
            described["checkpoint"] = self._checkpoint
        if self.arguments.omit:
            described["not_sent"] = ", ".join(self.arguments.omit)
        return described

    def _body(self, request: Request) -> dict[str, Any]:
        encoded = self._clips.of(request)
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

    async def _send(self, request: Request, prepared: bytes) -> Response:
        response = await self._pool.send(
            lambda client: self._named(client, partial(self._ask, client, request, prepared))
        )
        self._answered = self._answered or response.outcome is not Outcome.ERROR
        return response

    async def _ask(self, client: HttpClient, request: Request, body: bytes) -> Response:
        started = time.monotonic()
        reply = await client.send("POST", "/chat/completions", self.connection.timeout_s, body)
        answer = reply.json(self._key) if reply.status == 200 else reply.json_or_none()
        error = error_in(answer)
        if reply.status == 200 and error is None:
            return read_reply(request.id, answer, time.monotonic() - started, request.generation.max_tokens)
        status = reply.status
        if status == 200 and error is not None:  # an error may come under a status of success, with its own within
            status = error[0] or status
        return self._refusal(request, status, reply, answer)

    def _refusal(self, request: Request, status: int, reply: Reply, body: Any) -> Response:
        """What an HTTP error means: for this request, for its next try, or for all requests."""
        said = hidden(words_of(body, reply.body), self._key)
        error = error_in(body)
        code = error[1] if error else ""
        if status == 401 or (status == 403 and not self._answered):
            raise EngineError(self._key_trouble(status, said))
        if 300 <= status < 400:
            raise sent_on(self._where, reply.headers, self._key)
        if status == 402 or code == "insufficient_quota":
            raise EngineError(f"{self._where}: the account has no credit left: {said}")
        if status == 404:
            raise EngineError(self._no_such_model(said))
        if code in ("content_filter", "content_policy_violation"):
            return Response(request.id, Outcome.BLOCKED, finish_reason=code, error=said)
        raise failure_of(status, said, reply.headers, body)

    async def _find(self) -> None:
        try:
            await self._pool.open()
        except CallFailed as failure:
            where = self._in_card("base_url=http://HOST:PORT/v1")
            raise EngineError(
                f"no server answers at {self._where} ({hidden(str(failure), self._key)}): start it"
                f"{' (the card does so with --allow-serve)' if self.card.serve else ''}, or name another {where}"
            ) from None

    async def _probe(self, server: Server) -> str:
        """Find a server, and the model in its list where it has one, before its first request; what it says it is."""
        rows = await self._listed(server)
        self._served = [row["id"] for row in rows]
        known = {name.removeprefix("models/") for name in self._served} | set(self._served)
        if rows and self.card.id not in known and not any("*" in name for name in known):
            raise EngineError(self._no_such_model())
        if any(row.get("owned_by") == "vllm" for row in rows):
            self._engine = await self._vllm_version(server)
        root = next((row.get("root") for row in rows if row["id"] == self.card.id), None)
        self._checkpoint = hidden(root, self._key) if isinstance(root, str) else None
        about = [hidden(one, self._key) for one in _about(rows, self.card.id)]
        return ", ".join([*about, *([self._engine] if self._engine else [])])

    async def _listed(self, server: Server) -> list[dict[str, Any]]:
        """The models that a server lists; none where it has no list: the first request tells."""
        try:
            reply = await server.client.send("GET", "/models", PROBE_TIMEOUT_S)
        except ConnectionFailed:
            raise
        except CallFailed:  # a list that cannot be read
            return []
        body = reply.json_or_none()
        said = hidden(words_of(body, reply.body), self._key)
        if reply.status == 401:
            raise EngineError(self._key_trouble(401, said))
        if reply.status >= 500 and len(self.connection.base_url) > 1:  # the others do its work until it is well
            raise failure_of(reply.status, said, reply.headers, None)
        return _rows(body) if reply.status == 200 else []

    async def _vllm_version(self, server: Server) -> str:
        try:
            reply = await server.client.send("GET", f"{server.url.removesuffix('/v1')}/version", PROBE_TIMEOUT_S)
        except CallFailed:
            return "vllm"  # behind a proxy that passes on the API alone
        about = reply.json_or_none() if reply.status == 200 else None
        return hidden(f"vllm {about.get('version')}", self._key) if isinstance(about, dict) else "vllm"

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


def _rows(listed: object) -> list[dict[str, Any]]:
    """The models of a list, those with a name."""
    rows = members(listed).get("data")
    return [
        row
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict) and isinstance(row.get("id"), str)
    ]


def _about(rows: list[dict[str, Any]], model: str) -> list[str]:
    """What a list says of a model."""
    row: dict[str, Any] = next((row for row in rows if row["id"] == model), {})
    return [str(row[name]) for name in ("id", "root", "max_model_len") if row.get(name) is not None]
