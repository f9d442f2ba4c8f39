"""What the engines behind a server have in common: they are found when opened, and asked through one dispatcher."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from vibe_harness.backends.protocol import Options
from vibe_harness.backends.remote.api_keys import read_key, without_key
from vibe_harness.backends.remote.dispatcher import Dispatcher, ServerConnection
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError
from vibe_harness.records import Request, Response


class ServerEngine:
    """One model on one server. A subclass opens the SDK's client, looks for the model, and asks one request."""

    Arguments: ClassVar[type[Options]]
    Connection: ClassVar[type[ServerConnection]]
    package: ClassVar[str]  # of the SDK, to import
    extra: ClassVar[str]  # that installs it
    several_clips: ClassVar[bool] = True

    def __init__(self, card: ModelCard, tasks: Sequence[Task]) -> None:
        """Raises UserError where the SDK or the key is missing, EngineError where the server or the model is."""
        try:
            importlib.import_module(self.package)
        except ImportError:
            raise UserError(
                f"the model '{card.model}' needs the package {self.package}: pip install 'vibe-harness[{self.extra}]'"
            ) from None
        self.card = card
        self.arguments: Any = self.Arguments.model_validate(card.args)
        self.connection: Any = self.Connection.model_validate(card.connection)
        self._key = read_key(self.connection.api_key_env)
        self._dispatcher = Dispatcher(self._open())
        try:
            self._dispatcher.wait_for(self._find())
        except BaseException:
            self.close()
            raise

    @classmethod
    def check_ready(cls, card: ModelCard) -> None:
        """Find the server and the model, and leave. Raises as opening does."""
        cls(card, ()).close()

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Answers as they finish, in any order. Raises EngineError where no request can be answered."""
        return self._dispatcher.run(requests, self._prepare, self._asked)

    def close(self) -> None:
        """Cancel what is under way and close the connections."""
        self._dispatcher.close(self._leave)

    def _open(self) -> ServerConnection:
        """Make the SDK's client; returns how it may be asked. It does not retry: the dispatcher does, honours any
        Retry-After, and slows down the other calls too."""
        raise NotImplementedError

    async def _leave(self) -> None:
        """Close the client."""
        raise NotImplementedError

    async def _find(self) -> None:
        """Find the server and the model, so that a wrong address, key or name stops a run before its first request."""
        raise NotImplementedError

    def _prepare(self, request: Request) -> Any:
        """What `_send` sends: the clip decoded and encoded, ahead of the words."""
        raise NotImplementedError

    async def _asked(self, request: Request, prepared: Any) -> Response:
        return without_key(await self._send(request, prepared), self._key)

    async def _send(self, request: Request, prepared: Any) -> Response:
        """One call. Raises Fault where it failed, EngineError where every other would too."""
        raise NotImplementedError
