"""How large the shift really is: at least, at most, and an interval that holds near zero.

The raw score is too high on average, because |.| is convex; the cross-fitted score is too low on average, because its
signs come from other speakers than its differences. The truth lies between their expectations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.stats.assignments import Codes, Design
from vibe_harness.stats.ntvd import Counts, Floats, shift, standardised
from vibe_harness.stats.tables import Table

SPLITS = 20
LONE_SPEAKER = "a group has a single speaker: what he adds cannot be told from what his group adds"


@dataclass(frozen=True, slots=True)
class Bracket:
    """Where the true score lies. at_most: the raw score. at_least: the cross-fitted score, which can be negative by
    chance and is 0 on average without a shift. interval: 95 %, (0, 0) to (100, 100). None where `reason` says why."""

    at_least: float | None
    at_most: float | None
    interval: tuple[float, float] | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TaskBracket:
    """Brackets of each attribute, and of the mean over the attributes that have a score."""

    attributes: tuple[Bracket, ...]
    mean: Bracket


def bracket(
    tables: Sequence[ArrayLike], groups: ArrayLike, *, splits: int = SPLITS, seed: int = 0, level: float = 0.95
) -> TaskBracket:
    """Brackets of one task. tables: (S, V) or (S, H, V) counts by speaker, as for `permutation_test`. groups: (S,).

    at_least: the speakers of each group are split in two at random; sign(P_g(v) - Pbar(v)) of one half weighs the
    differences of the other, both ways, averaged over `splits` splits. The two halves are independent, so that the
    expectation of each product is at most |P_g(v) - Pbar(v)|.

    interval: at_least - c SE to at_most + c SE', clipped to 0 and 100, each standard error by leaving out one speaker
    at a time within the groups, c between the one-sided and the two-sided quantile of Student's t (see `_critical`).

    Raises UserError for anything that is not a table of counts or a code.
    """
    design = Design.of(groups)
    checked = [Table.of(table, design.groups.size) for table in tables]
    sizes = np.bincount(design.groups)
    raw = [_raw(table, design) for table in checked]
    defined = [index for index, (value, _) in enumerate(raw) if np.isfinite(value)]
    low = {index: _cross_fitted(checked[index], design, splits, seed) for index in defined} if sizes.min() > 1 else {}
    attributes = tuple(
        _bracket(raw[index], low.get(index), sizes, design, level)
        if index in defined
        else Bracket(None, None, None, table.why_undefined(design.group_count))
        for index, table in enumerate(checked)
    )
    if not defined:
        reasons = sorted({one.reason for one in attributes if one.reason is not None})
        return TaskBracket(attributes, Bracket(None, None, None, "; ".join(reasons) or "no attribute"))
    mean = _bracket(
        _average([raw[index] for index in defined]),
        _average([low[index] for index in defined]) if low else None,
        sizes,
        design,
        level,
    )
    return TaskBracket(attributes, mean)


Replicated = tuple[float, Floats]
"""A statistic, and its values (S,) with each speaker left out in turn; NaN where it is undefined."""


def _average(statistics: Sequence[Replicated]) -> Replicated:
    return float(np.mean([value for value, _ in statistics])), np.mean([left_out for _, left_out in statistics], axis=0)


def _bracket(raw: Replicated, low: Replicated | None, sizes: Codes, design: Design, level: float) -> Bracket:
    if low is None:
        return Bracket(None, raw[0], None, LONE_SPEAKER)
    if not np.isfinite(low[0]):
        return Bracket(None, raw[0], None, "half of a group's speakers can be without any value")
    low_error, raw_error = (float(jackknife_error(statistic[1], design.groups)) for statistic in (low, raw))
    if not np.isfinite(low_error + raw_error):
        return Bracket(low[0], raw[0], None, "a group's values all come from one speaker")
    critical = _critical(raw[0] - low[0], max(low_error, raw_error), int(sizes.sum()) - sizes.size, level)
    ends = np.clip([low[0] - critical * low_error, raw[0] + critical * raw_error], 0, 100)
    return Bracket(low[0], raw[0], (float(ends[0]), float(ends[1])))


def jackknife_error(left_out: Floats, groups: Codes) -> Floats:
    """Standard errors (...) from the values (S, ...) with one speaker left out, speakers sampled within groups (S,)."""
    sizes = np.bincount(groups)
    means = np.stack([left_out[groups == group].mean(axis=0) for group in range(sizes.size)])
    factors = ((sizes - 1) / sizes)[groups].reshape(-1, *[1] * (left_out.ndim - 1))
    return np.asarray(np.sqrt((factors * (left_out - means[groups]) ** 2).sum(axis=0)))


def _critical(width: float, error: float, degrees: int, level: float) -> float:
    """c with T(c + width / error) - T(-c) = level, T being Student's t (Imbens and Manski 2004, equation 7).

    The truth can lie at one end of the bracket only, so a bracket that is wide for its error needs the one-sided
    quantile at each end, and one of width 0 the two-sided.
    """
    from scipy.optimize import brentq
    from scipy.stats import t

    one_sided, two_sided = t.ppf(level, degrees), t.ppf((1 + level) / 2, degrees)
    if error == 0 or width <= 0:
        return float(two_sided)
    ratio = width / error
    return float(brentq(lambda c: t.cdf(c + ratio, degrees) - t.cdf(-c, degrees) - level, one_sided - 1e-6, two_sided))


def _raw(table: Table, design: Design) -> Replicated:
    if table.degenerate or design.group_count < 2:
        return np.nan, np.full(len(table.counts), np.nan)
    whole = group_counts(table, design)
    return float(shift(_shares(whole, table))), shift(_shares(_without_each(whole, table.counts, design.groups), table))


def _cross_fitted(table: Table, design: Design, splits: int, seed: int) -> Replicated:
    """Averages over the splits in which every group has values in both halves."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed])))
    speakers, scores = np.arange(design.groups.size), []
    left_out = np.empty((splits, speakers.size))
    for split in range(splits):
        half = _halves(design, rng)
        parts = [np.flatnonzero(half == side) for side in (0, 1)]
        counts = [group_counts(table, design, part) for part in parts]
        differences = [_differences(_shares(part, table)) for part in counts]
        scores.append(_product(*differences))
        for side, part in enumerate(parts):
            without = _without_each(counts[side], table.counts[part], design.groups[part])
            left_out[split, part] = _product(_differences(_shares(without, table)), differences[1 - side])
    usable = np.isfinite(scores)
    if not usable.any():
        return np.nan, left_out[0]
    return float(np.mean(np.array(scores)[usable])), left_out[usable].mean(axis=0)


