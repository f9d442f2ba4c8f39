"""Where the tests find the checkout and, where they are at hand, the shared recordings."""

import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("VIBE_SHARED", ROOT.parent / "shared"))

# Starts processes of the tests' own in some milliseconds: a new interpreter that imports all of this takes seconds.
FORKS = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
if sys.platform != "win32":
    FORKS.set_forkserver_preload(
        ["vibe_harness.cli.main", "vibe_harness.cli.run", "vibe_harness.cli.terminal", "vibe_harness.pipeline.run",
         "vibe_harness.kinds.choice", "vibe_harness.backends.simulated", "vibe_harness.extraction.rules",
         "vibe_harness.metrics.ntvd", "vibe_harness.metrics.refusal_ntvd", "vibe_harness.metrics.diversity",
         "vibe_harness.stats.coverage", "vibe_harness.report.run_page", "pyarrow.parquet", "pyarrow.pandas_compat",
         "pandas", "scipy.stats", "soundfile", "soxr", "rapidfuzz", "rich.console", "rich.table", "tqdm",
         "tests.loopback"]
    )  # fmt: skip

needs_recordings = pytest.mark.skipif(
    not (SHARED / "corpora").is_dir(), reason="needs the shared folder of real recordings"
)


PATIENCE_S = 300.0  # for what must come sooner or later: a slow machine is no fault


def wait_until(here: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait for what another process does. Fails where it does not come."""
    deadline = time.monotonic() + patience_s
    while not here():
        assert time.monotonic() < deadline, f"not within {patience_s:.0f} s"
        time.sleep(0.01)


def held_port(port: int = 0) -> socket.socket:
    """A port of this machine that no other program is given until the socket is closed; any free one where 0.

    A server of the test's own may take it: the socket does not listen, and both say SO_REUSEADDR.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", port))
    return held


def hears_interrupts() -> None:
    """For `preexec_fn`: a process that a script started in the background ignores Ctrl-C, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
