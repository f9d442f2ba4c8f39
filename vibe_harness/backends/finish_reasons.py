"""What an engine's finish reason means: one outcome, and never a text that the model did not end itself."""

from __future__ import annotations

from vibe_harness.records import Outcome

ENDED = frozenset({"stop", "eos", "end_turn", "stop_sequence"})
CUT = frozenset({"length", "max_tokens", "model_length"})
FILTERED = frozenset(
    {"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii", "model_armor"}
)


def outcome_of(text: str, reason: object) -> Outcome:
    """The outcome of an answer. A reason that is not known here is an error: the text may not be the whole answer."""
    if reason in FILTERED:
        return Outcome.BLOCKED
    if reason not in ENDED | CUT:
        return Outcome.ERROR
    if not text.strip():
        return Outcome.EMPTY
    return Outcome.TRUNCATED if reason in CUT else Outcome.OK
