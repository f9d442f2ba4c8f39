"""What holds for every HTTP client: it asks the address that was named alone, and reads no reply without end.

Only imported where a server is asked: httpx2 comes with the SDKs.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2

from vibe_harness.backends.replies import ReplyRefused


class _Bounded(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A reply's body, given up where it grows too long or takes too long."""

    def __init__(self, stream: Any, longest: int, seconds: float) -> None:
        self._stream = stream
        self._longest = longest
        self._seconds = seconds
        self._ends_at = time.monotonic() + seconds
        self._read = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            yield self._counted(chunk)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield self._counted(chunk)

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _counted(self, chunk: bytes) -> bytes:
        self._read += len(chunk)
        if self._read > self._longest:
            raise ReplyRefused(f"the reply is longer than {self._longest >> 20} MiB and was not read to its end")
        if time.monotonic() > self._ends_at:
            raise httpx2.ReadTimeout(f"the reply did not end within {self._seconds:g} s")
        return chunk


def client_arguments(longest: int, seconds: float, wait: bool = True) -> dict[str, Any]:
    """Arguments of an HTTP client: of httpx2.Client with `wait`, of httpx2.AsyncClient without.

    Redirects are not followed, so that a key and a clip go to no other host. Replies come as they are: a few kB that
    are compressed may stand for gigabytes. longest: bytes of a reply, past which reading it raises ReplyRefused.
    seconds: from its head to its end, past which reading it raises httpx2.ReadTimeout; the SDKs' own limit is one for
    each piece of it.
    """

    def bound(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise ReplyRefused("the reply is compressed, although it was asked for as it is")
        response.stream = _Bounded(response.stream, longest, seconds)
        response.encoding = "utf-8"  # as JSON is, not a charset that the reply names: Python's are not all of text

    async def bound_later(response: httpx2.Response) -> None:
        bound(response)

    return {
        "follow_redirects": False,
        "headers": {"Accept-Encoding": "identity"},
        "event_hooks": {"response": [bound if wait else bound_later]},
    }
