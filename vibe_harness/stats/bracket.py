"""How large the shift really is: at least, at most, and an interval that holds near zero.

The raw score is too high on average, because |.| is convex. How much too high depends on which values carry the shift,
so no single number can be put in its place; but the least that it can be is known, which bounds the truth from above.
The cross-fitted score is too low on average, because its signs come from other speakers than its differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.stats.assignments import Codes, Design
from vibe_harness.stats.ntvd import Floats, shift, standardised
from vibe_harness.stats.rng import Words, picks, random_words
from vibe_harness.stats.tables import Table

SPLITS = 20
ELEMENTS = 1 << 17
"""Group counts held at a time."""
LIFT = 0.2
"""Standard errors added to the raw score before it is inverted for at_most. The inverse is concave, so that its
expectation falls short; 0.2 is the least that makes up for it at every true score (docs/statistics.md)."""
NULL = float(np.sqrt(2 / np.pi))
"""The expected size of a difference of which the true one is 0, in standard errors."""
FAR = 8.0
"""Standard errors beyond which a difference's sign is beyond doubt, and the raw score as it should be."""
NO_NOISE = 1e-9
"""Errors on the scale of the score under which no speaker differs from another of the group."""
TIED = 1e-12
"""Shares that differ by less are equal: rounding must give no difference its sign."""
LONE_SPEAKER = "a group has a single speaker: what that speaker adds cannot be told from what the group adds"
NEEDED_SPEAKER = "leaving out one speaker leaves a group without values to compare: no error can be worked out"
EMPTY_HALF = "too few speakers of a group have values to split them into two halves that both have some"
NEEDED_IN_HALF = "too few speakers of a group have values: leaving out one leaves half of them without any"


@dataclass(frozen=True, slots=True)
class Bracket:
    """Where the true score lies. at_least: its expectation is not over the truth; 0 on average without a shift, so that
    it can be negative by chance. at_most: its expectation is not under the truth. interval: within 0 to 100.
    no_more_than: one-sided upper limit, over the truth with the probability of the interval. None where `reason` says
    why."""

    at_least: float | None
    at_most: float | None
    interval: tuple[float, float] | None
    reason: str | None = None
    no_more_than: float | None = None


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

    at_most: the largest true score that is in keeping with the raw score, whatever the pattern of the shift
    (`largest_truth`), and never more than the raw score.

    interval: at_least - c SE, to the largest true score in keeping with raw + c SE', within 0 to 100; each standard
    error by leaving out one speaker at a time within the groups, c between the one-sided and the two-sided quantile of
    Student's t (`critical_value`), two-sided for two values in two groups. The upper end is never under that of a run
    whose raw score lies one standard error (the largest of the two and `Statistic.free_error`) under what is expected
    without a shift: chance can bring a run far under it, which does not show that there is no shift (power-constrained
    limits, Cowan and others 2011, arXiv 1105.3166). Where no speaker differs from another of the group there is no
    error to go by, and the interval is that of `unseen`.

    no_more_than: the upper end likewise with the one-sided quantile, a limit for equivalence: the true score is under
    it with probability `level`.

    Raises UserError for anything that is not a table of counts or a code.
    """
    design = Design.of(groups)
    checked = [Table.of(table, design.groups.size) for table in tables]
    raw = [raw_score(table, design) for table in checked]
    defined = [index for index, statistic in enumerate(raw) if np.isfinite(statistic.value)]
    alone = np.bincount(design.groups).min() < 2
    low = {} if alone else {index: cross_fitted(checked[index], design, splits, seed) for index in defined}
    reasons = [table.why_undefined(design.group_count) for table in checked]
    return task_bracket(raw, low, reasons, design, level)


def task_bracket(
    raw: Sequence[Statistic], low: Mapping[int, Statistic], reasons: Sequence[str], speakers: Design, level: float
) -> TaskBracket:
    """Brackets of the attributes and of their mean, from the raw and the cross-fitted score of each.

    low: by the attribute's index; empty where speakers cannot be split. reasons: why each has no raw score, if it has
    none. speakers: those who are left out in turn.
    """
    defined = [index for index, statistic in enumerate(raw) if np.isfinite(statistic.value)]
    attributes = tuple(
        bracket_from(raw[index], low.get(index), speakers, level)
        if index in defined
        else Bracket(None, None, None, reason)
        for index, reason in enumerate(reasons)
    )
    if not defined:
        told = sorted({one.reason for one in attributes if one.reason is not None})
        return TaskBracket(attributes, Bracket(None, None, None, "; ".join(told) or "no attribute"))
    mean_low = average([low[index] for index in defined]) if low else None
    return TaskBracket(attributes, bracket_from(average([raw[index] for index in defined]), mean_low, speakers, level))


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic, and its values (S,) with each speaker left out in turn; NaN where it is undefined.

    noise: for the raw score the standard errors of all differences P_g(v) - Pbar(v), summed on the scale of the score.
    free_error: its standard error were the (G - 1)(V - 1) differences that are free equally noisy, and none of them so
    small that leaving out a speaker turns it round, by which the error from `left_out` falls short.
    """

    value: float
    left_out: Floats
    noise: float = 0.0
    free_error: float = 0.0


