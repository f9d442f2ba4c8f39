"""The whole prompt as one string, for cards with a layout."""

from __future__ import annotations

from vibe_harness.cards.schema import ModelCard
from vibe_harness.records import Request


def joined(card: ModelCard, request: Request) -> str | None:
    """The prompt with the card's layout, or None if the model's own chat template applies.

    The template applies to cards without a layout, and to requests to audio models without a clip: the layout holds a
    placeholder for one, and engines answer to an empty placeholder as if there was a clip.
    """
    layout = card.layout
    if not (layout.before or layout.after or layout.end) or (card.audio and request.audio is None):
        return None
    return f"{layout.before}{layout.after}{request.prompt}{layout.end}"
