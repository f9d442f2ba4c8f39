"""What the engines behind a server have in common: they are found when opened, and asked through one dispatcher."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from vibe_harness.backends.protocol import Options
from vibe_harness.backends.remote.api_keys import hidden, read_key, without_key
from vibe_harness.backends.remote.dispatcher import Dispatcher, ServerConnection
from vibe_harness.backends.remote.encoded_clips import EncodedClips
from vibe_harness.backends.remote.first_call import FirstCall
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.cards.served_names import is_served_as
from vibe_harness.errors import EngineError
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
        self.served_model: str | None = None  # as the first reply that names it has it
        self._first_calls: defaultdict[object, FirstCall] = defaultdict(FirstCall)  # by the client of the server
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
        return self._dispatcher.run(requests, self._prepare, self._send)

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

    async def _named(self, server: object, call: Callable[[], Awaitable[Response]]) -> Response:
        """One call to a server, the first of all alone, until its reply shows which model answers.

        Raises what the call raises, and EngineError where the reply names another model than the card.
        """

        async def checked() -> Response:
            return self._checked(await call())

        return await self._first_calls[server].before_others(checked)

    def _checked(self, response: Response) -> Response:
        """The response without the key. Raises EngineError where the first name that it gives is another model's.

        A name that changes later is refused by `enforce_limits`, which knows the answers that are stored.
        """
        response = without_key(response, self._key)
        served = response.served_model
        if self.served_model is None and served is not None:
            if not is_served_as(self.card.id, served, self.card.served_as):
                raise EngineError(self._another_model(hidden(served, self._key)))
            self.served_model = served
        return response

    def _another_model(self, served: str) -> str:
        return (
            f"{self.address} was asked for '{self.card.id}' and answers as '{served}': nothing more was asked. If that "
            f"is the model you mean, go on with --accept-served-model {shlex.quote(served)}, or write "
            f"served_as: {json.dumps(served, ensure_ascii=False)} into the card '{self.card.model}'"
        )

    @property
    def address(self) -> str:
        """Where the server is, or the servers are."""
        return ", ".join(self.addresses(self.card))

    @classmethod
    def addresses(cls, card: ModelCard) -> tuple[str, ...]:
        """The addresses of a card's servers."""
        raise NotImplementedError

    def describe(self) -> Mapping[str, str]:
        """Where the server is and, once it has answered, the name that it gives the model."""
        named = {} if self.served_model is None else {"served_model": self.served_model}
        return {"server": self.address, **named}

    async def _send(self, request: Request, prepared: bytes) -> Response:
        """One call, by `_named`. Raises CallFailed where it failed, EngineError where every other would too."""
        raise NotImplementedError
