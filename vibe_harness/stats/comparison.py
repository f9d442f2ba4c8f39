"""Two runs over the same clips, before and after a change of the model: did the shift change?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import Design
from vibe_harness.stats.bracket import (
    LONE_SPEAKER,
    NO_NOISE,
    NULL,
    Statistic,
    average,
    bracket_from,
    critical_value,
    cross_fitted,
    differences_from_mean,
    jackknife_error,
    largest_truth,
    raw_score,
    replicated_shares,
    unseen,
    why_no_error,
)
from vibe_harness.stats.ntvd import shift
from vibe_harness.stats.tables import Table

LEAST_RATIO = 0.75
"""Shift before, in units of `Statistic.noise`, at which its upper bound is taken at the least: there the bound's error
and its excess without any shift are about equally small (docs/statistics.md)."""
NEAR = 0.25
"""Standard errors that are half of the difference up to which the upper score near no shift is closest."""
SMALL_CHANGE = 0.5
"""Noise of the change, relative to the mean noise of the two runs, under which the change itself bounds the difference:
the answers of the two runs are then largely the same."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """before, after: the task's raw score in each run, means over `attributes`, those with a score in both. difference:
    after less before, of the cross-fitted scores, which are 0 on average without a shift however noisy a run is; so it
    is not `after` less `before`. interval: of the true difference. upper: one-sided bound of the true difference at the
    same level, for a margin. p_value: two-sided. What is None is so for `reason`.
    """

    before: float | None
    after: float | None
    difference: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    attributes: tuple[int, ...]
    reason: str | None = None
    upper: float | None = None


def compare(
    before: Sequence[ArrayLike], after: Sequence[ArrayLike], groups: ArrayLike, *, level: float = 0.95, seed: int = 0
) -> Comparison:
    """Compares the shifts of two runs over the same clips.

    before, after: for each attribute a table (S, V) or (S, H, V), filtered by tau, of the same speakers and values in
    both. groups: (S,).

    Each run has a score whose expectation is not over its true shift (`bracket.cross_fitted`, the same splits in both)
    and one whose expectation is not under it (`_upper_score`), whatever values carry the shift and however noisy the
    answers are. The true difference lies on average between the lower score after less the upper score before, and the
    upper score after less the lower score before. The standard error of each of these two differences is found by
    leaving out one speaker at a time, with the answers of both runs, within the groups: the runs are paired. As for a
    bracket, the critical value lies between Student's one-sided and two-sided quantile (Imbens and Manski 2004), and p
    is the level at which the interval would end at 0. The interval is kept within what the two runs' own intervals
    allow, and, where the answers of the runs are largely the same (`SMALL_CHANGE`), within the upper bound of the shift
    of the change itself: | |a| - |b| | <= |a - b| for any norm.

    Where no speaker's change differs from another's of the group there is no error to go by: each of the two scores can
    then be off by `bracket.unseen`, and by the same where all answers of the two runs are the same.

    Raises UserError where the tables of the two runs do not match.
    """
    design = Design.of(groups)
    pairs = _pairs(before, after, design)
    scores = [tuple(raw_score(table, design) for table in pair) for pair in pairs]
    both = tuple(index for index, pair in enumerate(scores) if all(np.isfinite(one.value) for one in pair))
    if not both:
        return Comparison(None, None, None, None, None, both, "no attribute has a score in both runs")
    raw = [average([scores[index][run] for index in both]) for run in (0, 1)]
    untested = Comparison(raw[0].value, raw[1].value, None, None, None, both)
    if np.bincount(design.groups).min() < 2:
        return replace(untested, reason=LONE_SPEAKER)
    return _compared([pairs[index] for index in both], raw, untested, design, level, seed)


def _compared(
    pairs: Sequence[tuple[Table, Table]],
    raw: Sequence[Statistic],
    untested: Comparison,
    design: Design,
    level: float,
    seed: int,
) -> Comparison:
    """The comparison of attributes that have a score in both runs, with the reason where there is no error."""
    low = [average([cross_fitted(pair[run], design, seed=seed) for pair in pairs]) for run in (0, 1)]
    difference = low[1].value - low[0].value
    errors = [float(jackknife_error(of[1].left_out - of[0].left_out, design.groups)) for of in (raw, low)]
    reason = why_no_error(errors[0], difference, errors[1])
    if reason is not None:
        return replace(untested, reason=reason, difference=difference if np.isfinite(difference) else None)
    if max(errors) < NO_NOISE:
        alike = all(np.array_equal(one.counts, other.counts) for one, other in pairs)
        interval, p_value, upper = _without_noise(difference, 1 if alike else 2, design, level)
    else:
        interval, p_value, upper = _with_noise(pairs, raw, low, design, level)
    return replace(untested, difference=difference, interval=interval, p_value=p_value, upper=upper)


def _with_noise(
    pairs: Sequence[tuple[Table, Table]],
    raw: Sequence[Statistic],
    low: Sequence[Statistic],
    design: Design,
    level: float,
) -> tuple[tuple[float, float], float, float]:
    """Interval, p and upper bound of a difference whose ends have standard errors."""
    high = [
        _upper_score(one, own, [pair[run] for pair in pairs], design)
        for run, (one, own) in enumerate(zip(raw, low, strict=True))
    ]
    ends = _ends(low, high, design)
    (start, end), upper = _interval(ends, design, level)
    least, most = _limits(pairs, raw, low, design, level)
    return (max(start, least), min(end, most)), _p_value(ends, design), min(upper, most)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Estimates that the true difference lies between on average, and their standard errors."""

    low: float
    high: float
    low_error: float
    high_error: float

    @property
    def error(self) -> float:
        return max(self.low_error, self.high_error)

    @property
    def width(self) -> float:
        return max(self.high - self.low, 0.0)


