"""Kinds of task by name, and what a card has to know of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vibe_harness.registry import Registry

if TYPE_CHECKING:
    from vibe_harness.cards.schema import TaskCard


class CardKind(Protocol):
    """What a card has to know of its kind; `vibe_harness.kinds.TaskKind` has all that differs between kinds."""

    @property
    def variables(self) -> frozenset[str]:
        """Names that its templates are given besides those of every task."""

    def check_card(self, card: TaskCard) -> None:
        """Raise ValueError for a card that this kind cannot ask."""

    def sources(self, roots: Sequence[Path], card: TaskCard) -> Mapping[str, str]:
        """Further files that can change an answer: name -> digest. Raises UserError where one is missing."""

    def context(self, card: TaskCard) -> Mapping[str, Any]:
        """Values of `variables` to render a template with where no clip is at hand."""


KINDS: Registry[CardKind] = Registry(
    "kind of task",
    "vibe_harness.kinds",
    {
        "open_ended": "vibe_harness.kinds.open_ended:OPEN_ENDED",
        "choice": "vibe_harness.kinds.choice:CHOICE",
    },
)
