"""What holds for every HTTP client: it asks the address that was named alone, and reads no reply without end.

Only imported where a server is asked: httpx2 comes with the SDKs.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2

from vibe_harness.backends.remote.reply_limits import ReplyRefused

PACKED = frozenset({"gzip", "x-gzip", "deflate"})  # of the encodings of a reply, those that are unpacked
PIECE = 1 << 20  # bytes that are unpacked at a time


class _Bounded(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A reply's body, unpacked, and given up where it grows too long or takes too long."""

    def __init__(self, stream: Any, longest: int, seconds: float, packed: bool) -> None:
        self._stream = stream
        self._longest = longest
        self._seconds = seconds
        self._ends_at = time.monotonic() + seconds
        self._came, self._read = 0, 0
        self._unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32) if packed else None  # tells gzip from deflate

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            yield from self._pieces(chunk)
        self._check_whole()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            for piece in self._pieces(chunk):
                yield piece
        self._check_whole()

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _pieces(self, chunk: bytes) -> Iterator[bytes]:
        self._came += len(chunk)
        for piece in _unpacked(self._unpacker, chunk) if self._unpacker else [chunk]:
            self._read += len(piece)
            if max(self._came, self._read) > self._longest:
                raise ReplyRefused(f"the reply is longer than {self._longest >> 20} MiB and was not read to its end")
            if time.monotonic() > self._ends_at:
                raise httpx2.ReadTimeout(f"the reply did not end within {self._seconds:g} s")
            yield piece

    def _check_whole(self) -> None:
        """Raise RemoteProtocolError for a compressed reply that lacks its end, or goes on after it."""
        if self._unpacker and self._came and (not self._unpacker.eof or self._unpacker.unused_data):
            raise httpx2.RemoteProtocolError("the reply, which is compressed, does not end where it should")


def _unpacked(unpacker: Any, chunk: bytes) -> Iterator[bytes]:
    """What a chunk stands for, piece by piece; the last one is empty. unpacker: of zlib."""
    piece = chunk
    while piece:
        try:
            piece = unpacker.decompress(chunk, PIECE)
        except zlib.error as error:
            raise httpx2.DecodingError(f"the reply cannot be unpacked: {error}") from None
        chunk = unpacker.unconsumed_tail
        yield piece


def client_arguments(longest: int, seconds: float, wait: bool = True) -> dict[str, Any]:
    """Arguments of an HTTP client: of httpx2.Client with `wait`, of httpx2.AsyncClient without.

    Redirects are not followed, so that a key and a clip go to no other host. Replies are asked for as they are; one
    that a proxy compresses all the same is unpacked piece by piece, since a few kB of it may stand for gigabytes.
    longest: bytes of a reply, as it comes and unpacked, past which reading it raises ReplyRefused.
    seconds: from its head to its end, past which reading it raises httpx2.ReadTimeout; the SDKs' own limit is one for
    each piece of it.
    """

    def bound(response: httpx2.Response) -> None:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", *PACKED):
            raise ReplyRefused(f"the reply is compressed ({encoding[:40]}), although it was asked for as it is")
        response.stream = _Bounded(response.stream, longest, seconds, encoding in PACKED)
        response.headers.pop("content-encoding", None)  # unpacked there, and not once more
        response.encoding = "utf-8"  # as JSON is, not a charset that the reply names: Python's are not all of text

    async def bound_later(response: httpx2.Response) -> None:
        bound(response)

    return {
        "follow_redirects": False,
        "headers": {"Accept-Encoding": "identity"},
        "event_hooks": {"response": [bound if wait else bound_later]},
    }
