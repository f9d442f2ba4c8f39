"""Registry of task kinds, and the part of a kind that cards use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vibe_harness.registry import Registry

if TYPE_CHECKING:
    from vibe_harness.cards.schema import TaskCard


class CardKind(Protocol):
    """The part of a kind that cards use; `vibe_harness.kinds.base.TaskKind` is the whole interface."""

    @property
    def variables(self) -> frozenset[str]:
        """Template variables of this kind, in addition to those of every task."""

    def check_card(self, card: TaskCard) -> None:
        """Raise ValueError if the card is not valid for this kind."""

    def sources(self, roots: Sequence[Path], card: TaskCard) -> Mapping[str, str]:
        """Other files that can change an answer: name -> digest. Raises UserError if one is missing."""

    def context(self, card: TaskCard) -> Mapping[str, Any]:
        """Placeholder values of `variables`, to render a template without a clip."""


KINDS: Registry[CardKind] = Registry(
    "kind of task",
    "vibe_harness.kinds",
    {
        "open_ended": "vibe_harness.kinds.open_ended:OPEN_ENDED",
        "choice": "vibe_harness.kinds.choice:CHOICE",
    },
)