def _ends(low: Sequence[Statistic], high: Sequence[_Upper], design: Design) -> _Ends:
    """From the lower and the upper score of each run."""
    errors = []
    for lower, upper in ((low[1], high[0]), (low[0], high[1])):
        together, alone = (
            float(jackknife_error(left_out, design.groups)) ** 2
            for left_out in (lower.left_out - upper.score.left_out, lower.left_out)
        )
        # Never under that of an upper score without any shift, which chance can make small together with the score.
        least = alone + upper.doubled if upper.doubled else 0.0
        errors.append(float(np.sqrt(max(together - upper.doubled, least))))
    return _Ends(low[1].value - high[0].score.value, high[1].score.value - low[0].value, *errors)


@dataclass(frozen=True, slots=True)
class _Upper:
    """A score whose expectation is not under the true shift. doubled: at least its variance without any shift, which
    leaving out speakers gives twice; 0 where it does not."""

    score: Statistic
    doubled: float = 0.0


def _upper_score(raw: Statistic, low: Statistic, tables: Sequence[Table], design: Design) -> _Upper:
    """Of the two such scores that near no shift where the raw score puts the truth under LEAST_RATIO, else the tangent.
    Never under the lower score."""
    near = raw.noise > 0 and largest_truth(max(raw.value, 0.0), raw.noise) < LEAST_RATIO * raw.noise
    upper = _near_no_shift(tables, design) if near else _Upper(_tangent(raw))
    return _Upper(low) if upper.score.value < low.value else upper


def _near_no_shift(tables: Sequence[Table], design: Design) -> _Upper:
    """The mean over tables of a score that is close to the truth where no difference is large.

    For any a > 0, |d| <= a + d^2 / (4 a). A difference x that is seen has an expected square of d^2 + s^2, s^2 its
    variance, whatever its distribution; so the sum of a + (x^2 - s^2) / (4 a) is not under the sum of |d| on average. a
    is NEAR standard errors, those smoothed over groups and values (a product of both). With normal errors of covariance
    C and weights w = 1 / (4 a) the variance is 4 d'wCwd + 2 tr(wCwC); leaving out speakers gives 4 x'wCwx, which is
    4 d'wCwd + 4 tr(wCwC) on average. tr(wCwC) is at least tr(wC)^2 over the number of differences that are free.
    """
    scale, parts, trace, free = 50.0 / (design.group_count - 1), [], 0.0, 0
    for table in tables:
        shares, left_out = (differences_from_mean(one) for one in replicated_shares(table, design))
        variance = jackknife_error(left_out, design.groups) ** 2
        total = max(float(variance.sum()), 1e-300)
        start = NEAR * np.sqrt(np.outer(variance.sum(axis=1), variance.sum(axis=0)) / total)
        weights = np.divide(0.25, start, out=np.zeros_like(start), where=start > 0)
        values = [
            scale * np.where(start > 0, start + weights * (one**2 - variance), np.abs(one)).sum(axis=(-2, -1))
            for one in (shares, left_out)
        ]
        parts.append(Statistic(float(values[0]), np.asarray(values[1])))
        trace += scale * float((weights * variance).sum()) / len(tables)
        free += (design.group_count - 1) * max(int((table.counts.sum(axis=(0, 1)) > 0).sum()) - 1, 1)
    return _Upper(average(parts), 2 * trace**2 / free)


