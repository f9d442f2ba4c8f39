"""Single calls to a server from synchronous code, for speech synthesis and recognition."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from vibe_harness.backends.remote.api_keys import hidden
from vibe_harness.backends.remote.call_failed import CallFailed, failure_of
from vibe_harness.backends.remote.chat_reply import words_of
from vibe_harness.backends.remote.dispatcher import Patience, Tries
from vibe_harness.backends.remote.http_client import HttpClient, Reply
from vibe_harness.backends.remote.reply_limits import sent_on
from vibe_harness.errors import EngineError

if TYPE_CHECKING:
    import aiohttp

RETRIES = 5


class BlockingClient:
    """Calls a server, and retries temporary failures. Every call opens its own connection."""

    def __init__(self, client: Callable[[], HttpClient], where: str, timeout_s: float, key: str | None) -> None:
        """client: makes the client for a call. where: the server's address, for messages."""
        self._client = client
        self._where = where
        self._timeout_s = timeout_s
        self._key = key

    def post(self, what: str, path: str, body: Callable[[], bytes | aiohttp.FormData]) -> Reply:
        """The reply to one call. what: what is requested, for messages. body: makes the body for each try.

        Raises EngineError, in one line without the key, if the calls fail.
        """
        patience, tries = Patience(RETRIES), Tries(time.monotonic())
        while True:
            tries.sent_at = time.monotonic()
            try:
                return asyncio.run(self._try(path, body()))
            except CallFailed as failure:
                wait = patience.wait(tries, failure, time.monotonic())
                if wait is None:
                    raise EngineError(f"{self._where}: no {what}: {hidden(str(failure), self._key)}") from None
            time.sleep(wait)

    async def _try(self, path: str, body: bytes | aiohttp.FormData) -> Reply:
        client = self._client()
        try:
            reply = await client.send("POST", path, self._timeout_s, body)
        finally:
            await client.close()
        if 300 <= reply.status < 400:
            raise sent_on(self._where, reply.headers, self._key)
        if reply.status != 200:
            decoded = reply.json_or_none()
            raise failure_of(reply.status, words_of(decoded, reply.body), reply.headers, decoded)
        return reply
