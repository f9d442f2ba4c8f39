"""What is refused of a server's reply, whatever its dialect."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from vibe_harness.backends.remote.api_keys import hidden
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Response

LONGEST_TEXT = 8 << 20  # bytes: an answer of 100,000 tokens, escaped and told twice, is 3 MB; a list of all models 1
LONGEST_SPEECH = 64 << 20  # bytes: a quarter of an hour at 24 kHz, in base64
MOST_TOKENS = 10**9  # of one request: a thousand times what the longest contexts hold, and far from what overflows


def sent_on(where: str, headers: Mapping[str, str], key: str | None) -> EngineError:
    """What a redirect means: nothing is answered at this address."""
    there = hidden(headers.get("Location", "elsewhere"), key)
    return EngineError(f"{where} sends on to {there}: name that address, if clips may go there")


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


def members(value: object) -> Mapping[str, object]:
    """The members of a JSON object; none where the value is something else."""
    return value if isinstance(value, dict) else {}


def word(value: object) -> str | None:
    """The value where it is a string that says something."""
    return value if isinstance(value, str) and value.strip() else None
