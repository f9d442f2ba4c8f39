"""Exceptions: mistakes of the user (exit code 2) and failures of an engine (exit code 3)."""

from typing import Any


class HarnessError(Exception):
    """Base class. The message is for people: what happened, where, and what to do."""

    exit_code: int


class UserError(HarnessError):
    """The request of the user cannot be carried out: an invalid card, a missing file, an unknown name."""

    exit_code = 2


class EngineError(HarnessError):
    """An engine or server failed and retries did not help. Stored responses are kept."""

    exit_code = 3


def check_number(name: str, value: Any, *, least: int) -> None:
    """Raise UserError unless `value` is an int of at least `least`. True and False do not count as ints."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        kind = "" if type(value) is int else f" ({type(value).__name__})"
        raise UserError(f"{name}: a whole number of at least {least} is needed, not {value!r}{kind}")
