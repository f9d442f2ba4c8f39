"""Where the tests find the checkout and, where they are at hand, the shared recordings."""

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("VIBE_SHARED", ROOT.parent / "shared"))
needs_recordings = pytest.mark.skipif(
    not (SHARED / "corpora").is_dir(), reason="needs the shared folder of real recordings"
)


def hears_interrupts() -> None:
    """For `preexec_fn`: a process that a script started in the background ignores Ctrl-C, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
