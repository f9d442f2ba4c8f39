"""Two runs over the same clips, before and after a change of the model: did the shift change?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import Design
from vibe_harness.stats.bracket import LONE_SPEAKER, ONE_SPEAKERS_VALUES, jackknife_error, replicated_shares
from vibe_harness.stats.ntvd import Floats, shift
from vibe_harness.stats.tables import Table


@dataclass(frozen=True, slots=True)
class Comparison:
    """before, after: the task's raw score in each run, means over `attributes`, those with a score in both. difference:
    after less before. interval: of the difference. p_value: two-sided. What is None is so for `reason`."""

    before: float | None
    after: float | None
    difference: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    attributes: tuple[int, ...]
    reason: str | None = None


def compare(
    before: Sequence[ArrayLike], after: Sequence[ArrayLike], groups: ArrayLike, *, level: float = 0.95
) -> Comparison:
    """Compares the scores of two runs over the same clips.

    before, after: for each attribute a table (S, V) or (S, H, V), the same speakers and values in both, filtered by tau
    over both runs together. groups: (S,).

    Interval and test take Student's t with the standard error of leaving out one speaker at a time, with the answers of
    both runs, within the groups: the runs are paired. They hold whether or not the answers changed otherwise. Raw
    scores near the noise floor differ less than the true ones do, so that a difference there is understated.

    Raises UserError where the tables of the two runs do not match.
    """
    from scipy.special import stdtr, stdtrit

    design = Design.of(groups)
    pairs = _pairs(before, after, design)
    replicated = [tuple(_score(table, design) for table in pair) for pair in pairs]
    both = tuple(index for index, pair in enumerate(replicated) if all(np.isfinite(value) for value, _ in pair))
    if not both:
        return Comparison(None, None, None, None, None, both, "no attribute has a score in both runs")
    first, second = (float(np.mean([replicated[index][run][0] for index in both])) for run in (0, 1))
    difference = second - first

    def without(reason: str) -> Comparison:
        return Comparison(first, second, difference, None, None, both, reason)

    if np.bincount(design.groups).min() < 2:
        return without(LONE_SPEAKER)
    left_out = np.mean([replicated[index][1][1] - replicated[index][0][1] for index in both], axis=0)
    error = float(jackknife_error(left_out, design.groups))
    if not np.isfinite(error):
        return without(ONE_SPEAKERS_VALUES)
    degrees = design.groups.size - design.group_count
    reach = float(stdtrit(degrees, (1 + level) / 2)) * error
    p_value = float(2 * stdtr(degrees, -abs(difference) / error)) if error > 0 else float(difference == 0)
    return Comparison(first, second, difference, (difference - reach, difference + reach), p_value, both)


def _pairs(before: Sequence[ArrayLike], after: Sequence[ArrayLike], design: Design) -> list[tuple[Table, Table]]:
    if len(before) != len(after):
        raise UserError(f"{len(before)} attributes before but {len(after)} after")
    pairs = []
    for one, other in zip(before, after, strict=True):
        pair = Table.of(one, design.groups.size), Table.of(other, design.groups.size)
        if pair[0].counts.shape != pair[1].counts.shape:
            shapes = " before, ".join(str(table.counts.shape) for table in pair)
            raise UserError(f"tables of the same speakers and values expected; the shapes are {shapes} after")
        pairs.append(pair)
    return pairs


def _score(table: Table, design: Design) -> tuple[float, Floats]:
    """The raw score and its values (S,) with each speaker left out; NaN where undefined."""
    if table.degenerate or design.group_count < 2:
        return np.nan, np.full(design.groups.size, np.nan)
    shares, left_out = replicated_shares(table, design)
    return float(shift(shares)), shift(left_out)
