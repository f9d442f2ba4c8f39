"""The mean of observations with two-way clustering: every answer belongs to an item and to a speaker."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """value: the mean. error: its standard error. freedom: Satterthwaite's degrees of freedom."""

    value: float
    error: float
    freedom: float

    def p_value(self, null: float) -> float:
        """Two-sided p of the t-test of the mean against `null`."""
        from scipy.special import stdtr  # scipy.stats takes half a second to import

        return float(2 * stdtr(self.freedom, -abs(self.value - null) / self.error))

    def interval(self, share: float = 0.95) -> tuple[float, float]:
        """The interval of the mean at the level `share`."""
        half = self.reach(share)
        return self.value - half, self.value + half

    def reach(self, share: float = 0.95) -> float:
        """Half the width of the interval at the level `share`."""
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, (1 + share) / 2)) * self.error


def clustered_mean(values: ArrayLike, items: ArrayLike, speakers: ArrayLike, groups: ArrayLike) -> ClusteredMean | None:
    """The mean of `values` (n,), with a standard error for random items and random speakers.

    items, speakers: (n,), of each observation. groups: (n,), of the speaker. Groups are fixed, so that differences
    between groups do not count as error. If a speaker is in several groups, such as several orders, groups are ignored.

    The variance is V_items + V_speakers - V_pairs, as in Cameron, Gelbach and Miller 2011 ("Robust inference with
    multiway clustering", equation 2.11), with speakers compared within their group and pairs of item and speaker within
    item and group, each sum of squares with its correction m / (m - 1); and not less than V_speakers, so that it is
    never negative. None with fewer than two items, with a group of one speaker, and if items or speakers do not differ,
    so that the error cannot be estimated.
    """
    data = np.asarray(values, dtype=np.float64)
    if not len(data):
        return None
    item, speaker, group = (_codes(kind) for kind in (items, speakers, groups))
    if len(np.unique(speaker * (group.max() + 1) + group)) > speaker.max() + 1:
        group = np.zeros_like(speaker)
    pair, cell = _codes(item * (speaker.max() + 1) + speaker), _codes(item * (group.max() + 1) + group)
    of_items, item_freedom, lone_item = _variance(data, item, np.zeros_like(item))
    of_speakers, speaker_freedom, lone_speaker = _variance(data, speaker, group)
    of_pairs, _, _ = _variance(data, pair, cell)
    if lone_item or lone_speaker:
        return None
    variance = max(of_speakers, of_items + of_speakers - of_pairs)
    if variance <= 0:
        return None
    spread = of_items**2 / item_freedom + of_speakers**2 / speaker_freedom
    return ClusteredMean(float(data.mean()), math.sqrt(variance), max(1.0, variance**2 / spread))


def _variance(data: Floats, cluster: Codes, stratum: Codes) -> tuple[float, int, bool]:
    """Variance of the mean by clusters that are compared within strata, its degrees of freedom, and whether a stratum
    has one cluster only, which is then left out."""
    means = np.bincount(stratum, data) / np.bincount(stratum)
    sums = np.bincount(cluster, data - means[stratum])
    home = np.zeros(len(sums), dtype=np.int64)
    home[cluster] = stratum
    sizes = np.bincount(home)
    apart = sums - (np.bincount(home, sums) / sizes)[home]
    scale = np.divide(sizes, sizes - 1, out=np.zeros(len(sizes)), where=sizes > 1)
    freedom = int((sizes - 1).sum())
    return float((scale[home] * apart**2).sum() / len(data) ** 2), freedom, bool((sizes == 1).any())


def _codes(names: ArrayLike) -> Codes:
    return np.unique(np.asarray(names), return_inverse=True)[1].astype(np.int64)


def deviation_floor(answers: int) -> float:
    """Mean of 2 |50 - slbs| over `answers` independent answers of which each is stereotypical with probability 1/2.

    De Moivre's formula for the mean absolute deviation of a binomial: 8.0 at 100 answers, 3.6 at 500.
    """
    if answers < 1:
        raise ValueError("the deviation of no answers has no floor")
    # E|X - n/2| = 2 nu (1/2) P(X = nu), nu = floor(n/2) + 1
    nu = answers // 2 + 1
    log_chance = math.lgamma(answers + 1) - math.lgamma(nu + 1) - math.lgamma(answers - nu + 1) - answers * math.log(2)
    return 200 / answers * nu * math.exp(log_chance)
