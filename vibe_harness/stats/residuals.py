"""The null distribution of nTVD where speakers have unlike numbers of answers: residuals permuted, residuals flipped.

Whole speakers cannot be exchanged where those of one group have more answers: groups that mix both kinds are more
precise, or less, than the groups of the data. Here every place keeps its number of answers, and what is permuted is how
each speaker departs from the shares of all, in units of the noise that the number of answers gives.

For a speaker i of group g let y_i = c_i / N_g - n_i p / N_g, the departure of its counts c_i from the pooled shares p,
so that P_g = p + sum of y_i over the group. Under the null hypothesis the mean of y_i is 0 and its variance that of one
answer times s_i^2 = phi_g n_i (1 + (n_i - 1) h) / N_g^2: h is the habit (the correlation of a speaker's answers), and
phi_g the group's own noise. p is the mean that weighs each speaker by its precision.

- permuted: u_i = y_i / s_i are alike in their first two moments, but for what the estimate of p takes away: they are
  orthogonal to z_i = n_i / (N_g s_i). A reflection (Householder 1958) that takes z to a constant vector makes
  them exchangeable in their first two moments; the reflected values are permuted, and each draw's score is divided by
  its own noise, as that of the data is (Janssen 1997; Chung and Romano 2013).
- flipped: y_i / sqrt(1 - l_i) with random signs, l_i the leverage (the wild bootstrap of clusters with the null
  imposed; Cameron, Gelbach and Miller 2008). It keeps each group's covariances of values,
  which the other test mixes.

The first is too liberal where the groups' covariances differ in shape, the second where a group has few speakers; the
larger of the two p-values is taken (`stats.permutation`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vibe_harness.stats.assignments import Codes, Design
from vibe_harness.stats.ntvd import Floats
from vibe_harness.stats.tables import Table

HABITS = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 61)])
"""Habits that are tried: steps of 16 %, far within the error of the estimate."""
ROUNDS = 4
FIRST_HABIT = 0.05
LEAST_NOISE = 1e-3
"""Of a group, as a share of the noisiest one's."""


@dataclass(frozen=True, slots=True)
class Residuals:
    """What one table's null distribution is drawn from. P: the speakers with a kept value.

    units: (P,), which they are. groups: (P,). departures: (P, V), y_i with its leverage made good. reflected: (P, V).
    contrast: (G, P), what a reflected value adds to each group's share, less the mean over groups.
    variance: (P,), s_i^2.
    offset: (G, V), shares less their mean over groups that follow from the strata of speakers alone.
    noise: the standard error of the data's score, but for a constant. usual_noise: that of a draw, on average.
    habit: h. effective: (G,), the number of speakers alike that would give the group its noise.
    """

    units: Codes
    groups: Codes
    departures: Floats
    reflected: Floats
    contrast: Floats
    variance: Floats
    offset: Floats
    noise: float
    usual_noise: float
    habit: float
    effective: Floats

    def permuted(self, places: Codes) -> tuple[Floats, Floats]:
        """Scores (B,) and their noise (B,) under permutations. places: (B, S), the speaker whose place each takes."""
        local = self._among_units(places)
        groups, draws = len(self.contrast), len(local)
        added = self.contrast[:-1][:, local].reshape(-1, self.units.size) @ self.reflected
        deviations = added.reshape(groups - 1, draws, -1)
        squared = self.variance[local] @ (self.reflected**2).sum(axis=1)
        return self._score(deviations), np.sqrt(squared)

    def value_scale(self) -> Floats:
        """The standard errors (G, V) of the differences of shares from their mean over groups."""
        spread = (self.reflected**2).mean(axis=0)
        return np.asarray(np.sqrt(np.outer((self.contrast**2).sum(axis=1), spread)))

    def permuted_values(self, places: Codes) -> Floats:
        """Those differences (G, B, V), but for what strata of speakers make of them, under permutations as for
        `permuted`; permuted by 0, 1, ..., S - 1 they are those of the data."""
        local = self._among_units(places)
        added = self.contrast[:, local].reshape(-1, self.units.size) @ self.reflected
        return np.asarray(added.reshape(len(self.contrast), len(local), -1))

    def flipped_values(self, signs: NDArray[np.int8]) -> Floats:
        """Those differences (G, B, V) with the sign of each speaker's departure drawn at random. signs: (B, S)."""
        shares = self._flipped_shares(signs)
        return np.asarray(shares - shares.mean(axis=0))

    def flipped(self, signs: NDArray[np.int8]) -> Floats:
        """Scores (B,) with the sign of each speaker's departure drawn at random. signs: (B, S)."""
        return self._score(self.flipped_values(signs)[:-1])

    def _flipped_shares(self, signs: NDArray[np.int8]) -> Floats:
        """Departures of the groups' shares (G, B, V)."""
        chosen = signs[:, self.units].astype(np.float64)
        members = [np.flatnonzero(self.groups == group) for group in range(len(self.contrast))]
        return np.stack([chosen[:, rows] @ self.departures[rows] for rows in members])

    def studentised(self, scores: ArrayLike, noise: ArrayLike) -> Floats:
        """Scores at the usual noise; as they are where there is none, since no speaker differs from another."""
        errors = np.asarray(noise, dtype=np.float64)
        return np.asarray(scores * np.divide(self.usual_noise, errors, out=np.ones_like(errors), where=errors > 0))

    def _score(self, deviations: Floats) -> Floats:
        """nTVD (B,) of the deviations (G - 1, B, V) of all groups but the last, which is minus their sum."""
        last = self.offset[-1] - deviations.sum(axis=0)
        total = np.abs(deviations + self.offset[:-1, None]).sum(axis=(0, 2)) + np.abs(last).sum(axis=1)
        return np.asarray(total * (50.0 / (len(self.offset) - 1)))

    def _among_units(self, places: Codes) -> Codes:
        """Permutations (B, P) of the speakers with a value alone: those without are passed over, from each to the one
        whose place it takes. Where `places` are uniform over all permutations, these are too."""
        if self.units.size == places.shape[1]:
            return places
        index = np.full(places.shape[1], -1)
        index[self.units] = np.arange(self.units.size)
        taken = places[:, self.units].ravel()
        first = np.repeat(np.arange(len(places)) * places.shape[1], self.units.size)
        flat, without = places.ravel(), np.flatnonzero(index[taken] < 0)
        while without.size:
            taken[without] = flat[first[without] + taken[without]]
            without = without[index[taken[without]] < 0]
        return index[taken].reshape(len(places), -1)


