"""A server that a model card starts (`serve`). It ends with the engine, or with this process, however that ends."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import math
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import filelock

from vibe_harness.backends.protocol import BACKENDS, Backend, Opener, open_backend
from vibe_harness.backends.remote import server_guard
from vibe_harness.backends.remote.call_failed import CallFailed
from vibe_harness.backends.remote.http_client import HttpClient
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard, Serve
from vibe_harness.errors import EngineError, UserError
from vibe_harness.progress import Progress
from vibe_harness.records import Outcome, Request, Response

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
POLL_S = 0.25
ANSWER_S = 5.0  # within which a server that is ready says so
ENDING_S = 5.0  # within which a server that listens no more has ended
LONGEST_ANSWER = 1 << 20
LAST_LINES = 12  # of the log, shown where the server ends by itself


def starting_servers(progress: Progress) -> Opener:
    """Opens engines as `open_backend`, and starts the server of a card that has `serve` first."""
    return partial(_open, progress)


def _open(progress: Progress, card: ModelCard, tasks: Sequence[Task]) -> Backend:
    return StartedBackend(progress, card, tasks) if card.serve else open_backend(card, tasks)


def check_startable(card: ModelCard) -> None:
    """Raise UserError where the server of a card with `serve` cannot be started: its address is not one of this
    machine, its interpreter or command does not exist, or another program answers at its port."""
    if card.serve is None:
        return
    port = _address(card).port
    _program(card, card.serve)
    if port:
        _check_free(card, port)


def check_ports(cards: Sequence[ModelCard]) -> None:
    """Raise UserError if a card starts its server at a port of this machine that another card has, too."""
    at: dict[int, ModelCard] = {}
    for card in cards:
        for port in _local_ports(card):
            other = at.setdefault(port, card)
            if other.model != card.model and (card.serve or other.serve):
                raise UserError(
                    f"the models '{other.model}' and '{card.model}' both have port {port} of this machine: give each a "
                    "port of its own in connection.base_url, or 0 for any free one"
                )


class StartedBackend:
    """An engine and its server, which is started and ended with it."""

    def __init__(self, progress: Progress, card: ModelCard, tasks: Sequence[Task]) -> None:
        """Raises UserError where the command cannot be run, EngineError where the server does not become ready."""
        self._server = StartedServer(card, progress)
        try:
            self._engine = open_backend(self._server.card, tasks)
        except BaseException:
            self._server.close()
            raise

    def describe(self) -> Mapping[str, str]:
        """As the engine, with the command that started the server."""
        return {**self._engine.describe(), **self._server.describe()}

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """As the engine. Raises EngineError, with the last lines of its log, once the server has ended by itself."""
        try:
            for response in self._engine.generate(requests):
                if response.outcome is Outcome.ERROR and not self._server.listens():
                    self._server.check(ENDING_S)
                yield response
        except EngineError:
            self._server.check(0 if self._server.listens() else ENDING_S)
            raise

    def close(self) -> None:
        """Close the engine and end its server."""
        try:
            self._engine.close()
        finally:
            self._server.close()


class StartedServer:
    """The process of a card's server. It has a port and a log of its own."""

    def __init__(self, card: ModelCard, progress: Progress) -> None:
        """Start the command and wait until the server is ready. Raises as `StartedBackend` does."""
        if card.serve is None:
            raise ValueError(f"the card '{card.model}' has no server to start")
        address, program = _address(card), _program(card, card.serve)
        port = address.port or _free_port(card.serve, card)
        self._serve = card.serve
        self._ended = False  # by itself
        self._port = _locked(card, port)
        log, name = tempfile.mkstemp(prefix="vibe-harness-server-", suffix=".log")
        self._log = Path(name)
        self._guard: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)
        try:
            _check_free(card, port)
            url = address._replace(netloc=_netloc(address, port))
            self.card = card.model_copy(update={"connection": {**card.connection, "base_url": url.geturl()}})
            self._guard = subprocess.Popen(
                [sys.executable, "-I", server_guard.__file__, program, *_arguments(card, card.serve, port)],
                stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, env=_environment(card.serve),
                start_new_session=True,
            )  # fmt: skip
            self._wait(self._guard, url._replace(path=self._serve.healthy).geturl(), progress)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(log)

    def describe(self) -> Mapping[str, str]:
        """The command, and the interpreter of its environment."""
        python = {} if self._serve.python is None else {"server_python": self._serve.python}
        return {"server_command": self._serve.command, **python}

    def listens(self) -> bool:
        """Whether something listens at the server's port."""
        return _listens(_address(self.card))

    def check(self, patience_s: float = 0) -> None:
        """Raise EngineError, with the last lines of its log, if the server has ended by itself, or does so soon."""
        if self._guard is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._guard.wait(patience_s)
            how = f"was killed by signal {code - 128}" if code > 128 else f"ended with code {code}"
            raise self._failure(f"the server of '{self.card.model}' {how}")

    def close(self) -> None:
        """End the server and every process that it has started."""
        atexit.unregister(self.close)
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
            try:
                self._guard.wait(server_guard.GRACE_S + ANSWER_S)
            except subprocess.TimeoutExpired:
                self._guard.kill()
                self._guard.wait()
        self._port.release()
        if not self._ended:
            self._log.unlink(missing_ok=True)

    def _wait(self, guard: subprocess.Popen[bytes], health: str, progress: Progress) -> None:
        limit, begun, told = self._serve.start_timeout_s, time.monotonic(), 0
        with progress.stage(f"waiting for the server of {self.card.model} (s)", math.ceil(limit)) as tick:
            while not asyncio.run(_is_ready(health)):
                self.check()
                waited = time.monotonic() - begun
                if waited > limit:
                    raise self._failure(
                        f"the server of '{self.card.model}' was not ready within {limit:g} s: {health} did not answer "
                        "with status 200"
                    )
                tick(int(waited) - told)
                told = int(waited)
                time.sleep(POLL_S)
        self.check()

    def _failure(self, what: str) -> EngineError:
        self._ended = True
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
        said = "".join(f"\n  {line[:300]}" for line in lines) if lines else " nothing"
        return EngineError(f"{what}. Its log, {self._log}, ends with:{said}")


