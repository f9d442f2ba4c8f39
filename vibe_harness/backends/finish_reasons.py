"""The outcome that an engine's finish reason stands for."""

from __future__ import annotations

from vibe_harness.records import Outcome

ENDED = frozenset({"stop", "eos", "eos_token", "end_turn", "stop_sequence"})
CUT = frozenset({"length", "max_tokens", "model_length"})
FILTERED = frozenset(
    {"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii", "model_armor"}
)
NEVER_ENDED = frozenset({"error", "abort"})
"""Reasons of a server that stopped the generation; the request may be retried."""


def outcome_of(text: str, reason: str | None) -> Outcome:
    """The outcome of an answer. An unknown reason is an error, since the text may not be the whole answer.

    reason: as the engine names it, in any case.
    """
    known = reason.lower() if reason is not None else None
    if known in FILTERED:
        return Outcome.BLOCKED
    if known not in ENDED | CUT:
        return Outcome.ERROR
    if not text.strip():
        return Outcome.EMPTY
    return Outcome.TRUNCATED if known in CUT else Outcome.OK


def without_reason(output_tokens: int | None, max_tokens: int | None) -> str:
    """The finish reason of a reply that has none: "length" if it has as many tokens as allowed, else "stop"."""
    full = output_tokens is not None and max_tokens is not None and output_tokens >= max_tokens
    return "length" if full else "stop"
