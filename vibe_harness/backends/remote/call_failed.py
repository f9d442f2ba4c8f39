"""Failed calls to a server, and whether and when to retry them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from vibe_harness.backends.remote.announced_waits import announced_wait

RETRIED = frozenset({408, 409, 425, 429})  # and every status from 500 except 501
OVERLOADED = frozenset({503, 529})


class Refusal(StrEnum):
    """Why a server temporarily refuses a call. The two reasons are counted separately."""

    RATE = "rate"  # the client exceeds its quota
    OVERLOAD = "overload"  # the server is overloaded


class CallFailed(Exception):
    """A call failed.

    retry: whether another try may succeed. refusal: set if the server refused the call because of load. wait_s: seconds
    that the server asks the client to wait; None if it does not.
    """

    def __init__(
        self, message: str, *, retry: bool = False, refusal: Refusal | None = None, wait_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.retry = retry
        self.refusal = refusal
        self.wait_s = wait_s


def failure_of(status: int, message: str, headers: Mapping[str, str], body: object) -> CallFailed:
    """The failure for an HTTP status, of the reply itself or named in the body of a reply with status 200.

    message: the server's text. body: the decoded reply, which may hold the wait that the server asks for.
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
    """Whether a status is a temporary failure."""
    return status in RETRIED or (500 <= status < 600 and status != 501)
