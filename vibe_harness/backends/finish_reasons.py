"""What an engine's finish reason means: one outcome, and never a text that the model did not end itself."""

from __future__ import annotations

from vibe_harness.records import Outcome

ENDED = frozenset({"stop", "eos", "eos_token", "end_turn", "stop_sequence"})
CUT = frozenset({"length", "max_tokens", "model_length"})
FILTERED = frozenset(
    {"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii", "model_armor"}
)
NEVER_ENDED = frozenset({"error", "abort"})
"""Of a server that broke the generation off: the request is worth another try."""


def outcome_of(text: str, reason: str | None) -> Outcome:
    """The outcome of an answer. A reason that is not known here is an error: the text may not be the whole answer.

    reason: in the engine's word, in capitals or not.
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
    """The finish reason of a reply that names none: cut where it holds as many tokens as were allowed."""
    full = output_tokens is not None and max_tokens is not None and output_tokens >= max_tokens
    return "length" if full else "stop"
