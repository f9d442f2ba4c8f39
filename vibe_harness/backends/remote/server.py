"""What the engines behind a server have in common: they are found when opened, and asked through one dispatcher."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from vibe_harness.backends.protocol import Options
from vibe_harness.backends.remote.api_keys import hidden, read_key, without_key
from vibe_harness.backends.remote.dispatcher import Dispatcher, ServerConnection
from vibe_harness.backends.remote.encoded_clips import EncodedClips
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.records import Request, Response

PROBE_TIMEOUT_S = 20.0  # of a question about the server, whole


class ServerEngine:
    """One model on one server. A subclass opens a client, looks for the model, and asks one request."""

    Arguments: ClassVar[type[Options]]
    Connection: ClassVar[type[ServerConnection]]
    several_clips: ClassVar[bool] = True

    def __init__(self, card: ModelCard, tasks: Sequence[Task]) -> None:
        """Raises UserError where the key is missing, EngineError where the server or the model is."""
        self.card = card
        self.arguments: Any = self.Arguments.model_validate(card.args)
        self.connection: Any = self.Connection.model_validate(card.connection)
        self._key = read_key(self.connection.api_key_env)
        self._clips = EncodedClips(card)
        self._named_otherwise = False
        self._dispatcher = Dispatcher(self._open())
        try:
            self._dispatcher.wait_for(self._find())
        except BaseException:
            self.close()
            raise

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Answers as they finish, in any order. Raises EngineError where no request can be answered."""
        return self._dispatcher.run(requests, self._prepare, self._asked)

    def close(self) -> None:
        """Cancel what is under way and close the connections."""
        self._dispatcher.close(self._leave)

    def _open(self) -> ServerConnection:
        """Make the client; returns how it may be asked. It does not retry: the dispatcher does."""
        raise NotImplementedError

    async def _leave(self) -> None:
        """Close the client."""
        raise NotImplementedError

    async def _find(self) -> None:
        """Find the server and the model, so that a wrong address, key or name stops a run before its first request."""
        raise NotImplementedError

    def _body(self, request: Request) -> dict[str, Any]:
        """What is sent: the clip decoded and encoded, ahead of the words."""
        raise NotImplementedError

    def _prepare(self, request: Request) -> bytes:
        return json.dumps(self._body(request)).encode("ascii")

    async def _asked(self, request: Request, prepared: bytes) -> Response:
        response = without_key(await self._send(request, prepared), self._key)
        if not self._named_otherwise and response.served_model and not _alike(self.card.id, response.served_model):
            self._named_otherwise = True
            said = hidden(response.served_model, self._key)
            warnings.warn(f"'{self.card.id}' was asked for, and the server answers as '{said}'", stacklevel=2)
        return response

    async def _send(self, request: Request, prepared: bytes) -> Response:
        """One call. Raises CallFailed where it failed, EngineError where every other would too."""
        raise NotImplementedError


def _alike(asked: str, served: str) -> bool:
    """Whether a server may call the model so: with its owner or a version, or without."""
    short, other = (name.casefold().rstrip("/").rsplit("/", 1)[-1] for name in (asked, served))
    return short.startswith(other) or other.startswith(short)
