"""Open-ended tasks: the answer is free text, from which an extractor reads attributes."""

from __future__ import annotations

from vibe_harness.cards.schema import TaskCard
from vibe_harness.kinds.base import TaskKind


class OpenEndedKind(TaskKind):
    """The answer is free text, from which an extractor reads the attributes of the card."""

    def check_card(self, card: TaskCard) -> None:
        if not card.extraction.attributes:
            raise ValueError("extraction.attributes: name at least one")


OPEN_ENDED = OpenEndedKind()
