"""Collect all errors of a card and report them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from vibe_harness.errors import UserError


class CardError(UserError):
    """A card that cannot be used. faults: all its errors, each as "FILE:LINE: what is wrong: what to do"."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class Faults:
    """Collects the errors of a card, to report all of them at once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextmanager
    def at(self, place: str = "") -> Iterator[None]:
        """Catch a UserError raised in the block and record it. place: location in the card, put before the message."""
        try:
            yield
        except CardError as error:
            self._add(error.faults)
        except UserError as error:
            self._add([f"{place}: {error}" if place else str(error)])

    def _add(self, faults: Sequence[str]) -> None:
        self.found += [fault for fault in faults if fault not in self.found]

    def raise_if_any(self) -> None:
        """Raise CardError if any error was recorded."""
        if self.found:
            raise CardError(self.found)