def residuals_of(table: Table, design: Design) -> Residuals:
    """The residuals of a table (S, H, V) that has a score: see the module. Strata of utterances are standardised."""
    units = np.flatnonzero(table.counts.any(axis=(1, 2)))
    groups, strata = design.groups[units], np.unique(design.strata[units], return_inverse=True)[1]
    counts: Floats = table.counts[units].astype(np.float64)
    by_group = np.stack([counts[groups == group].sum(axis=(0, 2)) for group in range(design.group_count)])
    used = (by_group > 0).all(axis=0)
    counts, weights = counts[:, used], table.weights[used] / table.weights[used].sum()
    factors: Floats = (weights / by_group[:, used])[groups]  # (P, H): what a count adds to its group's share
    fit = _fit(counts, factors, groups, strata)
    return _reflected(units, groups, strata, fit, design.group_count)


def group_habits(counts: ArrayLike, groups: Codes, shares: Floats) -> Floats:
    """The habit (G,) that each group's speakers show around shares p (V,). counts: (S, V); groups: (S,).

    One answer's variance is taken to be 1 - sum p^2: a group that lacks a value shows none of its own.
    """
    table = np.asarray(counts, dtype=np.float64)
    with_value = table.any(axis=1)
    found = np.zeros(int(groups.max()) + 1)
    for group in range(found.size):
        rows = with_value & (groups == group)
        if rows.sum() > 1:
            totals = table[rows].sum(axis=1)
            squared = ((table[rows] - totals[:, None] * shares) ** 2).sum(axis=1)
            found[group] = _moments(squared, totals, 1 - float((shares**2).sum()), totals.size - 1)
    return found


def pooled_shares(counts: ArrayLike, habit: ArrayLike = FIRST_HABIT) -> Floats:
    """Shares (V,) of all speakers' counts (S, V), each weighted by its precision. habit: one, or one a speaker."""
    table = np.asarray(counts, dtype=np.float64)
    sums = (table / inflation(np.maximum(table.sum(axis=1), 1), habit)[:, None]).sum(axis=0)
    return np.asarray(sums / max(float(sums.sum()), 1e-300))


@dataclass(frozen=True, slots=True)
class _Fit:
    """departures: (P, V), y. variance: (P,), s^2. mass: (P,), the share of its group's weight that a speaker has.
    expected: (P, V), what the pooled shares add. leverage: (P,)."""

    departures: Floats
    variance: Floats
    mass: Floats
    expected: Floats
    leverage: Floats
    habit: float


