"""Executors: engines run on this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from vibe_harness.backends.protocol import Opener, checked_options, open_backend
from vibe_harness.errors import UserError
from vibe_harness.registry import did_you_mean

EXECUTORS = ("local", "ray")


def opener_of(executor: str, arguments: Mapping[str, Any]) -> Opener:
    """The function that opens engines on an executor. Starts nothing. Raises UserError for unknown names."""
    if executor == "local":
        if arguments:
            raise UserError(f"--executor-args {min(arguments)}: the executor 'local' takes none")
        return open_backend
    if executor != "ray":
        raise UserError(f"unknown executor '{executor}'. {did_you_mean(executor, EXECUTORS)}")
    from vibe_harness.backends.ray_executor import RayBackend, RaySettings

    refusal = "the executor 'ray' takes no such argument"
    return partial(RayBackend, checked_options(RaySettings, arguments, "--executor-args ", refusal))
