"""Reading Gemini's reply to generateContent."""

from __future__ import annotations

from typing import Any

from vibe_harness.backends.finish_reasons import outcome_of, without_reason
from vibe_harness.backends.remote.reply_limits import members, told_tokens, word
from vibe_harness.records import Outcome, Response


def read_reply(request: str, reply: object, seconds: float, max_tokens: int | None = None) -> Response:
    """The response in a decoded JSON body. Thoughts are not part of the text.

    A reply without a finish reason was ended by the model, unless it has as many tokens as allowed.
    """
    if not isinstance(reply, dict):
        return Response(request, Outcome.ERROR, error=f"malformed reply: not a JSON object but {str(reply)!r}")
    usage = members(reply.get("usageMetadata"))
    output_tokens = _sum(usage, "candidatesTokenCount", "thoughtsTokenCount")
    counts: dict[str, Any] = {
        "seconds": seconds,
        "served_model": word(reply.get("modelVersion")),
        "input_tokens": told_tokens(usage.get("promptTokenCount")),
        "audio_tokens": _audio_tokens(usage.get("promptTokensDetails")),
        "output_tokens": output_tokens,
    }

    def failed(why: str) -> Response:
        return Response(request, Outcome.ERROR, error=f"malformed reply: {why}", **counts)

    blocked = members(reply.get("promptFeedback")).get("blockReason")
    if blocked:
        return Response(request, Outcome.BLOCKED, finish_reason=f"prompt: {blocked}", **counts)
    candidates = reply.get("candidates")
    candidate = candidates[0] if isinstance(candidates, list) and len(candidates) == 1 else None
    if not isinstance(candidate, dict):
        return failed("not exactly one candidate")
    text, reason = _text(members(candidate.get("content")).get("parts")), candidate.get("finishReason")
    if text is None:
        return failed("its content is not text")
    if not isinstance(reason, str | None):
        return failed(f"its finish reason is not a word but {reason!r}")
    outcome = outcome_of(text, reason if reason is not None else without_reason(output_tokens, max_tokens))
    error = f"unknown finish reason {reason!r}" if outcome is Outcome.ERROR else None
    return Response(request, outcome, text=text, finish_reason=reason, error=error, **counts)


def _text(parts: object) -> str | None:
    """The text of all parts except thoughts; None if there are other parts."""
    rows = [] if parts is None else parts
    if not isinstance(rows, list) or not all(isinstance(part, dict) for part in rows):
        return None
    texts = [part["text"] for part in rows if part.get("text") and not part.get("thought")]
    return "".join(texts) if all(isinstance(text, str) for text in texts) else None


def _audio_tokens(details: object) -> int | None:
    """Prompt tokens of the clip, if the reply counts them separately."""
    rows = details if isinstance(details, list) else []
    counts = [told_tokens(row.get("tokenCount")) for row in rows if members(row).get("modality") == "AUDIO"]
    return None if not counts or None in counts else sum(count or 0 for count in counts)


def _sum(usage: Any, *names: str) -> int | None:
    """Sum of counts, where missing ones are 0; None if all are missing, or one is not a count."""
    if not usage:
        return None
    told = [told_tokens(usage.get(name) or 0) for name in names]
    return None if None in told else sum(count or 0 for count in told)
