"""Which values carry the shift, in which direction, each with its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.stats.assignments import Design
from vibe_harness.stats.bracket import (
    LONE_SPEAKER,
    NEEDED_SPEAKER,
    NO_NOISE,
    jackknife_error,
    replicated_shares,
    unseen,
)
from vibe_harness.stats.ntvd import Floats
from vibe_harness.stats.tables import Table


@dataclass(frozen=True, slots=True)
class Contributions:
    """What each value adds. Arrays are None where `reason` says why.

    shares: (G, V), the share of each value in each group, in points. differences: (G, V), that share less the mean over
    groups, in points; positive: the group is given the value more often. low, high: (G, V), 95 % interval of each
    difference, for one value looked at by itself. parts: (V,), what each value adds to the score; they sum to it.
    """

    shares: Floats | None
    differences: Floats | None
    low: Floats | None
    high: Floats | None
    parts: Floats | None
    reason: str | None = None


def contributions(table: ArrayLike, groups: ArrayLike, *, level: float = 0.95) -> Contributions:
    """Contributions of the values of one attribute. table: (S, V) or (S, H, V) counts by speaker, filtered by tau;
    groups: (S,). The intervals are Student's t with the standard error of leaving out one speaker at a time within the
    groups, and for a value that all speakers of each group give equally often what `bracket.unseen` speakers, unlike in
    everything, could add: (1 - 1/G) of their shares' sum. Raises UserError as `permutation_test` does."""
    from scipy.special import stdtrit

    design = Design.of(groups)
    checked = Table.of(table, design.groups.size)
    nothing = Contributions(None, None, None, None, None, checked.why_undefined(design.group_count))
    if design.group_count < 2 or checked.degenerate:
        return nothing
    shares, left_out = replicated_shares(checked, design)
    if not np.isfinite(shares).all():
        return nothing
    differences = shares - shares.mean(axis=0)
    parts = np.abs(differences).sum(axis=0) * (50.0 / (design.group_count - 1))
    if np.bincount(design.groups).min() < 2:
        return Contributions(100 * shares, 100 * differences, None, None, parts, LONE_SPEAKER)
    errors = jackknife_error(left_out - left_out.mean(axis=1, keepdims=True), design.groups)
    if not np.isfinite(errors).all():
        return Contributions(100 * shares, 100 * differences, None, None, parts, NEEDED_SPEAKER)
    reach = 100 * stdtrit(design.groups.size - design.group_count, (1 + level) / 2) * errors
    most = 100 * (1 - 1 / design.group_count)  # of a difference from the mean over groups
    reach = np.where(100 * errors < NO_NOISE, unseen(design.groups, 1 - level) * (design.group_count - 1) / 2, reach)
    low, high = np.clip([100 * differences - reach, 100 * differences + reach], -most, most)
    return Contributions(100 * shares, 100 * differences, low, high, parts)
