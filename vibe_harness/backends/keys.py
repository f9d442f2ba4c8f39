"""Keys come from the environment alone, and never reach a log, a run folder or an error text."""

from __future__ import annotations

import os

from vibe_harness.errors import UserError


def read_key(variable: str | None) -> str | None:
    """The key in an environment variable, None where no variable is named. Raises UserError where it is not set."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UserError(f"no key: set the environment variable {variable} (api_key_env of the model card)")
    return key


def hidden(text: str, key: str | None) -> str:
    """The text in one short line, without the key."""
    text = " ".join(text.split())
    return (text.replace(key, "[key]") if key else text)[:300]
