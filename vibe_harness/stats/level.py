"""How often the test of a design rejects a true null, where the design is one in which no test may hold its level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.stats.assignments import Codes, Design
from vibe_harness.stats.ntvd import Counts, Floats
from vibe_harness.stats.permutation import PermutationTest, permutation_test, permutation_tests
from vibe_harness.stats.residuals import group_habits
from vibe_harness.stats.simulation import answers
from vibe_harness.stats.tables import Table

ALPHA = 0.05
FEW_SPEAKERS = 10
"""Effective speakers of the smallest group under which the level is looked into."""

SIMULATIONS = 200
PERMUTATIONS = 199
TOO_OFTEN = 0.10
"""A share of rejections that a test of level ALPHA reaches in 4 of 1,000 such simulations."""


def permutation_test_with_level(
    tables: Sequence[ArrayLike], groups: ArrayLike, strata: ArrayLike | None = None, *, permutations: int, seed: int
) -> PermutationTest:
    """`permutation_test`, and each result with the level that the test has in this design, where it goes by residuals
    and a group's noise comes from fewer than FEW_SPEAKERS speakers.

    The level is simulated: SIMULATIONS runs in which every speaker has as many answers as in the data, with the pooled
    shares and the habit that the group shows. Raises UserError as there.
    """
    test = permutation_test(tables, groups, strata, permutations=permutations, seed=seed)
    results = [*test.attributes, test.mean]
    few = [one.effective_speakers is not None and one.effective_speakers < FEW_SPEAKERS for one in results]
    if not any(few):
        return test
    design = Design.of(groups, strata)
    levels = simulated_levels([Table.of(table, design.groups.size) for table in tables], design, seed)
    results = [
        replace(one, level=float(level)) if looked and one.p_value is not None else one
        for one, looked, level in zip(results, few, levels, strict=True)
    ]
    return replace(test, attributes=tuple(results[:-1]), mean=results[-1])


def simulated_levels(tables: Sequence[Table], design: Design, seed: int) -> Floats:
    """The share of true nulls rejected at ALPHA for each attribute and at last for the mean, (A + 1)."""
    rng = np.random.default_rng([seed, SIMULATIONS])
    models = [_Model(table.counts.sum(axis=1), design) for table in tables]
    runs = [[model.draw(rng) for model in models] for _ in range(SIMULATIONS)]
    tests = permutation_tests(runs, design.groups, design.strata, permutations=PERMUTATIONS, seed=seed)
    p_values = [[one.p_value for one in (*test.attributes, test.mean)] for test in tests]
    rejected = [[p_value is not None and p_value <= ALPHA for p_value in row] for row in p_values]
    return np.asarray(np.mean(rejected, axis=0))


class _Model:
    """One attribute under the null hypothesis: pooled shares, each group with its own habit. counts: (S, V)."""

    def __init__(self, counts: Counts, design: Design) -> None:
        self.groups: Codes = design.groups
        self.number = counts.sum(axis=1)
        self.shares = counts.sum(axis=0) / max(int(counts.sum()), 1)
        self.habits = group_habits(counts, design.groups)

    def draw(self, rng: np.random.Generator) -> Counts:
        table = np.zeros((self.groups.size, self.shares.size), dtype=np.int64)
        if not self.shares.any():
            return table
        for group, habit in enumerate(self.habits):
            rows = np.flatnonzero(self.groups == group)
            one = np.zeros(rows.size, dtype=np.int64)
            table[rows] = answers(rng, self.shares[None], one, self.number[rows], min(float(habit), 0.95))
        return table