def average(statistics: Sequence[Statistic]) -> Statistic:
    """The mean of several attributes' statistics."""
    return Statistic(
        float(np.mean([one.value for one in statistics])),
        np.mean([one.left_out for one in statistics], axis=0),
        float(np.mean([one.noise for one in statistics])),
        float(np.mean([one.free_error for one in statistics])),
    )


def bracket_from(raw: Statistic, low: Statistic | None, design: Design, level: float) -> Bracket:
    """The bracket and its interval from a raw and a cross-fitted score with their errors; see `bracket`.

    low: None with a single speaker in a group. design: the speakers who are left out in turn. level: of the interval.
    """
    from scipy.special import stdtrit

    if low is None:
        return Bracket(None, raw.value, None, LONE_SPEAKER)
    at_least = low.value if np.isfinite(low.value) else None
    low_error, raw_error = (float(jackknife_error(one.left_out, design.groups)) for one in (low, raw))
    reason = why_no_error(raw_error + raw.noise, at_least, low_error)
    if reason is not None or at_least is None:
        return Bracket(at_least, raw.value, None, reason)
    at_most = min(raw.value, largest_truth(raw.value + LIFT * raw_error, raw.noise))
    if raw.noise < NO_NOISE:
        reach = unseen(design.groups, 1 - level)
        ends = at_least - reach, at_most + reach
        limit = at_most + unseen(design.groups, 2 * (1 - level))
    else:
        degrees = min(satterthwaite(jackknife_parts(one.left_out, design.groups), design.groups) for one in (low, raw))
        # One free difference leaves the pattern of the shift no choice: the bracket's width is chance alone.
        width = at_most - at_least if raw.noise > (1 + NO_NOISE) * raw.free_error else 0.0
        error = max(low_error, raw_error)
        critical = critical_value(width, error, degrees, level)
        upper, limit = (
            max(_upper_end(raw, raw_error, max(error, raw.free_error), reach), at_most)
            for reach in (critical, float(stdtrit(degrees, level)))
        )
        ends = at_least - critical * low_error, upper
    low_end, high_end, limit = (float(end) for end in np.clip([*ends, limit], 0, 100))
    return Bracket(at_least, at_most, (low_end, high_end), no_more_than=limit)


def _upper_end(raw: Statistic, raw_error: float, error: float, critical: float) -> float:
    """The largest truth in keeping with the raw score and so many standard errors, and never under that of a run whose
    raw score lies one error under what is expected without a shift."""
    least = raw.noise * NULL + (critical - 1) * error
    return largest_truth(max(raw.value + critical * raw_error, least), raw.noise)


def why_no_error(raw_error: float, at_least: float | None, low_error: float) -> str | None:
    """Why the raw or the cross-fitted score has no standard error; None where both have. An error that is not finite
    comes from a score that is undefined with some speaker left out."""
    if not np.isfinite(raw_error):
        return NEEDED_SPEAKER
    if at_least is None or not np.isfinite(at_least):
        return EMPTY_HALF
    return None if np.isfinite(low_error) else NEEDED_IN_HALF


