"""Reporting of progress. The base class reports nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tick = Callable[[int], None]
"""Takes the number of steps done since the last call."""


class Progress:
    """Receives the progress of a run and reports nothing. The command line overrides it with a progress bar."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Tick]:
        """Start a stage of `total` steps. Gives a function that takes the number of new steps done."""
        yield lambda steps: None

    def note(self, line: str) -> None:
        """Tell one line about the run."""
