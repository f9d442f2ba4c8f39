"""Answers with a known shift, for power and for the calibration of every test and interval."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import Codes
from vibe_harness.stats.ntvd import Counts, Floats, shift


class Pattern(StrEnum):
    """The pattern of a shift."""

    SPREAD = "spread"  # all values: each group moves to its own values
    TWO_VALUES = "two values"  # half of the groups move to the most frequent value, the others to the second
    ONE_GROUP = "one group"  # the first group moves to the rarer half of the values, the others do not move


def zipf(values: int) -> Floats:
    """Shares (V,) proportional to 1/1, 1/2, 1/3, ..., similar to those of open answers."""
    shares = 1.0 / np.arange(1, values + 1)
    return np.asarray(shares / shares.sum())


def largest_shift(base: ArrayLike, groups: int, pattern: Pattern) -> float:
    """The largest nTVD that a pattern can reach. One group alone among G moves the score by 200 / G at most."""
    return float(shift(_targets(np.asarray(base, float), groups, pattern)))


def shifted(base: ArrayLike, groups: int, score: float, pattern: Pattern) -> Floats:
    """Distributions (G, V) whose nTVD is exactly `score`: mixtures of `base` (V,) and the pattern's targets.

    base: shares that sum to 1, at least two above 0. Raises UserError where the pattern cannot reach the score.
    """
    shares = np.asarray(base, dtype=np.float64)
    targets = _targets(shares, groups, pattern)
    limit = float(shift(targets))
    if not 0 <= score <= limit + 1e-9:
        raise UserError(
            f"a shift of {pattern.value} among {groups} groups reaches nTVD {limit:.1f} at most, not {score}"
        )
    weight = min(score / limit, 1.0)
    return (1 - weight) * shares + weight * targets


def _targets(base: Floats, groups: int, pattern: Pattern) -> Floats:
    ranks = np.argsort(-base, kind="stable")
    place = np.empty(base.size, dtype=np.int64)
    place[ranks] = np.arange(base.size)
    if pattern is Pattern.SPREAD:
        own = place[None, :] % groups == np.arange(groups)[:, None]
        targets = np.where(own, base, 0.0)
        # With fewer values than groups some groups have no value of their own and stay as they are.
        targets[targets.sum(axis=1) == 0] = base
    elif pattern is Pattern.TWO_VALUES:
        targets = np.eye(base.size)[ranks[np.arange(groups) % 2]]
    else:
        targets = np.tile(base, (groups, 1))
        targets[0] = np.where(place >= base.size // 2, base, 0.0)
    return np.asarray(targets / targets.sum(axis=1, keepdims=True))


def answers(rng: np.random.Generator, shares: Floats, groups: Codes, number: ArrayLike, habit: float) -> Counts:
    """Simulated counts (S, V) of the answers of speakers with habits.

    shares: (G, V). groups: (S,). number: answers of each speaker, (S,) or one number. habit: between-speaker share of
    the variance, 0 (independent answers) to below 1: each speaker's distribution is drawn from a Dirichlet
    distribution with the group's mean and total concentration (1 - habit) / habit.
    """
    if not 0 <= habit < 1:
        raise UserError(f"habit: a share of the variance, 0 to below 1, not {habit}")
    own = shares[groups]
    if habit > 0:
        own = rng.standard_gamma(own * (1 - habit) / habit)
        # All draws of a very concentrated habit can underflow; the speaker then keeps to the commonest value.
        lost = own.sum(axis=1) == 0
        own[lost, shares[groups[lost]].argmax(axis=1)] = 1.0
        own = own / own.sum(axis=1, keepdims=True)
    return np.asarray(rng.multinomial(np.broadcast_to(number, groups.shape), own))