def unseen(groups: Codes, alpha: float) -> float:
    """By how much the true score can differ from that of speakers who do not differ within their groups (S,).

    Were a share q_g of the speakers of group g unlike those that were heard, none of n_g would be heard with
    probability (1 - q_g)^n_g (Clopper and Pearson 1934); unlike in everything at worst, they would move the score by
    200 q_g / G. The sum over the groups, with a probability of alpha / 2 to hear none, is at most
    200 (1 - (alpha / 2)^(1 / (G n))), n being the smallest n_g.
    """
    sizes = np.bincount(groups)
    return float(200 * (1 - (alpha / 2) ** (1 / (sizes.size * sizes.min()))))


def jackknife_error(left_out: Floats, groups: Codes) -> Floats:
    """Standard errors (...) from the values (S, ...) with one speaker left out, speakers sampled within groups (S,)."""
    return np.asarray(np.sqrt(jackknife_parts(left_out, groups).sum(axis=0)))


def jackknife_parts(left_out: Floats, groups: Codes) -> Floats:
    """What the speakers of each group add to the variance, (G, ...)."""
    sizes = np.bincount(groups)
    parts = [
        (size - 1) / size * ((own - own.mean(axis=0)) ** 2).sum(axis=0)
        for size, own in ((size, left_out[groups == group]) for group, size in enumerate(sizes))
    ]
    return np.stack(parts)


def satterthwaite(parts: Floats, groups: Codes) -> float:
    """Degrees of freedom of a variance that is the sum of the groups' own, `parts` (G,): Satterthwaite (1946), with one
    less than its speakers for each group. Those of all groups together where the variance is 0."""
    freedom = np.bincount(groups) - 1.0
    squares = float((parts**2 / freedom).sum())
    return float(parts.sum() ** 2 / squares) if squares > 0 else float(freedom.sum())


def critical_value(width: float, error: float, degrees: float, level: float) -> float:
    """The quantile c of an interval around a bracket: T(c + width / error) - T(-c) = level, T being Student's t (Imbens
    and Manski 2004, equation 7).

    width: of the bracket. error: the larger standard error of its ends. degrees: of freedom. The truth can lie at one
    end of the bracket only, so a bracket that is wide for its error needs the one-sided quantile at each end, and one
    of width 0 the two-sided.
    """
    from scipy.optimize import brentq
    from scipy.special import stdtr, stdtrit

    one_sided, two_sided = stdtrit(degrees, level), stdtrit(degrees, (1 + level) / 2)
    if error == 0 or width <= 0:
        return float(two_sided)
    ratio = width / error
    return float(brentq(lambda c: stdtr(degrees, c + ratio) - stdtr(degrees, -c) - level, one_sided - 1e-6, two_sided))


