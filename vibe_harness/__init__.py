"""Measures how far an audio-language model's answers shift with the voice that asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vibe_harness.api import evaluate

__all__ = ["evaluate"]


def __getattr__(name: str) -> Any:
    """`vibe_harness.evaluate` is imported when it is asked for: a bare `import vibe_harness` stays light."""
    if name == "evaluate":
        from vibe_harness.api import evaluate

        return evaluate
    raise AttributeError(f"module 'vibe_harness' has no attribute '{name}'")
