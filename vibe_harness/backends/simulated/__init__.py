"""A simulated model with a known shift, to validate the measurement."""

from vibe_harness.backends.simulated.engine import SimulatedEngine

__all__ = ["SimulatedEngine"]
