"""What is refused of a server's reply, whatever its dialect."""

from __future__ import annotations

import warnings
from typing import Any

from vibe_harness.backends.remote.api_keys import hidden
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Response

LONGEST_TEXT = 8 << 20  # bytes: an answer of 100,000 tokens, escaped and told twice, is 3 MB; a list of all models 1
LONGEST_SPEECH = 64 << 20  # bytes: a quarter of an hour at 24 kHz, in base64
GOOGLE = "https://generativelanguage.googleapis.com"  # where Gemini's API is
MOST_TOKENS = 10**9  # of one request: a thousand times what the longest contexts hold, and far from what overflows


class ReplyRefused(ValueError):
    """A reply that is not read: longer than any that was asked for, or compressed in a way that is not unpacked."""


UNREADABLE = (
    ValueError,
    RecursionError,
)  # reading a body raises: no JSON, no UTF-8, a number too long, nested too deep; or a reply that is refused
MISREAD = (*UNREADABLE, AttributeError, TypeError)  # Google's SDK besides, where a field is of another kind


def cause_of(error: BaseException) -> BaseException:
    """What an SDK's error stands for: the first of its causes."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def words_of(error: BaseException, key: str | None) -> str:
    """The words of what an SDK's error stands for, in one short line, without the key."""
    cause = cause_of(error)
    return hidden(str(cause) or type(cause).__name__, key)


def sent_on(where: str, headers: Any, key: str | None) -> EngineError:
    """What a redirect means: nothing is answered at this address."""
    there = hidden(headers.get("location", "elsewhere"), key)
    return EngineError(f"{where} sends on to {there}: name that address, if clips may go there")


def failed(where: str, what: str, error: Any, key: str | None) -> EngineError:
    """What an SDK's error means where one failure ends the work: who gave no `what`, and why."""
    response = getattr(error, "response", None)
    if response is not None and 300 <= response.status_code < 400:
        return sent_on(where, response.headers, key)
    return EngineError(f"{where}: no {what}: {words_of(error, key)}")


def costs_untold(response: Response) -> bool:
    """Whether the model worked, be it for an empty answer, and its server did not tell how many tokens it took."""
    worked = response.outcome not in (Outcome.BLOCKED, Outcome.ERROR)
    return worked and None in (response.input_tokens, response.output_tokens)


def told_tokens(count: object) -> int | None:
    """A count of tokens as a server told it. What is none, such as -1, 2.5 or 10^30, is as good as not told."""
    if count is None or (isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_TOKENS):
        return count
    warnings.warn("the server told a count of tokens that is none: kept as not told", stacklevel=2)
    return None
