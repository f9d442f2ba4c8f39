"""Tests of statistics simulate the level of a design as often as it is in use."""

import pytest

from vibe_harness.stats import level


@pytest.fixture(autouse=True)
def all_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level, "SIMULATIONS", 200)
