"""Reading the reply to a chat completion."""

from __future__ import annotations

from typing import Any

from vibe_harness.backends.finish_reasons import outcome_of
from vibe_harness.backends.remote.reply_limits import told_tokens
from vibe_harness.records import Outcome, Response


def read_reply(request: str, reply: Any, seconds: float) -> Response:
    """The response that a decoded JSON body holds.

    A reply without exactly one choice, or with a finish reason that is not known, is an error; the reason is kept.
    """

    def failed(why: str) -> Response:
        return Response(request, Outcome.ERROR, error=f"malformed reply: {why}", seconds=seconds)

    if not isinstance(reply, dict):
        return failed(f"not a JSON object but {str(reply)!r}")
    if reply.get("error"):
        fault = reply["error"]
        return failed(str(fault.get("message", fault) if isinstance(fault, dict) else fault))
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return failed("not exactly one choice with a message")
    text, refusal, reason = message.get("content"), message.get("refusal"), choice.get("finish_reason")
    if not isinstance(text, str | None) or not isinstance(refusal, str | None):
        return failed("its content is not text")
    outcome = Outcome.REFUSED if refusal else outcome_of(text or "", reason)
    usage = reply.get("usage")
    return Response(
        request,
        outcome,
        text=refusal or text or "",
        finish_reason=reason if isinstance(reason, str) else None,
        input_tokens=_count(usage, "prompt_tokens"),
        audio_tokens=_count(usage.get("prompt_tokens_details") if isinstance(usage, dict) else None, "audio_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        seconds=seconds,
        served_model=model if isinstance(model := reply.get("model"), str) else None,
        error=f"unknown finish reason {reason!r}" if outcome is Outcome.ERROR else None,
    )


def _count(usage: Any, name: str) -> int | None:
    return told_tokens(usage.get(name)) if isinstance(usage, dict) else None
