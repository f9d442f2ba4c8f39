"""Keys come from the environment alone, and never reach a log, a run folder or an error text."""

from __future__ import annotations

import os
from dataclasses import replace

from vibe_harness.errors import UserError
from vibe_harness.records import Response


def read_key(variable: str | None) -> str | None:
    """The key in an environment variable, None where no variable is named. Raises UserError where it is not set."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UserError(f"no key: set the environment variable {variable} (api_key_env of the model card)")
    return key


LONG = 12  # letters: a key that is shorter may be a word, and words of an answer stay as they are


def hidden(text: str, key: str | None) -> str:
    """The text in one short line, without the key."""
    text = " ".join(text.split())
    return (text.replace(key, "[key]") if key else text)[:300]


def kept_words(text: str, key: str | None) -> str:
    """What a server said, to be kept: its words as they are, without the key, unless that is short as a word."""
    return text.replace(key, "[key]") if key and len(key) >= LONG else text


def without_key(response: Response, key: str | None) -> Response:
    """The response without the key, which a server may say in any of its fields; its error in one short line."""
    if not key:
        return response
    return replace(
        response,
        text=kept_words(response.text, key),
        finish_reason=response.finish_reason and hidden(response.finish_reason, key),
        served_model=response.served_model and hidden(response.served_model, key),
        error=response.error and hidden(response.error, key),
    )
