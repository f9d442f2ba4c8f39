"""The whole prompt as one string, where the card lays it out."""

from __future__ import annotations

from vibe_harness.cards.schema import ModelCard
from vibe_harness.records import Request


def joined(card: ModelCard, request: Request) -> str | None:
    """The prompt with the card's layout around it, or None where the model's own chat template is to do it.

    That is so for a card without a layout, and for an audio model that is asked without a clip: its layout holds the
    placeholder of one, and engines answer to an empty placeholder as if they had heard something.
    """
    layout = card.layout
    if not (layout.before or layout.after or layout.end) or (card.audio and request.audio is None):
        return None
    return f"{layout.before}{layout.after}{request.prompt}{layout.end}"
