"""Two runs over the same clips, before and after a change of the model: did the shift change?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import Design
from vibe_harness.stats.bracket import (
    LONE_SPEAKER,
    NO_NOISE,
    Statistic,
    average,
    cross_fitted,
    jackknife_error,
    largest_truth,
    raw_score,
    unseen,
    why_no_error,
)
from vibe_harness.stats.ntvd import Floats
from vibe_harness.stats.tables import Table


@dataclass(frozen=True, slots=True)
class Comparison:
    """before, after: the task's raw score in each run, means over `attributes`, those with a score in both. difference:
    after less before, of the cross-fitted scores, which are 0 on average without a shift however noisy a run is; so it
    is not `after` less `before`. interval: of the true difference. p_value: two-sided. What is None is so for `reason`.
    """

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

    Two differences stand around the truth, each with a standard error by leaving out one speaker at a time, with the
    answers of both runs, within the groups: the runs are paired. That of the cross-fitted scores (`bracket`, the same
    splits in both) falls short where the second run is the noisier; that of the largest truths in keeping with the raw
    scores (`bracket.largest_truth`) goes too far there. The interval is from the lower to the upper end of both
    Student's t intervals; the test is significant where both are, in one direction (an intersection-union test). Raw
    scores would not do: they rise with the noise, so that a model whose answers only came to vary more from speaker to
    speaker would seem to shift more (docs/statistics.md). Where no speaker's change differs from another's of the group
    there is no error to go by: each of the two scores can then be off by `bracket.unseen`, and by the same where all
    answers of the two runs are the same.

    Raises UserError where the tables of the two runs do not match.
    """
    from scipy.special import stdtr, stdtrit

    design = Design.of(groups)
    pairs = _pairs(before, after, design)
    scores = [tuple(raw_score(table, design) for table in pair) for pair in pairs]
    both = tuple(index for index, pair in enumerate(scores) if all(np.isfinite(one.value) for one in pair))
    if not both:
        return Comparison(None, None, None, None, None, both, "no attribute has a score in both runs")
    raw = [average([scores[index][run] for index in both]) for run in (0, 1)]
    first, second = raw[0].value, raw[1].value

    def without(reason: str, difference: float | None = None) -> Comparison:
        return Comparison(first, second, difference, None, None, both, reason)

    if np.bincount(design.groups).min() < 2:
        return without(LONE_SPEAKER)
    low = [average([cross_fitted(pairs[index][run], design, seed=seed) for index in both]) for run in (0, 1)]
    difference = low[1].value - low[0].value
    errors = [float(jackknife_error(of[1].left_out - of[0].left_out, design.groups)) for of in (raw, low)]
    reason = why_no_error(errors[0], difference, errors[1])
    if reason is not None:
        return without(reason, difference if np.isfinite(difference) else None)
    if max(errors) < NO_NOISE:
        alike = all(np.array_equal(pairs[index][0].counts, pairs[index][1].counts) for index in both)
        interval, p_value = _without_noise(difference, 1 if alike else 2, design, level)
        return Comparison(first, second, difference, interval, p_value, both)
    high = np.diff([_largest_truths(one) for one in raw], axis=0)[0]
    pair = [(difference, errors[1]), (float(high[0]), float(jackknife_error(high[1:], design.groups)))]
    degrees = design.groups.size - design.group_count
    reach = float(stdtrit(degrees, (1 + level) / 2))
    ends = [end for value, own in pair for end in (value - reach * own, value + reach * own)]
    tests = [2 * stdtr(degrees, -abs(value) / own) if own > 0 else float(value == 0) for value, own in pair]
    same_way = pair[0][0] * pair[1][0] > 0
    p_value = float(max(tests)) if same_way else 1.0
    return Comparison(first, second, difference, _within(min(ends), max(ends)), p_value, both)


def _without_noise(difference: float, scores: int, design: Design, level: float) -> tuple[tuple[float, float], float]:
    """Interval and p of a difference where so many scores can be off by what was not heard, and nothing else is unsure.

    p is the level at which the interval would end at 0.
    """
    reach = scores * unseen(design.groups, 1 - level)
    sizes = np.bincount(design.groups)
    p_value = 2 * (1 - abs(difference) / (200 * scores)) ** int(sizes.size * sizes.min())
    return _within(difference - reach, difference + reach), min(p_value, 1.0)


def _within(low: float, high: float) -> tuple[float, float]:
    """An interval of a difference of two scores of 0 to 100."""
    return max(low, -100.0), min(high, 100.0)


def _largest_truths(raw: Statistic) -> Floats:
    """The largest truth in keeping with a raw score, and with each speaker left out (1 + S,)."""
    return np.array([largest_truth(max(float(value), 0.0), raw.noise) for value in (raw.value, *raw.left_out)])


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
