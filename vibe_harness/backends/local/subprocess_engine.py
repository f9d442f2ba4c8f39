"""An engine in a process of its own: its memory, the GPU's too, is free again once that process has ended."""

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
    """Runs another backend in a spawned process: requests and responses go through a pipe.

    Clips are decoded here, so that the engine's process computes and nothing else. What the engine prints goes to a
    log that is kept, and named, where it fails. A subclass names the backend, the packages that it needs and the extra
    that installs them.
    """

    Arguments: ClassVar[type[Options]]
    Connection: ClassVar[type[Options]]
    inside: ClassVar[str]  # "module:attribute" of the backend
    packages: ClassVar[tuple[str, ...]]
    extra: ClassVar[str]
    ahead: ClassVar[int] = 64  # requests given to the child beyond those it has answered

    @staticmethod
    def pinned(card: ModelCard) -> ModelCard:
        """The card with the digest of its files for a revision, where its weights lie in a folder."""
        return pinned(card)

    @classmethod
    def check_ready(cls, card: ModelCard) -> None:
        """Raise UserError where a package is missing."""
        for package in cls.packages:
            if importlib.util.find_spec(package) is None:
                raise UserError(
                    f"the model '{card.model}' needs the package '{package}': pip install 'vibe-harness[{cls.extra}]'"
                )

    def __init__(self, card: ModelCard, tasks: Sequence[Task]) -> None:
        """Start the process and wait until the engine stands."""
        self.check_ready(card)
        self.card = card
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        log, name = tempfile.mkstemp(prefix="vibe-harness-engine-", suffix=".log")
        os.close(log)
        self._log = Path(name)
        self._busy = True  # until it has said that it stands
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
        """What the engine says of itself."""
        return self._described

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Answers as they finish. When the caller stops early the engine is ended."""
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
        """End the process, and with it whatever it holds."""
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
        with contextlib.suppress(OSError):  # the engine is gone: what it answered before is received first
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
        hint = ": there was too little memory, most likely" if code == -signal.SIGKILL else ""
        self._failed = True
        return EngineError(f"the engine of '{self.card.model}' {how}{hint}. Its output: {self._log}")


def _same(wave: Waveform) -> Waveform:
    return wave


def _serve(pipe: Pipe, inside: str, card: ModelCard, log: str) -> None:
    """The child's life: open the engine, then answer until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle: it ends this process
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
    except Exception as error:  # noqa: BLE001 - whatever an engine raises is told to the parent, and ends this process
        traceback.print_exc()
        sys.stdout.flush()  # the parent may end this process as soon as it is told
        said = " ".join(str(error).split())[:500]
        pipe.send(("failed", ("crash", f"the engine of '{card.model}' failed: {type(error).__name__}: {said}")))


def _read(pipe: Pipe, arrived: Messages) -> None:
    """Take messages off the pipe at once, so that the parent never waits for the engine to do so."""
    while True:
        try:
            arrived.put(pipe.recv())
        except (EOFError, OSError):
            arrived.put(("gone", None))
            time.sleep(STOP_SECONDS)
            os._exit(1)  # the engine did not end by itself


def _asked(arrived: Messages) -> Iterator[Request]:
    while True:
        request = arrived.get()[1]
        if request is None:  # no more, or the parent has gone
            return
        yield request
