"""Two runs over the same clips, before and after a change of the model: did the shift change?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import Design
from vibe_harness.stats.bracket import (
    EMPTY_HALF,
    LONE_SPEAKER,
    ONE_SPEAKERS_VALUES,
    average,
    cross_fitted,
    jackknife_error,
)
from vibe_harness.stats.ntvd import standardised_ntvd
from vibe_harness.stats.tables import Table


@dataclass(frozen=True, slots=True)
class Comparison:
    """before, after: the task's raw score in each run, means over `attributes`, those with a score in both. difference:
    after less before, of the cross-fitted scores, which are 0 on average without a shift however noisy a run is; so it
    is not `after` less `before`. interval: of the difference. p_value: two-sided. What is None is so for `reason`."""

    before: float | None
    after: float | None
    difference: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    attributes: tuple[int, ...]
    reason: str | None = None


def compare(
    before: Sequence[ArrayLike], after: Sequence[ArrayLike], groups: ArrayLike, *, level: float = 0.95, seed: int = 0
) -> Comparison:
    """Compares the shifts of two runs over the same clips.

    before, after: for each attribute a table (S, V) or (S, H, V), the same speakers and values in both, filtered by tau
    over both runs together. groups: (S,).

    The difference is that of the cross-fitted scores (`bracket.cross_fitted`), with the same splits in both runs;
    interval and test take Student's t with its standard error by leaving out one speaker at a time, with the answers of
    both runs, within the groups: the runs are paired. Raw scores would not do: they rise with the noise, so that a
    model whose speakers' answers only became more varied would seem to shift more (docs/statistics.md).

    Raises UserError where the tables of the two runs do not match.
    """
    from scipy.special import stdtr, stdtrit

    design = Design.of(groups)
    pairs = _pairs(before, after, design)
    raw = [tuple(_raw(table, design) for table in pair) for pair in pairs]
    both = tuple(index for index, pair in enumerate(raw) if np.isfinite(pair).all())
    if not both:
        return Comparison(None, None, None, None, None, both, "no attribute has a score in both runs")
    first, second = (float(np.mean([raw[index][run] for index in both])) for run in (0, 1))

    def without(reason: str, difference: float | None = None) -> Comparison:
        return Comparison(first, second, difference, None, None, both, reason)

    if np.bincount(design.groups).min() < 2:
        return without(LONE_SPEAKER)
    low = [average([cross_fitted(pairs[index][run], design, seed=seed) for index in both]) for run in (0, 1)]
    difference = low[1].value - low[0].value
    if not np.isfinite(difference):
        return without(EMPTY_HALF)
    error = float(jackknife_error(low[1].left_out - low[0].left_out, design.groups))
    if not np.isfinite(error):
        return without(ONE_SPEAKERS_VALUES, difference)
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


def _raw(table: Table, design: Design) -> float:
    """The raw score; NaN where undefined."""
    by_group = np.zeros((design.group_count, *table.counts.shape[1:]), dtype=np.int64)
    np.add.at(by_group, design.groups, table.counts)
    return standardised_ntvd(by_group)
