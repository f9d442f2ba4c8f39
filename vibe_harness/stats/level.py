"""How often the test of a design rejects a true null, where the design is one in which no test may hold its level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vibe_harness.stats.assignments import Codes, Design
from vibe_harness.stats.ntvd import Counts, Floats
from vibe_harness.stats.permutation import PermutationTest, permutation_test, permutation_tests
from vibe_harness.stats.residuals import FIRST_HABIT, group_habits, inflation, pooled_shares
from vibe_harness.stats.simulation import answers
from vibe_harness.stats.tables import Table

ALPHA = 0.05
FEW_SPEAKERS = 10
"""Effective speakers of the smallest group under which the level is looked into."""
RARE = 4.0
"""Speakers of a group times the variance of one answer, 1 - sum p^2, under which all of them can lack a value by
chance, so that their habits do not show."""
HIDDEN = (0.3, 0.2, 0.1)
"""Habits that are then tried, the strongest first."""
PLAUSIBLE = 0.05
"""Share of groups of such a habit that differ as little between speakers, under which it is ruled out."""

SIMULATIONS = 200
PERMUTATIONS = 199
TOO_OFTEN = 0.10
"""A share of rejections that a test of level ALPHA reaches in 4 of 1,000 such simulations."""


def permutation_test_with_level(
    tables: Sequence[ArrayLike], groups: ArrayLike, strata: ArrayLike | None = None, *, permutations: int, seed: int
) -> PermutationTest:
    """`permutation_test`, and the simulated level of each result of which the level is in doubt.

    It is simulated in two cases, in SIMULATIONS runs in which every speaker has as many answers as in the data, with
    the pooled shares; where both hold, the larger level is given.
    - Few speakers: the test goes by residuals, and a group's noise comes from fewer than FEW_SPEAKERS speakers. The
      speakers have the habits that their groups show.
    - Rare answers: p is at most ALPHA, and a group has so few speakers for its share of other answers than the
      commonest (RARE) that its speakers may have strong habits without showing any (`hidden_habits`). That group's
      speakers have those.

    Raises UserError as there.
    """
    test = permutation_test(tables, groups, strata, permutations=permutations, seed=seed)
    results = [*test.attributes, test.mean]
    few = np.array([(one.effective_speakers or FEW_SPEAKERS) < FEW_SPEAKERS for one in results])
    found = np.array([one.p_value is not None and one.p_value <= ALPHA for one in results])
    if not few.any() and not found.any():
        return test
    design = Design.of(groups, strata)
    checked = [Table.of(table, design.groups.size) for table in tables]
    levels = np.full(len(results), np.nan)
    if few.any():
        levels = np.where(few, simulated_levels(checked, design, seed), levels)
    if found.any():
        levels = np.fmax(levels, _hidden_levels(checked, found, design, seed))
    results = [
        replace(one, level=float(level)) if np.isfinite(level) and one.p_value is not None else one
        for one, level in zip(results, levels, strict=True)
    ]
    return replace(test, attributes=tuple(results[:-1]), mean=results[-1])


def _hidden_levels(tables: Sequence[Table], found: NDArray[np.bool_], design: Design, seed: int) -> Floats:
    """The levels (A + 1) of what was found, under habits that do not show; NaN where there are none."""
    hidden = [hidden_habits(table.counts.sum(axis=1), design, seed) for table in tables]
    some = [habits is not None for habits in hidden]
    looked = found & [*some, any(some)]
    if not looked.any():
        return np.full(found.size, np.nan)
    return np.where(looked, simulated_levels(tables, design, seed, hidden), np.nan)


def simulated_levels(
    tables: Sequence[Table], design: Design, seed: int, habits: Sequence[Floats | None] | None = None
) -> Floats:
    """The share of true nulls rejected at ALPHA for each attribute and at last for the mean, (A + 1).

    habits: for each attribute those of the groups (G,); where None, those that the groups show.
    """
    rng = np.random.default_rng([seed, SIMULATIONS])
    own = habits or [None] * len(tables)
    models = [_Model(table.counts.sum(axis=1), design, one) for table, one in zip(tables, own, strict=True)]
    runs = [[model.draw(rng) for model in models] for _ in range(SIMULATIONS)]
    tests = permutation_tests(runs, design.groups, design.strata, permutations=PERMUTATIONS, seed=seed)
    p_values = [[one.p_value for one in (*test.attributes, test.mean)] for test in tests]
    rejected = [[p_value is not None and p_value <= ALPHA for p_value in row] for row in p_values]
    return np.asarray(np.mean(rejected, axis=0))


def hidden_habits(counts: Counts, design: Design, seed: int) -> Floats | None:
    """Habits (G,) of which one group's is stronger than it shows, and which the data allow; None where there are none.

    counts: (S, V). Looked at are the groups with so few speakers for such rare answers (RARE). A habit h of HIDDEN is
    allowed where the sum over the group's speakers of |c_i - n_i p|^2 / (n_i (1 + (n_i - 1) h)) is as small in at least
    PLAUSIBLE of SIMULATIONS groups drawn with it; p are the pooled shares, to which speakers of such habits add little.
    Of several groups the one that shows the weakest habit is taken: groups of the same strong habits could be
    exchanged.
    """
    pooled = pooled_shares(counts)
    variance = 1 - float((pooled**2).sum())
    sizes = np.bincount(design.groups, counts.any(axis=1))
    if not pooled.any() or variance <= 0 or sizes.min() * variance >= RARE:
        return None
    rng = np.random.default_rng([seed, SIMULATIONS, 1])
    shown = group_habits(counts, design.groups, pooled)
    for group in sorted(np.flatnonzero(sizes * variance < RARE), key=lambda one: (shown[one], sizes[one])):
        members = design.groups == group
        for habit in HIDDEN:
            shares = pooled_shares(counts, np.where(members, habit, FIRST_HABIT))
            if habit > shown[group] and _allowed(counts[members], shares, habit, rng):
                others = group_habits(counts, design.groups, shares)
                return np.where(np.arange(sizes.size) == group, habit, others)
    return None


def _allowed(counts: Counts, shares: Floats, habit: float, rng: np.random.Generator) -> bool:
    """Whether speakers of this habit differ as little as those of the counts (P, V) often enough."""
    number = np.tile(counts.sum(axis=1), SIMULATIONS)
    drawn = answers(rng, shares[None], np.zeros_like(number), number, habit).reshape(SIMULATIONS, *counts.shape)
    alike = _spread(drawn, shares, habit) <= _spread(counts, shares, habit) * (1 + 1e-9)
    return bool(alike.mean() >= PLAUSIBLE)


def _spread(counts: Counts, shares: Floats, habit: float) -> Floats:
    """How much speakers differ (...) from the shares (V,), each over its variance. counts: (..., P, V)."""
    number = counts.sum(axis=-1)
    squared = ((counts - number[..., None] * shares) ** 2).sum(axis=-1)
    return np.asarray((squared / np.maximum(number * inflation(number, habit), 1)).sum(axis=-1))


class _Model:
    """One attribute under the null hypothesis: pooled shares, each group with its own habit. counts: (S, V)."""

    def __init__(self, counts: Counts, design: Design, habits: Floats | None) -> None:
        self.groups: Codes = design.groups
        self.number = counts.sum(axis=1)
        shown = group_habits(counts, design.groups, pooled_shares(counts)) if habits is None else habits
        self.habits = np.minimum(shown, 0.95)
        self.shares = pooled_shares(counts, self.habits[design.groups])

    def draw(self, rng: np.random.Generator) -> Counts:
        table = np.zeros((self.groups.size, self.shares.size), dtype=np.int64)
        if not self.shares.any():
            return table
        for group, habit in enumerate(self.habits):
            rows = np.flatnonzero(self.groups == group)
            one = np.zeros(rows.size, dtype=np.int64)
            table[rows] = answers(rng, self.shares[None], one, self.number[rows], float(habit))
        return table
