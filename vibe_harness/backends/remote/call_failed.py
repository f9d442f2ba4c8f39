"""A call to a server that failed, and what its failure says of the next try."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from vibe_harness.backends.remote.announced_waits import announced_wait

RETRIED = frozenset({408, 409, 425, 429})  # and every status from 500 on but 501
OVERLOADED = frozenset({503, 529})


class Refusal(StrEnum):
    """Why a server refuses a call that it would take at another time. The two are counted apart."""

    RATE = "rate"  # the client sends more than its quota allows
    OVERLOAD = "overload"  # the server has more work than it can do, whoever sent it


class CallFailed(Exception):
    """One call failed.

    retry: another try may succeed. refusal: the server refused the call for its load. wait_s: seconds that the server
    asks the client to wait before the next try; None where it names none.
    """

    def __init__(
        self, message: str, *, retry: bool = False, refusal: Refusal | None = None, wait_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.retry = retry
        self.refusal = refusal
        self.wait_s = wait_s


def failure_of(status: int, message: str, headers: Mapping[str, str], body: object) -> CallFailed:
    """The failure that an HTTP status stands for, be it the reply's own or one that is named in the body of a 200.

    message: the server's own words. body: the decoded reply, which may hold the wait that the server asks for.
    """
    refusal = None
    if status in OVERLOADED or (is_retried(status) and "overloaded" in message.lower()):
        refusal = Refusal.OVERLOAD
    elif status == 429:
        refusal = Refusal.RATE
    return CallFailed(
        f"HTTP {status}: {message}",
        retry=is_retried(status),
        refusal=refusal,
        wait_s=announced_wait(headers, body) if is_retried(status) else None,
    )


def is_retried(status: int) -> bool:
    """Whether a status stands for a failure that may pass."""
    return status in RETRIED or (500 <= status < 600 and status != 501)
