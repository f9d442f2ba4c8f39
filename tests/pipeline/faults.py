"""Runs in processes of their own that can be killed, torn, filled up and doubled, hundreds in some minutes.

A forkserver that has imported the harness starts each one in some milliseconds: a new interpreter would take seconds.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.support import FORKS

JOURNALS = ("responses.jsonl", "extractions.jsonl")


def _life(folder: Path, arguments: tuple[str, ...], full_at: int | None) -> None:
    """What a process does: the command, silent; `full_at`: no file may grow past so many bytes."""
    from vibe_harness.cli.main import main

    os.chdir(folder)
    if full_at is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (full_at, full_at))
    with (
        (folder / "said").open("a", encoding="utf-8") as said,
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(said),
    ):
        main(arguments)


class Starter:
    """Starts the command in a folder."""

    def __init__(self, folder: Path, arguments: tuple[str, ...]) -> None:
        self.folder = folder
        self.arguments = arguments

    def start(self, output: str, full_at: int | None = None) -> BaseProcess:
        process = FORKS.Process(target=_life, args=(self.folder, (*self.arguments, "--output-path", output), full_at))
        process.start()
        return process

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
