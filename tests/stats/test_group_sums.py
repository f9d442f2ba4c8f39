"""Sums by group of sorted units: against a loop, and the scores of many groups against those of the products."""

import numpy as np
import pytest

from vibe_harness.stats import batched_ntvd
from vibe_harness.stats.assignments import MANY_GROUPS, Design
from vibe_harness.stats.batched_ntvd import BatchedNtvd
from vibe_harness.stats.group_sums import group_sums
from vibe_harness.stats.maximum import value_tests
from vibe_harness.stats.permutation import permutation_test
from vibe_harness.stats.simulation import answers, zipf
from vibe_harness.stats.tables import Table

GROUPS = np.arange(150) % 40
assert GROUPS.max() + 1 > MANY_GROUPS


def table(seed: int) -> np.ndarray:
    return answers(np.random.default_rng(seed), zipf(5)[None], np.zeros(GROUPS.size, dtype=int), 9, 0.1)


def test_sums_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 9, (12, 3))
    assigned = np.stack([rng.permutation(np.repeat([0, 1, 2], [2, 3, 7])) for _ in range(4)])
    sums = group_sums(rows, assigned)
    assert sums.shape == (3, 3, 4)
    for draw, codes in enumerate(assigned):
        for group in range(3):
            assert (sums[:, group, draw] == rows[codes == group].sum(axis=0)).all()


def test_many_groups_have_the_scores_of_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [Table.of(table(seed), GROUPS.size) for seed in range(3)]
    tables[1].counts[GROUPS == 3] = 0  # a group without a value: no score in the data, one in the draws
    tables.append(Table.of(np.tile([3, 0], (GROUPS.size, 1)), GROUPS.size))  # degenerate
    design = Design.of(GROUPS)
    assigned = np.concatenate([GROUPS[None], *design.blocks(20, 0)])
    found = BatchedNtvd(tables, 40, design.block).scores(assigned)
    monkeypatch.setattr(batched_ntvd, "MANY_GROUPS", 1_000)
    beside = BatchedNtvd(tables, 40, design.block).scores(assigned)
    for name in ("score", "noise", "spread"):
        assert getattr(found, name) == pytest.approx(getattr(beside, name), rel=1e-12, nan_ok=True)
    assert np.isnan(found.score[0, 1]) and np.isfinite(found.score[1:, 1]).any()
    plain = BatchedNtvd(tables, 40, design.block).scores(assigned, noise=False)
    assert (plain.noise == 1).all() and (plain.spread == 0).all()


def test_many_groups_are_tested_with_their_values() -> None:
    shifted = table(0)
    shifted[GROUPS < 20] += [0, 0, 0, 0, 9]
    test = permutation_test([shifted], GROUPS, permutations=199).mean
    assert test.p_value == pytest.approx(1 / 200)
    (p_values,) = value_tests([shifted], GROUPS, permutations=199)
    assert p_values is not None and p_values.shape == (40, 5)
    assert p_values[:20, 4].min() == p_values.min() <= 0.05