def _tangent(raw: Statistic) -> Statistic:
    """A score whose expectation is not under the true shift, linear in the raw score.

    With noise W the raw score is expected to be at least W h(truth / W) (`bracket.largest_truth`), and h is convex: it
    lies over its tangent at any ratio u. So u W + (raw - W h(u)) / h'(u) is not under the truth on average. The inverse
    of h itself, whose slope is without bound near no shift, is far noisier there. u is where the raw score puts the
    truth, but at least LEAST_RATIO.
    """
    if raw.noise == 0:
        return raw
    ratio = max(largest_truth(max(raw.value, 0.0), raw.noise) / raw.noise, LEAST_RATIO)
    height, slope = expected_size(ratio)
    start = (ratio - height / slope) * raw.noise
    return Statistic(start + raw.value / slope, start + raw.left_out / slope)


def expected_size(ratio: float) -> tuple[float, float]:
    """h(x) and h'(x): the expected size of a difference of x standard errors, with normal errors; its slope."""
    from scipy.special import ndtr

    slope = float(2 * ndtr(ratio) - 1)
    return NULL * float(np.exp(-(ratio**2) / 2)) + ratio * slope, slope


def _interval(ends: _Ends, design: Design, level: float) -> tuple[tuple[float, float], float]:
    """The interval of the difference, and its one-sided upper bound."""
    from scipy.special import stdtrit

    degrees = design.groups.size - design.group_count
    critical = critical_value(ends.width, ends.error, degrees, level)
    upper = ends.high + float(stdtrit(degrees, level)) * ends.high_error
    return _within(ends.low - critical * ends.low_error, ends.high + critical * ends.high_error), min(upper, 100.0)


def _p_value(ends: _Ends, design: Design) -> float:
    """One less the level at which the interval would end at 0: T(-z) + T(-z - width / error), T being Student's t."""
    from scipy.special import stdtr

    degrees = design.groups.size - design.group_count
    sides = [(ends.low, ends.low_error), (-ends.high, ends.high_error)]
    if ends.error == 0 or not any(value > 0 for value, _ in sides):
        return 1.0
    reach = max(value / own if own > 0 else np.inf for value, own in sides if value > 0)
    return float(min(stdtr(degrees, -reach) + stdtr(degrees, -reach - ends.width / ends.error), 1.0))


def _limits(
    pairs: Sequence[tuple[Table, Table]],
    raw: Sequence[Statistic],
    low: Sequence[Statistic],
    design: Design,
    level: float,
) -> tuple[float, float]:
    """The least and the largest difference that the two runs' own intervals, and the change of the answers, allow."""
    own = [bracket_from(one, other, design, level).interval for one, other in zip(raw, low, strict=True)]
    least, most = -100.0, 100.0
    if own[0] is not None and own[1] is not None:
        least, most = own[1][0] - own[0][1], own[1][1] - own[0][0]
    change = average([_change(*pair, design) for pair in pairs])
    if change.noise < SMALL_CHANGE * (raw[0].noise + raw[1].noise) / 2:
        reach = _reach_of(change, design, level)
        least, most = max(least, -reach), min(most, reach)
    return least, most


def _change(before: Table, after: Table, design: Design) -> Statistic:
    """The raw score, with its noise, of the change of the distributions from one run to the other."""
    shares, left_out = (
        other - one
        for one, other in zip(replicated_shares(before, design), replicated_shares(after, design), strict=True)
    )
    errors = jackknife_error(left_out - left_out.mean(axis=1, keepdims=True), design.groups)
    noise = float(errors.sum() * 50.0 / (design.group_count - 1))
    return Statistic(float(shift(shares.copy())), shift(left_out.copy()), noise)


def _reach_of(change: Statistic, design: Design, level: float) -> float:
    """Upper bound of the shift of the change, which the difference cannot exceed."""
    from scipy.special import stdtrit

    degrees = design.groups.size - design.group_count
    error = float(jackknife_error(change.left_out, design.groups))
    raw = change.value + float(stdtrit(degrees, (1 + level) / 2)) * error
    return min(largest_truth(max(raw, change.noise * NULL), change.noise), 100.0)


def _without_noise(
    difference: float, scores: int, design: Design, level: float
) -> tuple[tuple[float, float], float, float]:
    """Interval, p and upper bound of a difference where so many scores can be off by what was not heard, and nothing
    else is unsure.

    p is the level at which the interval would end at 0.
    """
    reach, one_sided = (scores * unseen(design.groups, alpha) for alpha in (1 - level, 2 * (1 - level)))
    sizes = np.bincount(design.groups)
    p_value = 2 * (1 - abs(difference) / (200 * scores)) ** int(sizes.size * sizes.min())
    interval = _within(difference - reach, difference + reach)
    return interval, min(p_value, 1.0), min(difference + one_sided, 100.0)


def _within(low: float, high: float) -> tuple[float, float]:
    """An interval of a difference of two scores of 0 to 100."""
    return max(low, -100.0), min(high, 100.0)


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
