"""The wait that a server asks for in a reply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d+)?")
_EPOCH = 1e9  # a larger number of seconds is a time since 1970


def announced_wait(headers: Mapping[str, str], body: object, now: datetime | None = None) -> float | None:
    """Seconds that a reply asks the client to wait; None if it does not.

    The longest of Retry-After (RFC 9110, 10.2.3: seconds or a date), retry-after-ms, and the retryDelay of a
    google.rpc.RetryInfo in the body. Without any of these, the time at which an exhausted limit is reset
    (x-ratelimit-reset-requests, x-ratelimit-reset-tokens). headers: with names in any case.
    """
    now = now or datetime.now(UTC)
    lower = {name.lower(): value for name, value in headers.items()}
    waits = [
        _seconds_or_date(lower.get("retry-after"), now),
        _scaled(_number(lower.get("retry-after-ms")), 0.001),
        _retry_delay(body),
    ]
    named = [max(0.0, wait) for wait in waits if wait is not None]
    return max(named) if named else _reset(lower, now)


def _seconds_or_date(value: str | None, now: datetime) -> float | None:
    if value is None or (number := _number(value)) is not None:
        return None if value is None else number
    try:
        date = parsedate_to_datetime(value)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return (date - now).total_seconds()
    except (ValueError, OverflowError):  # not a date, or an impossible one
        return None


def _number(value: str | None) -> float | None:
    text = (value or "").strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _duration(value: object, now: datetime) -> float | None:
    """Seconds of "1s", "6m0s", "120ms", "1.5", or of a time in seconds since 1970."""
    text = value.strip() if isinstance(value, str) else ""
    number = _number(text)
    if number is not None:
        return number - now.timestamp() if number > _EPOCH else number
    parts = _DURATION.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)


def _retry_delay(body: object) -> float | None:
    """The longest retryDelay among the details of an error: "6s", "0.25s", or seconds and nanos."""
    if isinstance(body, list) and len(body) == 1:  # Google's servers wrap errors of streams in a list
        body = body[0]
    error = body.get("error") if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    found = [
        _proto_duration(one["retryDelay"])
        for one in (details if isinstance(details, list) else [])
        if isinstance(one, dict) and "retryDelay" in one
    ]
    return max((wait for wait in found if wait is not None), default=None)


def _proto_duration(value: object) -> float | None:
    if isinstance(value, dict):
        seconds, nanos = _number(str(value.get("seconds", 0))), _number(str(value.get("nanos", 0)))
        return None if seconds is None or nanos is None else seconds + nanos / 1e9
    text = value.strip() if isinstance(value, str) else ""
    return _number(text[:-1]) if text.endswith("s") else None


def _reset(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until an exhausted limit is reset; if none is marked as exhausted, until the first reset."""
    exhausted: list[float] = []
    others: list[float] = []
    for name, value in headers.items():
        if name.startswith("x-ratelimit-reset") and (wait := _duration(value, now)) is not None:
            left = _number(headers.get(name.replace("-reset", "-remaining")))
            (others if left else exhausted).append(max(0.0, wait))
    return max(exhausted) if exhausted else min(others, default=None)
