"""Serves the judge's page on this machine.

The URL contains a random token, which other users and programs do not know. Requests with another host name or origin
are refused, so web pages cannot reach the server by DNS rebinding or post to it.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import sys
from collections.abc import Mapping
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, ClassVar

from vibe_harness.errors import UserError
from vibe_harness.validation.evidence import segments
from vibe_harness.validation.judgments import Judge, Judgment, Verdict
from vibe_harness.validation.sample import Sample, SampledResponse, claims_of

HOST = "127.0.0.1"
LONGEST = 65_536  # bytes of a posted judgment
FILES = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class RequestRefused(Exception):
    """A request that is refused, with its HTTP status."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class JudgingPage:
    """The data of the page. It does not reveal the model, the group or the extractor."""

    def __init__(self, sample: Sample, judge: Judge) -> None:
        self._sample = sample
        self._judge = judge
        self._items = {
            response.id: [item for item, _, claim in claims_of(response) if claim.judged]
            for response in sample.responses
        }
        self._responses = [response for response in sample.responses if self._items[response.id]]
        self._index = {response.id: index for index, response in enumerate(self._responses)}
        self._total = sum(map(len, self._items.values()))

    def progress(self) -> dict[str, Any]:
        """Progress of the judge. `open`: index of the first response that is not fully judged, or None."""
        judged = self._judge.judgments()
        unfinished = (
            index
            for index, response in enumerate(self._responses)
            if any(item not in judged for item in self._items[response.id])
        )
        return {
            "judge": self._judge.name,
            "judged": len(judged),
            "total": self._total,
            "responses": len(self._responses),
            "open": next(unfinished, None),
        }

    def response(self, index: int) -> dict[str, Any]:
        """One response with its claims."""
        if not 0 <= index < len(self._responses):
            raise RequestRefused(HTTPStatus.NOT_FOUND)
        response = self._responses[index]
        task = self._sample.tasks[response.task]
        marked = {item: claim for item, _, claim in claims_of(response) if claim.judged}
        return {
            "index": index,
            "task": response.task,
            "prompt": task.prompts[response.variant],
            "text": segments(response.text, marked),
            "claims": self._claims(response),
            "progress": self.progress(),
        }

    def _claims(self, response: SampledResponse) -> list[dict[str, Any]]:
        judged = self._judge.judgments()
        attributes = self._sample.tasks[response.task].attributes
        found = []
        for item, name, claim in claims_of(response):
            if claim.judged:
                spec, judgment = attributes[name], judged.get(item)
                found.append({
                    "item": item,
                    "attribute": name.replace("_", " "),
                    "description": spec.description,
                    "allowed": None if spec.values == "open" else spec.values,
                    "reading": str(claim.reading),
                    "values": list(claim.values),
                    "raw": list(claim.raw),
                    "verdict": str(judgment.verdict) if judgment else None,
                    "wrong_items": list(judgment.wrong_items) if judgment else [],
                })  # fmt: skip
        return found

    def judge(self, posted: Mapping[str, Any]) -> dict[str, Any]:
        """Store a judgment on disk. Returns the progress."""
        try:
            wrong = tuple(str(item) for item in posted["wrong_items"])
            judgment = Judgment(str(posted["item"]), Verdict(posted["verdict"]), wrong)
        except (KeyError, TypeError, ValueError):
            raise RequestRefused(HTTPStatus.BAD_REQUEST) from None
        self._judge.add([judgment])
        return self.progress()

    def undo(self, posted: Mapping[str, Any]) -> dict[str, Any]:
        """Undo the latest judgment. `undone` is its item and `index` its response; None if there was none."""
        item = self._judge.undo()
        index = self._index[item.split("/")[0]] if item else None
        return {"undone": item, "index": index, "progress": self.progress()}


class JudgingServer(ThreadingHTTPServer):
    """Serves one judge's page on this machine's loopback address."""

    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # elsewhere it would let another program take over the port

    def __init__(self, sample: Sample, judge: Judge, port: int = 0) -> None:
        """port: 0 for any that is free. Raises UserError where it is taken."""
        self.judging = JudgingPage(sample, judge)
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise UserError(f"--port {port}: cannot be used: {error.strerror}") from None

    @cached_property
    def hosts(self) -> tuple[str, str]:
        """The names that the page may be called by."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.hosts[0]}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that closes the connection during an answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: JudgingServer
    protocol_version = "HTTP/1.1"
    server_version = "vibe-harness"
    sys_version = ""
    timeout = 60
    _posts: ClassVar = {"judgment": JudgingPage.judge, "undo": JudgingPage.undo}

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, find: Any) -> None:
        try:
            kind, body = find(self._admitted())
            self._send(HTTPStatus.OK, kind, body)
        except RequestRefused as refused:
            self.close_connection = True  # what was posted may stand unread in the connection
            self._send(refused.status, "text/plain; charset=utf-8", str(refused).encode())
        except UserError as error:  # nothing was stored: the page says so and why
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, *_as_json({"error": str(error)}))

    def _admitted(self) -> str:
        """The path after the token. Raises RequestRefused for a wrong token or host name."""
        if self.headers.get("Host") not in self.server.hosts:
            raise RequestRefused(HTTPStatus.FORBIDDEN)
        token, _, path = self.path.removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise RequestRefused(HTTPStatus.NOT_FOUND)
        return path

    def _get(self, path: str) -> tuple[str, bytes]:
        if path in FILES:
            name, kind = FILES[path]
            return kind, resources.files("vibe_harness.validation").joinpath(name).read_bytes()
        if path == "progress":
            return _as_json(self.server.judging.progress())
        what, _, number = path.partition("/")
        if what == "response" and number.isascii() and number.isdigit() and len(number) < 10:
            return _as_json(self.server.judging.response(int(number)))
        raise RequestRefused(HTTPStatus.NOT_FOUND)

    def _post(self, path: str) -> tuple[str, bytes]:
        if path not in self._posts:
            raise RequestRefused(HTTPStatus.NOT_FOUND)
        origin = self.headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.server.hosts]:
            raise RequestRefused(HTTPStatus.FORBIDDEN)
        if self.headers.get("Content-Type") != "application/json":  # which no form of another page can send
            raise RequestRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 10):
            raise RequestRefused(HTTPStatus.LENGTH_REQUIRED)
        if int(length) > LONGEST:
            raise RequestRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        try:
            posted = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            posted = None
        if not isinstance(posted, dict):
            raise RequestRefused(HTTPStatus.BAD_REQUEST)
        return _as_json(self._posts[path](self.server.judging, posted))

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal is the judge's, and the token stands in every path."""


def _as_json(data: Mapping[str, Any]) -> tuple[str, bytes]:
    return "application/json", json.dumps(data).encode("ascii")
