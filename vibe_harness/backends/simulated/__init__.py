"""A simulated model that listens: a source with a known shift, to check the measuring instrument against."""

from vibe_harness.backends.simulated.engine import SimulatedEngine

__all__ = ["SimulatedEngine"]
