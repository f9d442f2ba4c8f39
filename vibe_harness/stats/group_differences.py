"""Do groups of speakers differ in something other than their answers? Differences of shares and of means, with speakers
as units, and permutation tests of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.rng import random_words

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_DRAWS, FEWEST_DRAWS = 999, 199
_WORK = 50_000_000  # additions that a test may take before it makes do with fewer draws


@dataclass(frozen=True, slots=True)
class Units:
    """Who is compared: each speaker once in each group that he stands in.

    group: code of each unit's group, from 0, each with at least one unit. block: units of one block may change their
    groups with each other. All are of one block where a speaker stands in one group; where speakers stand in several, a
    block is a speaker, since each is then his own control.
    """

    group: Codes
    block: Codes

    @property
    def within(self) -> bool:
        """Whether groups are exchanged within speakers."""
        return bool(self.block.any())

    def relabelled(self, draws: int, seed: int) -> Iterator[Codes]:
        """The groups of the units, permuted within blocks, `draws` times."""
        words = random_words(seed)
        order = np.argsort(self.block, kind="stable")
        label = np.empty_like(self.group)
        for _ in range(draws):
            label[order] = self.group[np.lexsort((words(len(order)), self.block))]
            yield label


@dataclass(frozen=True, slots=True)
class ShareDifference:
    """shares: of each value, by group; shape (groups, values). distance: the largest total variation distance between a
    group and the mean of the others. by_chance: its mean under permutation. p_value: of the permutation test."""

    shares: Floats
    distance: float
    by_chance: float
    p_value: float


def share_difference(units: Units, unit: Codes, value: Codes, seed: int) -> ShareDifference:
    """Compare how often each value occurs in each group; a unit counts once, however many clips it has.

    unit, value: codes of each clip, shape (clips,), from 0. p = (b + 1) / (m + 1) over m draws: MOST_DRAWS, or fewer
    where groups and values are many.
    """
    groups, values = int(units.group.max()) + 1, int(value.max()) + 1
    weight = 1 / np.bincount(unit)[unit]
    size = np.bincount(units.group)[:, None]

    def shares_of(label: Codes) -> Floats:
        cells = np.bincount(label[unit] * values + value, weight, groups * values)
        return np.asarray(cells.reshape(groups, values) / size, dtype=np.float64)

    shares = shares_of(units.group)
    distance = _farthest(shares)
    if distance < 1e-9:
        return ShareDifference(shares, 0.0, 0.0, 1.0)
    draws = max(FEWEST_DRAWS, min(MOST_DRAWS, _WORK // (groups * values + len(unit))))
    drawn = np.array([_farthest(shares_of(label)) for label in units.relabelled(draws, seed)])
    p_value = (float((drawn >= distance - 1e-9).sum()) + 1) / (draws + 1)
    return ShareDifference(shares, distance, float(drawn.mean()), p_value)


def _farthest(shares: Floats) -> float:
    others = (shares.sum(axis=0) - shares) / (len(shares) - 1)
    return float(np.abs(shares - others).sum(axis=1).max() / 2)


def mean_difference_p(units: Units, values: Floats, seed: int) -> float:
    """The p-value of a permutation test of the groups' means; values: of each unit, less its block's mean."""
    size = np.bincount(units.group)

    def between(label: Codes) -> float:
        means = np.bincount(label, values, len(size)) / size
        return float((size * (means - values.mean()) ** 2).sum())

    found = between(units.group)
    beyond = sum(between(label) >= found * (1 - 1e-9) for label in units.relabelled(MOST_DRAWS, seed))
    return (beyond + 1) / (MOST_DRAWS + 1)
