"""Reading the reply to a chat completion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vibe_harness.backends.finish_reasons import NEVER_ENDED, outcome_of, without_reason
from vibe_harness.backends.remote.call_failed import CallFailed
from vibe_harness.backends.remote.reply_limits import members, told_tokens, word
from vibe_harness.records import Outcome, Response

# Names of errors without an HTTP status, and the corresponding status.
KINDS = {
    "rate_limit": 429, "too_many_requests": 429, "overloaded": 503, "unavailable": 503, "timeout": 504,
    "server_error": 500, "internal_error": 500, "bad_gateway": 502,
}  # fmt: skip
THOUGHTS = frozenset({"thinking", "reasoning"})  # types of content parts that do not belong to the answer


def error_in(reply: object) -> tuple[int | None, str, str] | None:
    """The error in a decoded body: its HTTP status, if any, its code, and its message."""
    if isinstance(reply, list) and len(reply) == 1:  # Google's servers wrap errors of streams in a list
        reply = reply[0]
    error = members(reply).get("error")
    if not error and members(reply).get("object") == "error":  # older versions of vLLM have no error object
        error = reply
    if not error:
        return None
    if not isinstance(error, dict):
        return None, "", str(error)
    return _status(error), str(error.get("code") or ""), str(error.get("message") or error)


def _status(error: Mapping[str, Any]) -> int | None:
    """The HTTP status that an error names, as a number or by name; None if it names none."""
    code = error.get("code")
    if isinstance(code, int | str) and str(code).isascii() and str(code).isdigit():
        return int(code)
    named = " ".join(str(error.get(name) or "").lower() for name in ("code", "type", "status"))
    return next((number for word, number in KINDS.items() if word in named), None)


def read_reply(request: str, reply: object, seconds: float, max_tokens: int | None = None) -> Response:
    """The response in a decoded JSON body.

    A reply without exactly one choice, or with an unknown finish reason, is an error; the reason is kept. A reply
    without a reason was ended by the model, unless it has as many tokens as allowed. Raises CallFailed if the server
    reports that the generation was interrupted.
    """

    def failed(why: str) -> Response:
        return Response(request, Outcome.ERROR, error=f"malformed reply: {why}", seconds=seconds)

    if not isinstance(reply, dict):
        return failed(f"not a JSON object but {str(reply)!r}")
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return failed("not exactly one choice with a message")
    text, refusal, reason = _text(message.get("content")), message.get("refusal"), choice.get("finish_reason")
    if text is None or not isinstance(refusal, str | None):
        return failed("its content is not text")
    if not isinstance(reason, str | None):
        return failed(f"its finish reason is not a word but {reason!r}")
    if reason is not None and reason.lower() in NEVER_ENDED:
        raise CallFailed(f"the server broke the answer off (finish reason {reason!r})", retry=True)
    usage = members(reply.get("usage"))
    output_tokens = told_tokens(usage.get("completion_tokens"))
    outcome, error = Outcome.REFUSED, None
    if not refusal:
        outcome = outcome_of(text, reason if reason is not None else without_reason(output_tokens, max_tokens))
        error = _why(outcome, reason, message, output_tokens)
    return Response(
        request,
        outcome,
        text=refusal or text,
        finish_reason=reason,
        input_tokens=told_tokens(usage.get("prompt_tokens")),
        audio_tokens=told_tokens(members(usage.get("prompt_tokens_details")).get("audio_tokens")),
        output_tokens=output_tokens,
        seconds=seconds,
        served_model=word(reply.get("model")),
        error=error,
    )


def _text(content: object) -> str | None:
    """The text of a message's content, which may be in parts; None if it is not text."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return None
    texts = [part.get("text") for part in content if part.get("type") not in THOUGHTS]
    return "".join(texts) if all(isinstance(text, str) for text in texts) else None


def _why(outcome: Outcome, reason: str | None, message: Mapping[str, Any], output_tokens: int | None) -> str | None:
    """Why there is no answer, if the reply shows it."""
    if outcome is Outcome.ERROR:
        return f"unknown finish reason {reason!r}"
    if outcome is not Outcome.EMPTY or not (message.get("reasoning_content") or message.get("reasoning")):
        return None
    spent = f" in {output_tokens} tokens" if output_tokens else ""
    return (
        f"the model thought{spent} (reasoning_content) and wrote no answer: switch its thinking off in its card, or "
        "allow more tokens"
    )


def words_of(body: Any, text: bytes) -> str:
    """The message in the body of an HTTP error, or else the beginning of the body."""
    error = error_in(body)
    if error is not None:
        return error[2]
    said: Mapping[str, Any] = body if isinstance(body, dict) else {}
    return str(said.get("message") or said.get("detail") or text[:300].decode("utf-8", "replace"))
