"""Commands in processes of their own that can be killed, torn, filled up and doubled, hundreds in some minutes.

A forkserver that has imported the harness starts each one in some milliseconds: a new interpreter would take seconds.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.support import FORKS

JOURNALS = ("responses.jsonl", "extractions.jsonl")
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")  # audit events of files, beside "open"
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _life(folder: Path, arguments: tuple[str, ...], full_at: int | None, killed_at: int | None) -> None:
    """What a process does: the command, silent; `full_at`: no file may grow past so many bytes.

    killed_at: ahead of the how many-th change below the output, which the last argument names.
    """
    from vibe_harness.cli.main import main

    os.chdir(folder)
    if killed_at is not None:
        _kill_ahead_of_change(killed_at, str(folder / arguments[-1]))
    if full_at is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (full_at, full_at))
    with (
        (folder / "said").open("a", encoding="utf-8") as said,
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(said),
    ):
        main(arguments)


def _kill_ahead_of_change(number: int, output: str) -> None:
    """Kill this process ahead of the `number`-th time that it opens a file there to write, renames or removes one."""
    left = number

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in CHANGES or (event == "open" and (arguments[2] or 0) & WRITES):
            path = arguments[0]
            if isinstance(path, str | bytes) and str(Path(os.fsdecode(path)).absolute()).startswith(output):
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


class Starter:
    """Starts the command in a folder. arguments: all but the output folder, which stands last."""

    def __init__(self, folder: Path, arguments: tuple[str, ...]) -> None:
        self.folder = folder
        self.arguments = arguments

    def start(self, output: str, full_at: int | None = None, killed_at: int | None = None) -> BaseProcess:
        life = (self.folder, (*self.arguments, output), full_at, killed_at)
        process = FORKS.Process(target=_life, args=life)
        process.start()
        return process

    def killed_ahead_of_each_change(self) -> Iterator[Path]:
        """An output folder for each change that the command makes to one, killed ahead of it and started again."""
        for change in count(1):
            output = f"killed ahead of change {change}"
            process = self.start(output, killed_at=change)
            process.join()
            if process.exitcode in (0, 1):
                return  # it makes no more changes than that
            assert process.exitcode == -signal.SIGKILL
            self.whole(output)
            yield self.folder / output

    def whole(self, output: str) -> float:
        """Run to the end; returns the seconds that it took."""
        begun = time.perf_counter()
        process = self.start(output)
        process.join(600)
        assert process.exitcode in (0, 1), (self.folder / "said").read_text(encoding="utf-8")
        return time.perf_counter() - begun


def lose_power(folder: Path, chance: random.Random) -> bool:
    """Tear a journal's end as a power loss does: cut in mid-record, or the last block left as zeros."""
    path = folder / chance.choice(JOURNALS)
    data = path.read_bytes() if path.exists() else b""
    if not data:
        return False
    lost = chance.randint(1, min(len(data), 3000))  # what was written within the last second
    torn = data[: len(data) - lost]
    if chance.random() < 0.5:
        torn = torn[: torn.rfind(b"\n") + 1] + bytes(chance.randint(1, 500))
    path.write_bytes(torn)
    return True
