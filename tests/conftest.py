"""What holds for all tests."""

import atexit
import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.browser import browser as browser
from tests.browser import page as page
from tests.command_line import quick as quick
from tests.command_line import tones as tones
from tests.command_line import vibe as vibe
from tests.run_folders import finished as finished
from tests.run_folders import ran as ran
from vibe_harness.stats import level


def pytest_configure(config: pytest.Config) -> None:
    """The level of a small design's test takes most of the time of a small run. The fast part makes a fifth of its
    simulations where it is not what is tested; tests/stats makes them all. Slow tests start processes of their own,
    whose figures have to be the same."""
    if config.option.markexpr == "not slow":
        level.SIMULATIONS = 40


# However slow or busy the machine is, a test says the same: time is no fault, draws have a seed, and no progress bar
# comes up beside what a command says after some seconds.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("steady")
os.environ["TQDM_DISABLE"] = "1"
if sys.__stdin__ is None:  # it was closed, and pytest's own in its place would fail who asks for its encoding
    sys.__stdin__ = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - for as long as the tests run
# What `evaluate` and `datasets` keep is this process's own: no other one's, no home's, and not there the next time.
CACHE = tempfile.TemporaryDirectory(prefix="vibe-harness-tests-")
atexit.register(CACHE.cleanup)
os.environ["HF_HOME"] = CACHE.name
os.environ["XDG_DATA_HOME"] = CACHE.name  # prepared corpora and checks of recordings
# No proxy stands between a test and a server of its own.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
