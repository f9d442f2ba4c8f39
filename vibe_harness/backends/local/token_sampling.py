"""How an answer is drawn, where a card sets its own temperature."""

from __future__ import annotations

from vibe_harness.records import Request


def sampling_temperature(request: Request, of_card: float | None) -> float:
    """The temperature of one answer: the task's, or the card's in its place for free text (not under a schema)."""
    return request.generation.temperature if of_card is None or request.schema is not None else of_card
