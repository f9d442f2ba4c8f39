"""Where the tests find the checkout and, where they are at hand, the shared recordings."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("VIBE_SHARED", ROOT.parent / "shared"))
needs_recordings = pytest.mark.skipif(
    not (SHARED / "corpora").is_dir(), reason="needs the shared folder of real recordings"
)
