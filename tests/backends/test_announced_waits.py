"""Waits are read wherever a server writes them."""

from datetime import UTC, datetime

import pytest

from vibe_harness.backends.remote.announced_waits import announced_wait

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def retry_info(delay):
    return {"error": {"code": 429, "details": [{"@type": "google.rpc.Help"}, {"retryDelay": delay}]}}


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({}, None, None),
        ({"retry-after": "1.5"}, None, 1.5),
        ({"Retry-After": "-3"}, None, 0),
        ({"Retry-After": "Mon, 30 Nov 2026 12:01:00 GMT"}, None, 60),
        ({"Retry-After": "Mon, 30 Nov 2026 11:00:00 GMT"}, None, 0),
        ({"Retry-After": "soon"}, None, None),
        ({"Retry-After": "nan"}, None, None),
        ({"Retry-After": "Thu, 99999999999999999999 Jan 1970 00:00:00 GMT"}, None, None),
        ({"Retry-After": "Thu, 01 Jan 99999999999999 00:00:00 GMT"}, None, None),
        ({"Retry-After-Ms": "250"}, None, 0.25),
        ({"Retry-After": "1", "Retry-After-Ms": "1250"}, None, 1.25),
        ({}, retry_info("6s"), 6),
        ({}, retry_info("34.074824224s"), 34.074824224),
        ({}, retry_info({"seconds": "2", "nanos": 500_000_000}), 2.5),
        ({}, [retry_info("3s")], 3),
        ({"Retry-After": "2"}, retry_info("6s"), 6),
        ({}, retry_info("6"), None),
        ({}, retry_info(["6s"]), None),
        ({}, {"error": {"details": "6s"}}, None),
        ({}, {"error": ["6s"]}, None),
        ({"x-ratelimit-reset-requests": "120ms"}, None, 0.12),
        ({"x-ratelimit-reset-requests": "6m0s"}, None, 360),
        ({"x-ratelimit-reset-tokens": "1h2m3.5s"}, None, 3723.5),
        ({"X-RateLimit-Reset": str(int(NOW.timestamp()) + 7)}, None, 7),
        ({"X-RateLimit-Reset": "7"}, None, 7),
        ({"x-ratelimit-reset-requests": "1s later"}, None, None),
        ({"Retry-After": "1", "x-ratelimit-reset-requests": "6m0s"}, None, 1),
        (
            {"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "0",
             "x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "999"}, None, 1,
        ),
        (
            {"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "5",
             "x-ratelimit-reset-tokens": "4s", "x-ratelimit-remaining-tokens": "9"}, None, 1,
        ),
    ],
)  # fmt: skip
def test_seconds_that_a_reply_asks_for(headers, body, seconds):
    assert announced_wait(headers, body, NOW) == (None if seconds is None else pytest.approx(seconds))
