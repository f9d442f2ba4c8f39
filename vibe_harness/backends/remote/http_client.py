"""The HTTP client of the package. It only contacts the given address, and limits the size of replies.

aiohttp is imported with the first call.
"""

from __future__ import annotations

import asyncio
import io
import json
import urllib.request
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vibe_harness.backends.remote.api_keys import hidden
from vibe_harness.backends.remote.call_failed import CallFailed
from vibe_harness.errors import UserError

if TYPE_CHECKING:
    import aiohttp

PACKED = frozenset({"gzip", "x-gzip", "deflate"})  # encodings of a reply that are unpacked
PIECE = 1 << 20  # bytes unpacked at a time
IDLE_S = 4.0  # idle connections are closed after this time, since servers silently close theirs after 5 s
UNREADABLE = (ValueError, RecursionError)  # raised by json.loads: not JSON, not UTF-8, or nested too deeply


class ConnectionFailed(CallFailed):
    """There is no reply: the server is unreachable, closed the connection, timed out, or does not speak HTTP."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retry=True)


class ReplyRefused(CallFailed):
    """A reply that is not read: it is too long, or its compression is not supported."""


class NotJson(CallFailed):
    """A reply that is not JSON: truncated, garbled, or a proxy's page. Another try may succeed."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete reply. body: unpacked."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self, key: str | None) -> Any:
        """Decode the body as JSON, whatever its content type. key: left out of errors. Raises NotJson."""
        try:
            return json.loads(self.body.decode("utf-8"))
        except UNREADABLE as error:
            begins = hidden(self.body[:300].decode("utf-8", "replace"), key)[:60]
            raise NotJson(f"the server's reply is not JSON ({error}): it begins with {begins!r}", retry=True) from None

    def json_or_none(self) -> Any:
        """The decoded body; None if it is not JSON, as in some errors."""
        try:
            return json.loads(self.body.decode("utf-8"))
        except UNREADABLE:
            return None


class HttpClient:
    """Calls one server. Connections are kept open between calls.

    Redirects are not followed, so that keys and clips are not sent to other hosts. Every call has one time limit, from
    the name lookup to the last byte. Replies are requested without compression; if a proxy compresses one, it is
    unpacked in pieces, since a few kB may become gigabytes. Proxies and certificates are those of the environment
    (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR).
    """

    def __init__(self, base_url: str, headers: Mapping[str, str], longest: int, connections: int = 0) -> None:
        """longest: limit of a reply in bytes, as received and unpacked. connections: most at a time; 0 for no limit."""
        self.base_url = base_url.rstrip("/")
        self._headers = {"Accept-Encoding": "identity", **headers}
        self._longest = longest
        self._connections = connections
        self._proxy = proxy_for(self.base_url)
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self, method: str, path: str, timeout_s: float, body: bytes | aiohttp.FormData | None = None
    ) -> Reply:
        """Make one call and return the reply, whatever its status.

        path: below the base address, or a whole address. body: JSON, or a form. Raises ConnectionFailed without a reply
        within `timeout_s`, and ReplyRefused for a reply that is not read.
        """
        import aiohttp

        session = self._session or self._open()
        url = path if "://" in path else self.base_url + path
        data: Any = body
        if isinstance(body, bytes):  # sent in pieces, so that a long clip does not block other calls
            data = aiohttp.BytesIOPayload(io.BytesIO(body), content_type="application/json")
        try:
            async with (
                asyncio.timeout(timeout_s),
                session.request(method, url, data=data, allow_redirects=False, proxy=self._proxy) as reply,
            ):
                return Reply(reply.status, reply.headers, await self._whole(reply))
        except TimeoutError:
            raise ConnectionFailed(f"no answer within {timeout_s:g} s") from None
        except aiohttp.ClientConnectorError as error:
            raise ConnectionFailed(f"the connection failed: {_words(error)}") from None
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientOSError, OSError) as error:
            raise ConnectionFailed(f"the server closed the connection before its reply was whole: {_words(error)}"
                                   ) from None  # fmt: skip
        except (aiohttp.ClientError, ValueError) as error:
            raise ConnectionFailed(f"the server's reply is not HTTP: {_words(error)}") from None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=IDLE_S),
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        return self._session

    async def _whole(self, reply: aiohttp.ClientResponse) -> bytes:
        encoding = reply.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in ("", "identity", *PACKED):
            raise ReplyRefused(f"the reply is compressed ({encoding[:40]}), although it was asked for as it is")
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32) if encoding in PACKED else None  # detect gzip or zlib
        came, whole = 0, bytearray()
        async for chunk in reply.content.iter_any():
            came += len(chunk)
            for piece in _unpacked(unpacker, chunk) if unpacker else (chunk,):
                whole += piece
                if max(came, len(whole)) > self._longest:
                    most = self._longest >> 20
                    raise ReplyRefused(f"the reply is longer than {most} MiB and was not read to its end")
        if unpacker and came and (not unpacker.eof or unpacker.unused_data):
            raise CallFailed("the reply, which is compressed, does not end where it should", retry=True)
        return bytes(whole)


def _unpacked(unpacker: Any, chunk: bytes) -> Iterator[bytes]:
    """Unpack a chunk, in pieces. unpacker: of zlib."""
    piece = chunk
    while piece:
        try:
            piece = unpacker.decompress(chunk, PIECE)
        except zlib.error as error:
            raise CallFailed(f"the reply cannot be unpacked: {error}", retry=True) from None
        chunk = unpacker.unconsumed_tail
        yield piece


def _words(error: BaseException) -> str:
    """The error's message as one short line."""
    return hidden(str(error) or type(error).__name__, None)


def proxy_for(url: str) -> str | None:
    """The environment's proxy for an address. Raises UserError for a proxy that does not speak HTTP."""
    parts = urlsplit(url)
    if not parts.hostname or urllib.request.proxy_bypass(parts.hostname):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if urlsplit(proxy).scheme not in ("http", "https"):
        raise UserError(f"the proxy for {url} ({urlsplit(proxy).scheme}://) does not speak HTTP: set HTTPS_PROXY anew")
    return proxy


def client_version() -> str:
    """Name and version of the client, for the record of a run."""
    import aiohttp

    return f"aiohttp {aiohttp.__version__}"
