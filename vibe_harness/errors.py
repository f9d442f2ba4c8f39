"""The two ways a command ends badly: the user's mistake (exit 2) and the engine's failure (exit 3)."""

from typing import Any


class HarnessError(Exception):
    """A failure that is told to a person in one message: what happened, where, and what to do about it."""

    exit_code: int


class UserError(HarnessError):
    """Something the user asked for cannot be done as asked: a bad card, a missing file, an unknown name."""

    exit_code = 2


class EngineError(HarnessError):
    """A model engine or server failed in a way that no retry mends. What was already answered is kept."""

    exit_code = 3


def check_number(name: str, value: Any, *, least: int) -> None:
    """Raise UserError where `value`, called `name`, is no int of at least `least`; True is none."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        kind = "" if type(value) is int else f" ({type(value).__name__})"
        raise UserError(f"{name}: a whole number of at least {least} is needed, not {value!r}{kind}")
