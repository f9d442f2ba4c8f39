"""API keys. They come from the environment only, and never reach a log, a run folder or an error message."""

from __future__ import annotations

import os
from dataclasses import replace

from vibe_harness.errors import UserError
from vibe_harness.records import Response


def read_key(variable: str | None) -> str | None:
    """The key in an environment variable; None if no variable is named. Raises UserError if it is not set."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UserError(f"no key: set the environment variable {variable} (api_key_env of the model card)")
    return key


LONG = 12  # characters: a shorter key may be an ordinary word, which answers keep


def hidden(text: str, key: str | None) -> str:
    """The text as one short line, without the key."""
    text = " ".join(text.split())
    return (text.replace(key, "[key]") if key else text)[:300]


def kept_words(text: str, key: str | None) -> str:
    """Text of a server to store: unchanged but for the key, unless that is as short as a word."""
    return text.replace(key, "[key]") if key and len(key) >= LONG else text


def without_key(response: Response, key: str | None) -> Response:
    """The response without the key, which a server may repeat in any field; its error as one short line."""
    if not key:
        return response
    return replace(
        response,
        text=kept_words(response.text, key),
        finish_reason=response.finish_reason and hidden(response.finish_reason, key),
        served_model=response.served_model and hidden(response.served_model, key),
        error=response.error and hidden(response.error, key),
    )
