"""A server that writes whatever bytes it is told to, right or wrong, and counts them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

ENOUGH = 300 << 20  # bytes of one reply, after which the server ends it: a client that reads on would read so much
PIECE = b"x" * (1 << 16)


class RawServer:
    """It reads each request whole, writes the bytes that `reply` gives for it, and closes the connection.

    lists: a question for a model, which the engines ask first, is answered well.
    """

    def __init__(self, reply: Callable[[], Iterable[bytes]], lists: bool = True) -> None:
        self._reply = reply
        self._lists = lists
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.requests: list[bytes] = []
        self.sent = 0  # bytes, which a client need not have read

    def serve(self) -> None:
        """Until it is closed."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                request = _request(connection)
                self.requests.append(request)
                listing = self._lists and request.startswith(b"GET ")
                for piece in MODELS if listing else self._reply():
                    connection.sendall(piece)
                    self.sent += len(piece)
            except OSError:  # the client has had enough
                return


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0].partition(b":")[2]) if lengths else 0
    while len(body) < length:
        body += _more(connection)
    return head + b"\r\n\r\n" + body


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(1 << 16)
    if not data:
        raise OSError("the client left")
    return data


@contextmanager
def raw_server(reply: Callable[[], Iterable[bytes]], lists: bool = True) -> Iterator[RawServer]:
    """The server, for the length of a `with`."""
    server = RawServer(reply, lists)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


def head(status: str = "200 OK", kind: str = "application/json", **headers: str) -> bytes:
    """The head of a reply; a header's name is written with _ for -."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in {"Content-Type": kind, **headers}.items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def endless(status: str = "200 OK", kind: str = "application/json") -> Iterator[bytes]:
    """Neither a length nor an end."""
    yield head(status, kind)
    yield b'{"x": "'
    for _ in range(ENOUGH // len(PIECE)):
        yield PIECE


def endless_chunks() -> Iterator[bytes]:
    """The same in chunks."""
    yield head(Transfer_Encoding="chunked")
    for _ in range(ENOUGH // len(PIECE)):
        yield f"{len(PIECE):x}\r\n".encode() + PIECE + b"\r\n"


def endless_head() -> Iterator[bytes]:
    """A head without an end."""
    yield b"HTTP/1.1 200 OK\r\n"
    for number in range(ENOUGH // len(PIECE)):
        yield f"X-{number}: ".encode() + PIECE + b"\r\n"


def whole(body: bytes, status: str = "200 OK", kind: str = "application/json", **headers: str) -> Iterator[bytes]:
    """One reply as it should be. It says that the connection is closed, or the client would ask again through it."""
    headers = {"Connection": "close", **headers}
    yield head(status, kind, Content_Length=str(len(body)), **headers) + body


MODELS = tuple(whole(b'{"object": "list", "data": [{"id": "loopback"}], "name": "models/loopback"}'))