async def _is_ready(health: str) -> bool:
    client = HttpClient(health, {}, LONGEST_ANSWER)
    try:
        return (await client.send("GET", health, ANSWER_S)).status == 200
    except CallFailed:
        return False
    finally:
        await client.close()


def _address(card: ModelCard) -> SplitResult:
    """The one address of a card's server. Raises UserError if there are several, or if it is another machine's."""
    urls = BACKENDS.get(card.backend).Connection.model_validate(card.connection).model_dump()["base_url"]
    address = urlsplit(urls[0])
    if len(urls) > 1 or address.hostname not in LOCAL or address.scheme != "http" or address.port is None:
        raise UserError(
            f"model '{card.model}': serve: a server is started on this machine: write one address, as "
            "base_url: http://127.0.0.1:8001/v1 (port 0: any free one)"
        )
    return address


def _local_ports(card: ModelCard) -> list[int]:
    urls = card.connection.get("base_url", ())
    addresses = [urlsplit(url) for url in ([urls] if isinstance(urls, str) else urls)]
    return [address.port for address in addresses if address.hostname in LOCAL and address.port]


def _netloc(address: SplitResult, port: int) -> str:
    host = f"[{address.hostname}]" if ":" in str(address.hostname) else address.hostname
    return f"{host}:{port}"


def _program(card: ModelCard, serve: Serve) -> str:
    """Path of the program that the command names. Raises UserError where it or the interpreter does not exist."""
    if os.name == "nt":
        raise UserError(f"model '{card.model}': serve: servers cannot be started on Windows: start it by hand")
    python = _interpreter(serve)
    if not os.access(python, os.X_OK):
        raise UserError(
            f"model '{card.model}': serve.python: there is no interpreter {python}: name that of the environment in "
            "which its server is installed (--model-args python=PATH)"
        )
    name = shlex.split(serve.command)[0]
    program = shutil.which(name, path=_environment(serve)["PATH"])
    if program is None:
        raise UserError(f"model '{card.model}': serve.command: there is no '{name}' beside {python} or in PATH")
    return program


def _interpreter(serve: Serve) -> Path:
    return Path(sys.executable if serve.python is None else serve.python).expanduser().absolute()


def _environment(serve: Serve) -> dict[str, str]:
    """The variables of the command: those of this process, with the programs of its own environment ahead in PATH."""
    environment = dict(os.environ)
    if serve.python is not None:  # modules of this process's environment are none of its
        for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
            environment.pop(name, None)
    folder = _interpreter(serve).parent  # not resolved: a virtual environment links to another's interpreter
    environment["PATH"] = f"{folder}{os.pathsep}{environment.get('PATH', os.defpath)}"
    return environment


def _arguments(card: ModelCard, serve: Serve, port: int) -> list[str]:
    return [word.replace("{port}", str(port)).replace("{id}", card.id) for word in shlex.split(serve.command)[1:]]


def _free_port(serve: Serve, card: ModelCard) -> int:
    if "{port}" not in serve.command:
        raise UserError(f"model '{card.model}': serve.command: with port 0 it needs {{port}}, which is filled in")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _locked(card: ModelCard, port: int) -> filelock.BaseFileLock:
    """Hold a port against other processes of vibe-harness, which may start a server at the same moment."""
    lock = filelock.FileLock(Path(tempfile.gettempdir()) / f"vibe-harness-{os.getuid()}-port-{port}.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise _taken(card, port) from None
    return lock


def _check_free(card: ModelCard, port: int) -> None:
    if _listens(_address(card), port):
        raise _taken(card, port)


def _listens(address: SplitResult, port: int | None = None) -> bool:
    try:
        socket.create_connection((str(address.hostname), port or address.port or 0), timeout=ANSWER_S).close()
    except OSError:
        return False
    return True


def _taken(card: ModelCard, port: int) -> UserError:
    return UserError(
        f"port {port} of this machine, where the server of '{card.model}' is to be started, is taken by another "
        "program: end that, use it without --allow-serve, or name another port (--model-args base_url=...; 0: any free "
        "one)"
    )
