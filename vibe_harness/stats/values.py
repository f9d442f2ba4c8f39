"""The contribution of each value to the shift, its direction and its interval."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.stats.assignments import Codes, Design
from vibe_harness.stats.bracket import (
    LONE_SPEAKER,
    NEEDED_SPEAKER,
    NO_NOISE,
    jackknife_parts,
    replicated_shares,
    unseen,
)
from vibe_harness.stats.ntvd import Floats
from vibe_harness.stats.residuals import residuals_of
from vibe_harness.stats.tables import Table

PRIOR_FREEDOM = 4.0
"""Prior degrees of freedom of the pooled variance of a value, added to each group's own (Smyth 2004)."""


@dataclass(frozen=True, slots=True)
class Contributions:
    """The contribution of each value. Arrays are None if `reason` says why.

    shares: (G, V), share of each value in each group, in points. differences: (G, V), that share minus the mean over
    groups, in points; positive if the group gets the value more often. parts: (V,), contributions to the score, which
    they sum to. errors: (G, V), standard errors of the differences, in points; freedom: (G, V), their degrees of
    freedom. groups: (S,), of the speakers.
    """

    shares: Floats | None
    differences: Floats | None
    parts: Floats | None
    errors: Floats | None = None
    freedom: Floats | None = None
    groups: Codes | None = None
    reason: str | None = None

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats] | None:
        """Ends (G, V) of the intervals of the differences at `level`, or None.

        Student's t intervals. For a value that all speakers of each group give equally often, the width is what
        `bracket.unseen` speakers who differ in everything could add: (1 - 1/G) of the sum of their shares.
        """
        from scipy.special import stdtrit

        if self.differences is None or self.errors is None or self.freedom is None or self.groups is None:
            return None
        count = len(self.differences)
        reach = stdtrit(self.freedom, (1 + level) / 2) * self.errors
        without_noise = unseen(self.groups, 1 - level) * (count - 1) / 2
        reach = np.where(self.errors < NO_NOISE, without_noise, reach)
        most = 100 * (1 - 1 / count)  # of a difference from the mean over groups
        low, high = np.clip([self.differences - reach, self.differences + reach], -most, most)
        return low, high


def contributions(table: ArrayLike, groups: ArrayLike) -> Contributions:
    """Contributions of the values of one attribute. table: (S, V) or (S, H, V) counts by speaker, filtered by tau;
    groups: (S,).

    The variance of a group's share is that of leaving out one of its speakers at a time, drawn towards what the value's
    spread over all speakers comes to at the group's noise, as an estimate of PRIOR_FREEDOM degrees of freedom (Smyth
    2004, "Linear models and empirical Bayes methods", section 4), and never under that: few speakers that all lack a
    value would otherwise show no error at all. The degrees of freedom of a difference are Welch's and Satterthwaite's
    (1946), of the groups' own, which are as many as speakers of equal numbers of answers would be, less one. Raises
    UserError as `permutation_test` does.
    """
    design = Design.of(groups)
    checked = Table.of(table, design.groups.size)
    nothing = Contributions(None, None, None, reason=checked.why_undefined(design.group_count))
    if design.group_count < 2 or checked.degenerate:
        return nothing
    shares, left_out = replicated_shares(checked, design)
    if not np.isfinite(shares).all():
        return nothing
    differences = shares - shares.mean(axis=0)
    parts = np.abs(differences).sum(axis=0) * (50.0 / (design.group_count - 1))
    found = Contributions(100 * shares, 100 * differences, parts)
    if np.bincount(design.groups).min() < 2:
        return replace(found, reason=LONE_SPEAKER)
    own = left_out[np.arange(design.groups.size), design.groups]
    if not np.isfinite(own).all():
        return replace(found, reason=NEEDED_SPEAKER)
    variance, freedom = _variance(checked, design, own, own - shares[design.groups])
    count = design.group_count
    weights = np.full((count, count), 1 / count**2) + np.eye(count) * (1 - 2 / count)
    total, spread = weights @ variance, weights**2 @ (variance**2 / freedom[:, None])
    satterthwaite = np.divide(total**2, spread, out=np.ones_like(total), where=spread > 0)
    return replace(found, errors=100 * np.sqrt(total), freedom=satterthwaite, groups=design.groups)


def _variance(table: Table, design: Design, left_out: Floats, change: Floats) -> tuple[Floats, Floats]:
    """Variances (G, V) of the groups' shares and their degrees of freedom (G,).

    left_out: (S, V), the share of a speaker's group without it. change: (S, V), that less the share with it.
    """
    groups, count = design.groups, design.group_count
    residuals = residuals_of(table, Design.of(groups))
    errors, freedom = jackknife_parts(left_out, groups), np.maximum(residuals.effective - 1, 0.5)
    expected = np.zeros(groups.size)  # variance that each speaker adds to all values together, but for a constant
    expected[residuals.units] = residuals.variance
    totals = table.counts.sum(axis=(1, 2))
    leverage = totals / np.bincount(groups, totals)[groups]
    squares = change**2 * (1 - leverage)[:, None]  # without bias for independent speakers
    units = residuals.units
    spread = (squares[units] / expected[units, None]).mean(axis=0)
    over_all = np.outer(np.bincount(groups, expected, count), spread)
    weighted = (freedom[:, None] * errors + PRIOR_FREEDOM * over_all) / (freedom[:, None] + PRIOR_FREEDOM)
    return np.maximum(weighted, over_all), freedom + PRIOR_FREEDOM
