"""Exceptions: mistakes of the user (exit code 2), failures of an engine (3) and of the disk (4)."""

import errno
from typing import Any

UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO})
"""Errors of writing that are the disk's or its owner's: full, over a quota, read-only, damaged."""


class HarnessError(Exception):
    """Base class. The message is for people: what happened, where, and what to do."""

    exit_code: int


class UserError(HarnessError):
    """The request of the user cannot be carried out: an invalid card, a missing file, an unknown name."""

    exit_code = 2


class EngineError(HarnessError):
    """An engine or server failed and retries did not help. Stored responses are kept."""

    exit_code = 3


class StorageError(UserError):
    """A file cannot be written: the disk is full, or the folder is read-only. What was stored before is kept.

    A UserError, so that what cleans up after one does so here, but with an exit code of its own.
    """

    exit_code = 4


def write_failed(message: str, error: OSError, todo: str = "") -> UserError:
    """What to raise where a write failed: StorageError for a disk that takes none, else UserError (a path too long)."""
    said = f"{message}: {error.strerror or error}{todo}"
    return StorageError(said) if error.errno in UNWRITABLE else UserError(said)


def check_number(name: str, value: Any, *, least: int) -> None:
    """Raise UserError unless `value` is an int of at least `least`. True and False do not count as ints."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        kind = "" if type(value) is int else f" ({type(value).__name__})"
        raise UserError(f"{name}: a whole number of at least {least} is needed, not {value!r}{kind}")
