"""The judge's page from outside: who is let in, and what is told."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from vibe_harness.errors import UserError
from vibe_harness.validation.judgments import Judge
from vibe_harness.validation.sample import read_sample
from vibe_harness.validation.server import FILES, JudgingServer


@pytest.fixture
def server(sampled: Path) -> Iterator[JudgingServer]:
    sample = read_sample(sampled)
    with JudgingServer(sample, Judge(sampled, sample, "ann")) as opened:
        thread = threading.Thread(target=opened.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield opened
        opened.shutdown()
        thread.join()


class Caller:
    """Calls the server with any headers at all."""

    def __init__(self, server: JudgingServer) -> None:
        self.server = server
        self.path = urlsplit(server.url).path
        self.first = next(server.judging._sample.items())[0]

    def __call__(
        self, method: str, path: str, body: bytes | None = None, whole: str | None = None, **headers: str
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=120)
        connection._encode_request = lambda request: request.encode("latin-1")  # which ASCII alone would not let out
        connection.putrequest(method, whole if whole is not None else self.path + path, skip_host=True)
        sent = {"Host": self.server.hosts[0], **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None:
            sent.setdefault("Content-Length", str(len(body)))
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        self.headers = answer.headers
        said = answer.status, answer.read()
        connection.close()
        return said

    def post(self, path: str, data: Any, **headers: str) -> tuple[int, bytes]:
        if isinstance(data, dict) and data.get("item") == "FIRST":
            data = data | {"item": self.first}
        return self("POST", path, json.dumps(data).encode(), **{"Content_Type": "application/json", **headers})


@pytest.fixture
def call(server: JudgingServer) -> Caller:
    return Caller(server)


RIGHT = {"item": "FIRST", "verdict": "right", "wrong_items": []}  # FIRST: the first of the sample, see Caller.post


def test_the_page_is_served_with_what_keeps_it_to_itself(call: Caller) -> None:
    for path in FILES:
        status, body = call("GET", path)
        assert status == 200 and body
        policy = call.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert call.headers["Cache-Control"] == "no-store" and call.headers["Referrer-Policy"] == "no-referrer"
        assert "Python" not in call.headers["Server"] and "Access-Control-Allow-Origin" not in call.headers


def test_it_listens_on_this_machine_alone(server: JudgingServer) -> None:
    assert server.server_address[0] == "127.0.0.1" and server.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "", "0.0.0.0:80"])
def test_a_name_that_was_rebound_is_turned_away(call: Caller, host: str) -> None:
    assert call("GET", "", Host=host)[0] == 403
    assert call.post("judgment", RIGHT, Host=host)[0] == 403


def test_localhost_is_let_in(call: Caller) -> None:
    assert call("GET", "progress", Host=call.server.hosts[1])[0] == 200


@pytest.mark.parametrize(
    "path", ["/", "/progress", "/x/progress", "//progress", "*", "/é/progress", "http://127.0.0.1/"]
)
def test_without_the_token_there_is_nothing(call: Caller, path: str) -> None:
    assert call("GET", "", whole=path)[0] == 404


@pytest.mark.parametrize(
    "path",
    ["server.py", "../server.py", "%2e%2e/server.py", "page.html", "response/", "response/-1", "response/99",
     "response/²", "response/1/2", "response/" + "9" * 30, "judgment", "/page.js"],
)  # fmt: skip
def test_nothing_else_is_served(call: Caller, path: str) -> None:
    assert call("GET", path)[0] == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://127.0.0.1"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Length": "1000000"}, 413),
        ({"Content_Length": "-1"}, 411),
        ({"Content_Length": "²"}, 411),
    ],
)
def test_no_other_page_can_write(call: Caller, headers: dict[str, str], status: int) -> None:
    assert call.post("judgment", RIGHT, **headers)[0] == status
    assert call("OPTIONS", "judgment", Origin="http://evil.example")[0] == 501
    assert not call.server.judging._judge.path.exists()


def test_the_page_itself_can(call: Caller) -> None:
    status, body = call.post("judgment", RIGHT, Origin=f"http://{call.server.hosts[0]}")
    assert status == 200 and json.loads(body)["judged"] == 1
    status, body = call.post("undo", {})
    assert status == 200 and json.loads(body)["undone"] == call.first and json.loads(body)["index"] == 0
    assert json.loads(call.post("undo", {})[1])["undone"] is None


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ([], 400), ("right", 400), ({}, 400), (RIGHT | {"verdict": "perhaps"}, 400), (RIGHT | {"wrong_items": 1}, 400),
        (RIGHT | {"item": "r999/occupation/1"}, 500), (RIGHT | {"wrong_items": ["x"]}, 500),
    ],
)  # fmt: skip
def test_a_judgment_that_is_none_is_not_stored(call: Caller, data: Any, status: int) -> None:
    answer, body = call.post("judgment", data)
    assert answer == status and (status == 400 or "error" in json.loads(body))
    assert call("POST", "judgment", b"{" * 1000, Content_Type="application/json")[0] == 400
    assert not call.server.judging._judge.path.exists()


def test_what_stands_behind_a_refused_body_is_no_request(server: JudgingServer) -> None:
    hidden = b"GET /x HTTP/1.1\r\n\r\n"
    head = f"POST /x/judgment HTTP/1.1\r\nHost: {server.hosts[0]}\r\nContent-Length: {len(hidden)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=120) as connection:
        connection.sendall(head + hidden)
        said = b""
        while part := connection.recv(4096):
            said += part
    assert said.count(b"HTTP/1.1 ") == 1


def test_the_judge_is_told_nothing_of_where_an_answer_comes_from(call: Caller, sampled: Path) -> None:
    sample = read_sample(sampled)
    told = b"".join(call("GET", f"response/{index}")[1] for index in range(20)) + call("GET", "progress")[1]
    secret = {"simulated", "rules", "gender", "accent", "dimension", "extractor", sample.runs[0].digest}
    secret |= {response.request for response in sample.responses}
    for word in secret:
        assert f'"{word}"'.encode() not in told, word


def test_a_disk_that_takes_no_more_is_told(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise UserError("judge-ann.jsonl: cannot be written: No space left on device")

    monkeypatch.setattr(Judge, "add", full)
    status, body = call.post("judgment", RIGHT)
    assert status == 500 and "No space left" in json.loads(body)["error"]


def test_a_port_that_is_taken_is_told(server: JudgingServer, sampled: Path) -> None:
    sample = read_sample(sampled)
    with pytest.raises(UserError, match=f"--port {server.server_port}"):
        JudgingServer(sample, Judge(sampled, sample, "ben"), server.server_port)
