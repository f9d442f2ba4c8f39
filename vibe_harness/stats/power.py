"""Before a run: the smallest shift that a corpus can show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.errors import UserError, check_number
from vibe_harness.stats.assignments import Codes, Design
from vibe_harness.stats.ntvd import DEGENERATE, Counts, Floats, checked_counts, kept_values
from vibe_harness.stats.permutation import permutation_tests
from vibe_harness.stats.simulation import Pattern, answers, largest_shift, shifted

BATCH = 50
"""Number of simulations that share the draws of a test."""
MOST_PERMUTATIONS = 10_000
"""Default number of permutations of a run."""
PRECISION = 0.25
"""Precision of the detectable shift, in nTVD."""


@dataclass(frozen=True, slots=True)
class Simulator:
    """Simulates runs with a known shift. draw(rng, score): one unfiltered table (S, V) for each attribute. limit: the
    largest score that it can draw."""

    draw: Callable[[np.random.Generator, float], list[Counts]]
    groups: Codes
    limit: float


@dataclass(frozen=True, slots=True)
class PowerPoint:
    """share: of simulated runs with this true score that had a significant test; low, high: its 95 % interval."""

    score: float
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Power:
    """detectable: the smallest true nTVD that is detected with the target power; None if `reason` says why. curve: the
    simulated points, by score, for a figure. smallest_p: the smallest p that the test can reach in this design."""

    detectable: float | None
    target: float
    curve: tuple[PowerPoint, ...]
    reason: str | None = None
    smallest_p: float | None = None


def from_design(
    sizes: Sequence[int],
    answers_each: ArrayLike,
    bases: Sequence[ArrayLike],
    *,
    habit: float,
    pattern: Pattern = Pattern.SPREAD,
) -> Simulator:
    """Simulate a designed corpus. sizes: speakers per group. answers_each: answers of each speaker, one number or (S,).
    bases: for each attribute, the shares (V,) of its values over all groups. habit: between-speaker share of the
    variance (0: a speaker's answers are independent), drawn independently for each attribute."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    if len(sizes) < 2 or min(sizes) < 1 or not bases:
        raise UserError("power: at least two groups with a speaker each, and one attribute")
    shares = [np.asarray(base, dtype=np.float64) for base in bases]

    def draw(rng: np.random.Generator, score: float) -> list[Counts]:
        moved = [shifted(base, len(sizes), score, pattern) for base in shares]
        return [answers(rng, one, groups, answers_each, habit) for one in moved]

    return Simulator(draw, groups, min(largest_shift(base, len(sizes), pattern) for base in shares))


def from_pilot(tables: Sequence[ArrayLike], sizes: Sequence[int], *, pattern: Pattern = Pattern.SPREAD) -> Simulator:
    """Simulate a corpus whose speakers are like those of a pilot run.

    tables: for each attribute, the pilot's unfiltered counts (S, V) by speaker. sizes: speakers per group of the
    planned corpus. Whole speakers are drawn from the pilot with replacement, regardless of group, which keeps their
    habits, numbers of answers and correlations between attributes; then answers are moved at random to the values of
    their new group. A shift in the pilot counts as habit, so the result is conservative.
    """
    pilot = [checked_counts(table, "pilot") for table in tables]
    if not pilot or any(table.ndim != 2 or len(table) != len(pilot[0]) or not len(table) for table in pilot):
        raise UserError("power: a pilot is a table of speakers x values for each attribute, over the same speakers")
    if len(sizes) < 2 or min(sizes) < 1:
        raise UserError("power: at least two groups with a speaker each")
    pilot = [table for table in pilot if (table.sum(axis=0) > 0).sum() > 1]
    if not pilot:
        raise UserError(f"power: no attribute of the pilot can show a shift ({DEGENERATE})")
    groups = np.repeat(np.arange(len(sizes)), sizes)
    bases = [table.sum(axis=0) / table.sum() for table in pilot]

    def draw(rng: np.random.Generator, score: float) -> list[Counts]:
        speakers = rng.integers(len(pilot[0]), size=groups.size)
        return [_moved(rng, table[speakers], base, score) for table, base in zip(pilot, bases, strict=True)]

    def _moved(rng: np.random.Generator, table: Counts, base: Floats, score: float) -> Counts:
        limit = largest_shift(base, len(sizes), pattern)
        leaving = rng.binomial(table, score / limit)
        targets = shifted(base, len(sizes), limit, pattern)
        return np.asarray(table - leaving + rng.multinomial(leaving.sum(axis=1), targets[groups]))

    return Simulator(draw, groups, min(largest_shift(base, len(sizes), pattern) for base in bases))


def detectable_shift(
    simulator: Simulator,
    strata: ArrayLike | None = None,
    *,
    tau: int = 10,
    target: float = 0.8,
    alpha: float = 0.05,
    simulations: int = 400,
    permutations: int = 499,
    seed: int = 0,
) -> Power:
    """The smallest nTVD that the speaker-level test finds at level `alpha` with probability `target`, by bisection.

    strata: (S,) codes of the simulator's speakers, as for `permutation_test`. The same random numbers are used at every
    score, so that the curve rises smoothly. Raises UserError for numbers that cannot be these.
    """
    for name, number, least in (("tau", tau, 1), ("simulations", simulations, 1), ("seed", seed, 0)):
        check_number(name, number, least=least)
    if not 0 < target < 1:
        raise UserError(f"target: a power above 0 and under 1 is needed, not {target:g}")
    smallest = _smallest_p(simulator, strata, tau, alpha, seed)
    if smallest > alpha:
        reason = f"so few speakers that no shift can be found: p is at least {smallest:.2g}, whatever the answers"
        return Power(None, target, (), reason, smallest)
    curve: dict[float, PowerPoint] = {}

    def share(score: float) -> float:
        curve[score] = _power(simulator, score, strata, tau, alpha, simulations, permutations, seed)
        return curve[score].share

    share(0.0)
    low, high = 0.0, simulator.limit
    if share(high) < target:
        reason = f"even an nTVD of {high:.0f}, the largest for this pattern, is found less often than {target:.0%}"
        return Power(None, target, _sorted(curve), reason, smallest)
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if share(middle) >= target else (middle, high)
    return Power(high, target, _sorted(curve), smallest_p=smallest)


def _smallest_p(simulator: Simulator, strata: ArrayLike | None, tau: int, alpha: float, seed: int) -> float:
    """What p can come down to. Few speakers of unlike numbers of answers are tested otherwise than by exchanging them,
    which the test of one simulated run shows."""
    smallest = Design.of(simulator.groups, strata).smallest_p(MOST_PERMUTATIONS)
    if smallest <= alpha:
        return smallest
    tables = simulator.draw(np.random.default_rng(seed), simulator.limit)
    kept = [table[:, kept_values(table, tau)] for table in tables]
    return permutation_tests([kept], simulator.groups, strata, permutations=MOST_PERMUTATIONS)[0].smallest_p


def _sorted(curve: dict[float, PowerPoint]) -> tuple[PowerPoint, ...]:
    return tuple(curve[score] for score in sorted(curve))


def _power(
    simulator: Simulator,
    score: float,
    strata: ArrayLike | None,
    tau: int,
    alpha: float,
    simulations: int,
    permutations: int,
    seed: int,
) -> PowerPoint:
    from scipy.stats import binomtest

    Design.of(simulator.groups, strata)  # refuses strata that do not fit before anything is drawn
    found = 0
    for start in range(0, simulations, BATCH):
        runs = []
        for run in range(start, min(start + BATCH, simulations)):
            tables = simulator.draw(np.random.default_rng([seed, run]), score)
            runs.append([table[:, kept_values(table, tau)] for table in tables])
        tests = permutation_tests(runs, simulator.groups, strata, permutations=permutations, seed=seed + start)
        found += sum(test.mean.p_value is not None and test.mean.p_value <= alpha for test in tests)
    interval = binomtest(found, simulations).proportion_ci(method="wilson")
    return PowerPoint(score, found / simulations, float(interval.low), float(interval.high))
