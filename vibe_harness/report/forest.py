"""Where the marks of a forest plot stand: scores with their intervals on one labelled scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score

MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from `low` to `high` with its labelled values."""

    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int  # decimals of a tick's label

    def place(self, value: float) -> float:
        """Where a value stands, in percent of the scale's width; at an end where it lies beyond."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def labels(self) -> list[tuple[str, float]]:
        """The ticks as they are written, and where they stand."""
        return [(f"{tick:.{self.digits}f}", self.place(tick)) for tick in self.ticks]


@dataclass(frozen=True, slots=True)
class Marks:
    """The places of one score on an axis, in percent. None for what it does not have."""

    value: float | None
    low: float | None
    high: float | None
    chance: float | None
    neutral: float | None  # the figure without any effect, where that is not the scale's beginning
    words: str  # the same figures for readers who do not see the plot


def axis_for(values: Iterable[float | None], low: float = 0.0, high: float | None = 100.0) -> Axis:
    """An axis that holds all values with at most seven round ticks.

    It begins at `low`, or under it where a value does, and ends at a round number, at `high` at the furthest.
    """
    known = [value for value in values if value is not None and isfinite(value)]
    bottom = min([low, *known])
    top = max([bottom, *known])
    if top - bottom < 1e-9:
        top = bottom + (1.0 if high is None else high - low)
    step = _round_step((top - bottom) / MOST_TICKS)
    first, last = floor(bottom / step + 1e-9), ceil(top / step - 1e-9)
    digits = max(0, -floor(log10(step) + 1e-9))
    ticks = tuple(round(number * step, digits) + 0.0 for number in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks, digits)


def _round_step(width: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... that is not under `width`."""
    unit = 10.0 ** floor(log10(width))
    return next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= width * (1 - 1e-9))


def ends_of(scores: Sequence[Score]) -> list[float | None]:
    """All that is drawn of scores, for `axis_for`."""
    return [end for score in scores for end in (score.value, score.null_p95, *(score.interval or ()))]


def marks_of(score: Score, axis: Axis) -> Marks:
    """The marks of a score."""
    shown = presentation_of(score.metric)
    digits = shown.decimals_of(score)
    name = "raw score" if shown.role == "shift" else shown.title

    def place(value: float | None) -> float | None:
        return None if value is None else axis.place(value)

    low, high = score.interval or (None, None)
    told = [f"{name} {score.value:.{digits}f}"] if score.value is not None else ["no score"]
    if low is not None and high is not None:
        told.append(f"95 % interval {low:.{digits}f} to {high:.{digits}f}")
    if score.null_p95 is not None:
        told.append(f"chance reaches {score.null_p95:.{digits}f}")
    neutral = None if shown.neutral is None or shown.neutral <= axis.low else axis.place(shown.neutral)
    return Marks(place(score.value), place(low), place(high), place(score.null_p95), neutral, ", ".join(told))
