"""The sampling temperature of an answer."""

from __future__ import annotations

from vibe_harness.records import Request


def sampling_temperature(request: Request, of_card: float | None) -> float:
    """The temperature of one answer: the card's, if it has one, for free text; else the task's."""
    return request.generation.temperature if of_card is None or request.schema is not None else of_card
