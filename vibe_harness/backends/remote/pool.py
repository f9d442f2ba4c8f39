"""Several servers of one model. Faster servers get more calls; a failing one is left out and tried again later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from vibe_harness.backends.remote.call_failed import CallFailed, Refusal
from vibe_harness.backends.remote.http_client import ConnectionFailed, HttpClient
from vibe_harness.errors import EngineError

T = TypeVar("T")

FIRST_PAUSE_S = 1.0  # seconds for which a failing server is left out; doubled each time that it fails again
LONGEST_PAUSE_S = 60.0
ILL_AFTER = (
    3  # calls in a row that a server failed: one that fails at once has the fewest under way, and draws them all
)


@dataclass
class Server:
    """One server and its state."""

    url: str
    client: HttpClient
    under_way: int = 0
    pause_s: float = field(default_factory=lambda: FIRST_PAUSE_S)
    failed: int = 0  # calls in a row that failed because of the server
    out_until: float | None = None  # on the loop's clock; None while it is in use
    tried: asyncio.Lock = field(default_factory=asyncio.Lock)


class ServerPool:
    """Sends each call to the server with the fewest calls under way, so that faster servers get more.

    identify: asks a server what it serves, before it is used and whenever it comes back, since it may have been
    restarted with other weights. Raises CallFailed if it cannot be reached or has a fault.
    """

    def __init__(self, servers: Sequence[Server], identify: Callable[[Server], Awaitable[str]]) -> None:
        self._servers = servers
        self._identify = identify
        self._identity: tuple[str, str] | None = None  # identity and address of the first server that answered

    async def open(self) -> None:
        """Identify every server. Raises EngineError if two differ, and CallFailed if none answers."""
        failure: CallFailed | None = None
        for server in self._servers:
            try:
                await self._check(server)
            except CallFailed as error:
                self._leave_out(server)
                failure = error
        if self._identity is None and failure is not None:
            raise failure

    async def send(self, call: Callable[[HttpClient], Awaitable[T]]) -> T:
        """Make one call with a client. If the server is unreachable, it is left out for some time."""
        server = await self._next()
        server.under_way += 1
        try:
            reply = await call(server.client)
        except ConnectionFailed:
            self._failed(server, gone=True)
            raise
        except CallFailed as failure:
            if failure.retry and failure.refusal is not Refusal.RATE:
                self._failed(server, gone=False)
            raise
        finally:
            server.under_way -= 1
        server.pause_s, server.failed = FIRST_PAUSE_S, 0
        return reply

    async def close(self) -> None:
        """Close the connections of all servers."""
        for server in self._servers:
            await server.client.close()

    def _failed(self, server: Server, gone: bool) -> None:
        server.failed += 1
        if (gone or server.failed >= ILL_AFTER) and len(self._servers) > 1 and server.out_until is None:
            self._leave_out(server)

    def _leave_out(self, server: Server) -> None:
        server.out_until = asyncio.get_running_loop().time() + server.pause_s
        server.pause_s = min(2 * server.pause_s, LONGEST_PAUSE_S)

    async def _next(self) -> Server:
        """The server with the fewest calls under way, of those that are in use or come back.

        Raises CallFailed if none is in use, after waiting for the first one to be tried again.
        """
        for last in (False, True):
            now = asyncio.get_running_loop().time()
            for server in self._servers:
                if server.out_until is not None and server.out_until <= now and not server.tried.locked():
                    await self._try_again(server)
            in_use = [server for server in self._servers if server.out_until is None]
            if in_use:
                return min(in_use, key=lambda server: server.under_way)
            if not last:
                back = min(server.out_until for server in self._servers if server.out_until is not None)
                await asyncio.sleep(max(0.05, back - now))
        raise CallFailed("none of the servers answers", retry=True)

    async def _try_again(self, server: Server) -> None:
        async with server.tried:
            try:
                await self._check(server)
            except CallFailed:
                self._leave_out(server)
            else:
                server.out_until = None

    async def _check(self, server: Server) -> None:
        identity = await self._identify(server)
        if self._identity is None:
            self._identity = identity, server.url
        elif identity != self._identity[0]:
            raise EngineError(
                f"{server.url} serves {identity or 'something else'}, and {self._identity[1]} "
                f"{self._identity[0] or 'something else'}: answers of two models or versions are never put together"
            )
