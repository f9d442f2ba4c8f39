"""All that is wrong with a card, told at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from vibe_harness.errors import UserError


class CardError(UserError):
    """A card that cannot be used. faults: each one found, as "FILE:LINE: what is wrong: what to do"."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class Faults:
    """Collects what is wrong with a card, so that a person is told everything at once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextmanager
    def at(self, place: str = "") -> Iterator[None]:
        """Keep a UserError of the block, ahead of it the place where the card asks for what failed."""
        try:
            yield
        except CardError as error:
            self._add(error.faults)
        except UserError as error:
            self._add([f"{place}: {error}" if place else str(error)])

    def _add(self, faults: Sequence[str]) -> None:
        self.found += [fault for fault in faults if fault not in self.found]

    def raise_if_any(self) -> None:
        """Raise CardError where anything was found."""
        if self.found:
            raise CardError(self.found)
