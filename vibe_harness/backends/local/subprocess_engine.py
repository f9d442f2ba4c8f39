"""Engines in their own process, so that their memory, also on the GPU, is freed when the process ends."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.util
import multiprocessing
import os
import queue
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any, ClassVar

from vibe_harness.backends.local.checkpoint import pinned
from vibe_harness.backends.protocol import Backend, Options
from vibe_harness.backends.request_audio import clip_of
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError, HarnessError, UserError
from vibe_harness.records import Request, Response, Waveform

STOP_SECONDS = 10.0
Messages = queue.SimpleQueue[tuple[str, Request | None]]


class ChildEngine:
    """Runs another back end in a spawned process. Requests and responses go through a pipe.

    Clips are decoded in the parent, so that the engine's process only computes. Output of the engine goes to a log,
    which is kept and named in the error if it fails. Subclasses define the back end, the packages that it needs and the
    extra that installs them.
    """

    Arguments: ClassVar[type[Options]]
    Connection: ClassVar[type[Options]]
    inside: ClassVar[str]  # "module:attribute" of the back end
    packages: ClassVar[tuple[str, ...]]
    extra: ClassVar[str]
    ahead: ClassVar[int] = 64  # most requests sent to the child and not answered yet

    @staticmethod
    def pinned(card: ModelCard) -> ModelCard:
        """The card with the digest of its files for a revision, where its weights lie in a folder."""
        return pinned(card)

    @classmethod
    def check_ready(cls, card: ModelCard) -> None:
        """Raise UserError if a package is missing."""
        for package in cls.packages:
            if importlib.util.find_spec(package) is None:
                raise UserError(
                    f"the model '{card.model}' needs the package '{package}': pip install 'vibe-harness[{cls.extra}]'"
                )

    def __init__(self, card: ModelCard, tasks: Sequence[Task]) -> None:
        """Start the process and wait until the engine is ready."""
        self.check_ready(card)
        self.card = card
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        log, name = tempfile.mkstemp(prefix="vibe-harness-engine-", suffix=".log")
        os.close(log)
        self._log = Path(name)
        self._busy = True  # until it is ready
        self._failed = False
        self._process = context.Process(target=_serve, args=(theirs, self.inside, card, name))
        self._process.start()
        theirs.close()
        atexit.register(self.close)
        try:
            self._described: Mapping[str, str] = self._receive()
            self._busy = False
        except BaseException:
            self.close()
            raise

    def describe(self) -> Mapping[str, str]:
        """The engine's description."""
        return self._described

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield answers as they finish. If the caller stops early, the engine is closed."""
        source = iter(requests)
        more, waiting = True, 0
        self._busy = True
        try:
            self._send(("begin", None))
            while more or waiting:
                while more and waiting < self.ahead:
                    request = next(source, None)
                    more = request is not None
                    self._send(("end", None) if request is None else ("ask", self._packed(request)))
                    waiting += more
                if waiting:
                    response: Response = self._receive()
                    waiting -= 1
                    yield response
            self._busy = False
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the process and free its memory."""
        atexit.unregister(self.close)
        self._pipe.close()
        if self._busy:
            self._process.terminate()
        self._process.join(STOP_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        if not self._failed:
            self._log.unlink(missing_ok=True)

    def _packed(self, request: Request) -> Request:
        """The request with its clip decoded and checked, so that it can be sent."""
        wave = clip_of(request, self.card)
        return replace(request, audio=None if wave is None else partial(_same, wave))

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # the process has ended; its earlier answers are received first
            self._pipe.send(message)

    def _receive(self) -> Any:
        try:
            what, content = self._pipe.recv()
        except (EOFError, OSError):
            raise self._ended() from None
        if what == "failed":
            kind, said = content
            if kind == "crash":
                self._failed = True
                said += f". Its output: {self._log}"
            raise UserError(said) if kind == "user" else EngineError(said)
        return content

    def _ended(self) -> EngineError:
        self._process.join(STOP_SECONDS)
        code = self._process.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
        hint = ", probably because memory ran out" if code == -signal.SIGKILL else ""
        self._failed = True
        return EngineError(f"the engine of '{self.card.model}' {how}{hint}. Its output: {self._log}")


def _same(wave: Waveform) -> Waveform:
    return wave


def _serve(pipe: Pipe, inside: str, card: ModelCard, log: str) -> None:
    """Main function of the child: open the engine, then answer until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    arrived: Messages = queue.SimpleQueue()
    threading.Thread(target=_read, args=(pipe, arrived), daemon=True).start()
    try:
        module, name = inside.split(":")
        backend: Backend = getattr(importlib.import_module(module), name)(card, ())
        pipe.send(("described", backend.describe()))
        while arrived.get()[0] == "begin":
            for response in backend.generate(_asked(arrived)):
                pipe.send(("answer", response))
    except HarnessError as error:
        pipe.send(("failed", ("user" if isinstance(error, UserError) else "engine", str(error))))
    except BrokenPipeError:
        return
    except Exception as error:  # noqa: BLE001 - any error of an engine is sent to the parent and ends this process
        traceback.print_exc()
        sys.stdout.flush()  # the parent may end this process as soon as it has the message
        said = " ".join(str(error).split())[:500]
        pipe.send(("failed", ("crash", f"the engine of '{card.model}' failed: {type(error).__name__}: {said}")))


def _read(pipe: Pipe, arrived: Messages) -> None:
    """Read messages from the pipe at once, so that the parent never waits for the engine."""
    while True:
        try:
            arrived.put(pipe.recv())
        except (EOFError, OSError):
            arrived.put(("gone", None))
            time.sleep(STOP_SECONDS)
            os._exit(1)  # the engine did not end in time


def _asked(arrived: Messages) -> Iterator[Request]:
    while True:
        request = arrived.get()[1]
        if request is None:  # the end of the requests, or the parent has ended
            return
        yield request
