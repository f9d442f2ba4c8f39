"""Progress of a stage, for a person at a terminal or for nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tick = Callable[[int], None]
"""Takes the number of steps done since the last call."""


class Progress:
    """Counts nothing: for programs. A terminal's progress bar is one of these, in the command line."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Tick]:
        """A stage of `total` steps; call what it gives with the number of steps done."""
        yield lambda steps: None