def _fit(counts: Floats, factors: Floats, groups: Codes, strata: Codes) -> _Fit:
    """Pooled shares, habit and the groups' noise. counts: (P, H, V), factors: (P, H)."""
    sizes = counts.sum(axis=2)
    totals = sizes.sum(axis=1)
    clips = (factors**2 * sizes).sum(axis=1)
    mass = (factors * sizes).sum(axis=1)
    own = np.ones(groups.max() + 1)
    habit = FIRST_HABIT
    for _ in range(ROUNDS):
        shares = _pooled(counts, sizes, 1 / inflation(totals, habit), strata)
        habit = _habit(counts, sizes, shares, int(strata.max()) + 1)
    variance = (1 - habit) * clips + habit * mass**2
    for _ in range(ROUNDS):
        shares = _pooled(counts, sizes, 1 / (own[groups] * inflation(totals, habit)), strata)
        departures = np.einsum("ph,phv->pv", factors, counts - sizes[..., None] * shares)
        precision = mass**2 / (own[groups] * variance)
        leverage = precision / np.bincount(strata, precision)[strata]
        squares = np.bincount(groups, (departures**2).sum(axis=1) / variance)
        found = squares / np.maximum(np.bincount(groups, 1 - leverage), LEAST_NOISE)
        own = np.maximum(found / found.max(), LEAST_NOISE) if found.max() > 0 else np.ones(own.size)
    shares = _pooled(counts, sizes, 1 / (own[groups] * inflation(totals, habit)), strata)
    departures = np.einsum("ph,phv->pv", factors, counts - sizes[..., None] * shares)
    expected = np.einsum("ph,phv->pv", factors * sizes, shares)
    precision = mass**2 / (own[groups] * variance)
    leverage = precision / np.bincount(strata, precision)[strata]
    return _Fit(departures, own[groups] * variance, mass, expected, leverage, habit)


def inflation(totals: ArrayLike, habit: ArrayLike) -> Floats:
    """1 + (n - 1) h: the variance of a speaker's count over that of as many independent answers (Kish 1965)."""
    return np.asarray(1 + (np.asarray(totals) - 1) * np.asarray(habit))


def _pooled(counts: Floats, sizes: Floats, weights: Floats, strata: Codes) -> Floats:
    """Shares (P, H, V) of each speaker's stratum of speakers, by stratum of utterances."""
    number = int(strata.max()) + 1
    sums, total = np.zeros((number, *counts.shape[1:])), np.zeros((number, sizes.shape[1]))
    np.add.at(sums, strata, counts * weights[:, None, None])
    np.add.at(total, strata, sizes * weights[:, None])
    return np.asarray((sums / np.where(total > 0, total, 1.0)[..., None])[strata])


def _habit(counts: Floats, sizes: Floats, shares: Floats, means: int) -> float:
    """The correlation of a speaker's answers, by the moments of Paule and Mandel (1982): the smallest at which the
    squared residuals, each over its variance, come to no more than their number less the means estimated."""
    totals = sizes.sum(axis=1)
    squared = ((counts - sizes[..., None] * shares).sum(axis=1) ** 2).sum(axis=1)
    within = sizes * (1 + (shares**2).sum(axis=2)) - 2 * (counts * shares).sum(axis=2)
    return _moments(squared, totals, within.sum() / totals.sum(), totals.size - means)


def _moments(squared: Floats, totals: Floats, single: float, freedom: int) -> float:
    """The smallest habit at which squared residuals, each over its variance, come to no more than their freedom.
    single: the variance of one answer."""
    found = (squared / (totals * inflation(totals, HABITS[:, None]))).sum(axis=1)
    fits = found <= single * max(freedom, 1)
    return float(HABITS[np.argmax(fits)]) if fits.any() else 1.0


def _reflected(units: Codes, groups: Codes, strata: Codes, fit: _Fit, count: int) -> Residuals:
    deviation = np.sqrt(fit.variance)
    values, contrast = fit.departures / deviation[:, None], np.zeros((count, units.size))
    contrast[groups, np.arange(units.size)] = deviation
    offset = np.stack([fit.expected[groups == group].sum(axis=0) for group in range(count)])
    offset -= offset.mean(axis=0)
    contrast -= contrast.mean(axis=0)
    for stratum in range(int(strata.max()) + 1):
        rows = np.flatnonzero(strata == stratum)
        axis = fit.mass[rows] / deviation[rows]
        axis /= np.linalg.norm(axis)
        values[rows] -= np.outer(axis, axis @ values[rows])  # exact already but for strata of utterances
        mirror = axis - 1 / np.sqrt(rows.size)
        if (length := np.linalg.norm(mirror)) > 1e-9:
            mirror /= length
            values[rows] -= 2 * np.outer(mirror, mirror @ values[rows])
            contrast[:, rows] -= 2 * np.outer(contrast[:, rows] @ mirror, mirror)
    squares = (values**2).sum(axis=1)
    if squares.max() <= 1e-20:
        values, squares = np.zeros(values.shape), np.zeros(squares.shape)  # rounding alone: no speaker differs
    made_good = fit.departures / np.sqrt(np.maximum(1 - fit.leverage, 0.05))[:, None]
    sums = np.bincount(groups, fit.variance, count)
    return Residuals(
        units=units,
        groups=groups,
        departures=made_good,
        reflected=values,
        contrast=contrast,
        variance=fit.variance,
        offset=offset,
        noise=float(np.sqrt(fit.variance @ squares)),
        usual_noise=float(np.sqrt(fit.variance.sum() * squares.mean())),
        habit=fit.habit,
        effective=sums**2 / np.bincount(groups, fit.variance**2, count),
    )
