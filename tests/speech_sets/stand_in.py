"""A stand-in for servers that speak and transcribe, and for Gemini's speech models, on the loopback."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import soundfile

RATE = 24_000


def tone(text: str) -> np.ndarray:
    """A tone as long as the text, its pitch after the letters."""
    time = np.arange(RATE * max(1, len(text)) // 20) / RATE
    return (0.3 * np.sin(2 * np.pi * (150 + sum(text.encode()) % 200) * time)).astype(np.float32)


class SpeechServer(ThreadingHTTPServer):
    """What it was asked, and how it is told to behave."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.heard = "what was said"  # the transcript of any clip
        self.busy = 0  # answers 429 so many times before the next good one
        self.silent = False
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: SpeechServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.busy:
            self.server.busy -= 1
            self._reply(b'{"error": {"message": "slow down"}}', "application/json", 429, {"Retry-After": "0"})
        elif self.path == "/v1/audio/speech":
            asked = json.loads(body)
            self.server.asked.append(asked)
            file = io.BytesIO()
            wave = tone(asked["input"]) * (0 if self.server.silent else 1)
            soundfile.write(file, wave, RATE, format=asked["response_format"].upper())
            self._reply(file.getvalue(), "audio/flac")
        elif self.path == "/v1/audio/transcriptions":
            head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
            form = {
                part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
                for part in BytesParser().parsebytes(head + body).get_payload()
            }
            samples, rate = soundfile.read(io.BytesIO(form.pop("file")))
            self.server.asked.append({key: value.decode() for key, value in form.items()} | {"rate": rate})
            assert len(samples)
            self._reply(json.dumps({"text": self.server.heard}).encode(), "application/json")
        else:
            assert self.path.endswith(":generateContent"), self.path
            asked = json.loads(body)
            self.server.asked.append(asked)
            samples = tone(asked["contents"][0]["parts"][0]["text"]) * (0 if self.server.silent else 1)
            data = base64.b64encode((samples * 32_767).astype("<i2").tobytes()).decode()
            blob = {"inlineData": {"mimeType": f"audio/L16;codec=pcm;rate={RATE}", "data": data}}
            reply = {"candidates": [{"content": {"role": "model", "parts": [blob]}, "finishReason": "STOP"}]}
            self._reply(json.dumps(reply).encode(), "application/json")

    def _reply(self, body: bytes, kind: str, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: pytest's output is for failures."""


@contextmanager
def speech_server() -> Iterator[SpeechServer]:
    """The server, for the length of a `with`."""
    server = SpeechServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