def largest_truth(raw: float, noise: float) -> float:
    """The largest true score under which the raw score is expected to be no larger than `raw`.

    noise: as for `Statistic`. With normal errors a true difference d of standard error s adds s h(d / s) to the
    expected raw score, h(x) = 2 phi(x) + x (2 Phi(x) - 1), which is convex. For a given true score the sum is smallest
    when all differences are in proportion to their errors; so raw >= noise h(true / noise) whatever the pattern of the
    shift, and this inverts it.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def expected(ratio: float) -> float:
        return float(NULL * np.exp(-(ratio**2) / 2) + ratio * (2 * ndtr(ratio) - 1))

    if noise == 0 or raw / noise >= expected(FAR):
        return raw
    if raw / noise <= expected(0):
        return 0.0
    return noise * float(brentq(lambda ratio: expected(ratio) - raw / noise, 0, FAR))


def raw_score(table: Table, design: Design) -> Statistic:
    """The raw score with its noise; NaN where it is undefined."""
    if table.degenerate or design.group_count < 2:
        return Statistic(np.nan, np.full(len(table.counts), np.nan))
    shares, left_out = replicated_shares(table, design)
    errors = jackknife_error(differences_from_mean(left_out), design.groups)
    noise = float(errors.sum() * 50.0 / (design.group_count - 1))
    free = (design.group_count - 1) * (int((table.counts.sum(axis=(0, 1)) > 0).sum()) - 1)
    return Statistic(float(shift(shares)), shift(left_out), noise, noise / float(np.sqrt(free)))


def cross_fitted(table: Table, design: Design, splits: int = SPLITS, seed: int = 0) -> Statistic:
    """The lower end of the bracket, averaged over the splits in which every group has values in both halves, whichever
    speaker is left out; where there is no such split, over those in which it has them with all speakers, and then
    without an error. Which splits these are hangs on who has values and not on what they are."""
    words = random_words(seed)
    halves = np.stack([speaker_halves(design, words) for _ in range(splits)])
    chunk = max(ELEMENTS // (design.groups.size * design.group_count * table.counts[0].size), 1)
    parts = [_split_scores(table, design, halves[start : start + chunk]) for start in range(0, splits, chunk)]
    scores, left_out = (np.concatenate(part) for part in zip(*parts, strict=True))
    defined = np.isfinite(scores)
    if not defined.any():
        return Statistic(np.nan, left_out[0])
    steady = defined & np.isfinite(left_out).all(axis=1)
    usable = steady if steady.any() else defined
    return Statistic(float(scores[usable].mean()), left_out[usable].mean(axis=0))


def _split_scores(table: Table, design: Design, halves: Codes) -> tuple[Floats, Floats]:
    """Cross-fitted scores (R,), and with each speaker left out (R, S). halves: (R, S), 0 or 1 for each speaker."""
    splits, speakers = halves.shape
    of_group = design.groups == np.arange(design.group_count)[:, None]
    of_half = halves[:, None, None, :] == np.arange(2)[:, None, None]
    members = (of_half & of_group).reshape(-1, speakers).astype(np.float64)
    counts = (members @ table.counts.reshape(speakers, -1)).reshape(splits, 2, -1, *table.counts.shape[1:])
    differences = differences_from_mean(group_shares(counts, table))
    rows, left_out = np.arange(splits)[:, None], np.empty((splits, speakers))
    size = max(ELEMENTS // (splits * counts[0, 0].size), 1)
    for start in range(0, speakers, size):
        part = slice(start, start + size)
        own = counts[rows, halves[:, part]]
        own[:, np.arange(own.shape[1]), design.groups[part]] -= table.counts[part]
        left_out[:, part] = cross_product(
            differences_from_mean(group_shares(own, table)), differences[rows, 1 - halves[:, part]]
        )
    return cross_product(differences[:, 0], differences[:, 1]), left_out


def speaker_halves(design: Design, words: Words) -> Codes:
    """0 or 1 for each speaker: each group in two halves, an odd speaker on either side."""
    half = np.empty(design.groups.size, dtype=np.int64)
    for group in range(design.group_count):
        members = np.flatnonzero(design.groups == group)
        order = members[words(members.size).argsort(kind="stable")]
        half[order] = (np.arange(members.size) + picks(words, 2, (1,))) % 2
    return half


def replicated_shares(table: Table, design: Design) -> tuple[Floats, Floats]:
    """Distributions (G, V), and with each speaker left out in turn (S, G, V); NaN where a group is without values."""
    whole = np.zeros((design.group_count, *table.counts.shape[1:]))
    np.add.at(whole, design.groups, table.counts)
    left_out = np.repeat(whole[None], design.groups.size, axis=0)
    left_out[np.arange(design.groups.size), design.groups] -= table.counts
    return group_shares(whole, table), group_shares(left_out, table)


def group_shares(counts: Floats, table: Table) -> Floats:
    """Distributions (..., G, V) of groups with counts (..., G, H, V), standardised with the table's weights; NaN where
    a group has none."""
    return standardised(counts, counts.sum(axis=-1), table.weights)


def differences_from_mean(shares: Floats) -> Floats:
    """P_g(v) - Pbar(v) of distributions (..., G, V)."""
    differences = np.asarray(shares - shares.mean(axis=-2, keepdims=True))
    differences[np.abs(differences) < TIED] = 0.0
    return differences


def cross_product(first: Floats, second: Floats) -> Floats:
    """The cross-fitted score of two halves' differences (..., G, V), the signs taken both ways."""
    product = np.sign(first) * second + first * np.sign(second)
    return np.asarray(product.sum(axis=(-2, -1)) * (25.0 / (first.shape[-2] - 1)))