def _halves(design: Design, rng: np.random.Generator) -> Codes:
    """0 or 1 for each speaker: each group in two halves, an odd speaker on either side."""
    half = np.empty(design.groups.size, dtype=np.int64)
    for group in range(design.group_count):
        members = np.flatnonzero(design.groups == group)
        half[rng.permutation(members)] = (np.arange(members.size) + rng.integers(2)) % 2
    return half


def group_counts(table: Table, design: Design, speakers: Codes | None = None) -> Floats:
    """Counts (G, H, V) of the groups, over all speakers or some."""
    chosen = slice(None) if speakers is None else speakers
    counts = np.zeros((design.group_count, *table.counts.shape[1:]))
    np.add.at(counts, design.groups[chosen], table.counts[chosen])
    return counts


def _without_each(whole: Floats, counts: Counts, groups: Codes) -> Floats:
    """Group counts (S, G, H, V) with each of the speakers left out in turn."""
    replicated = np.repeat(whole[None], groups.size, axis=0)
    replicated[np.arange(groups.size), groups] -= counts
    return replicated


def _shares(counts: Floats, table: Table) -> Floats:
    return standardised(counts, counts.sum(axis=-1), table.weights)


def _differences(shares: Floats) -> Floats:
    return np.asarray(shares - shares.mean(axis=-2, keepdims=True))


def _product(first: Floats, second: Floats) -> Floats:
    """The cross-fitted score of two halves' differences (..., G, V), the signs taken both ways."""
    product = np.sign(first) * second + first * np.sign(second)
    return np.asarray(product.sum(axis=(-2, -1)) * (25.0 / (first.shape[-2] - 1)))
