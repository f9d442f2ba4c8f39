"""Simulated answers have the shift and the habits that were asked for."""

import numpy as np
import pytest

from vibe_harness.errors import UserError
from vibe_harness.stats.ntvd import shift
from vibe_harness.stats.simulation import Pattern, answers, largest_shift, shifted, zipf


@pytest.mark.parametrize("pattern", Pattern)
@pytest.mark.parametrize("groups", [2, 3, 6])
def test_the_shift_is_exact(pattern: Pattern, groups: int) -> None:
    for score in (0, 1, 10, 0.99 * largest_shift(zipf(12), groups, pattern)):
        shares = shifted(zipf(12), groups, score, pattern)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        assert (shares >= 0).all() and shift(shares) == pytest.approx(score)


def test_one_group_alone_is_bounded() -> None:
    # P of the first group has no value in common with the others: TVDs (1 - 1/G) once and 1/G for G - 1 groups.
    assert shift(np.array([[1.0, 0.0], *[[0.0, 1.0]] * 5])) == pytest.approx(200 / 6)
    assert largest_shift(zipf(12), 6, Pattern.ONE_GROUP) < 200 / 6
    with pytest.raises(UserError, match="at most"):
        shifted(zipf(12), 6, 40, Pattern.ONE_GROUP)


def test_habit_is_the_share_of_the_variance() -> None:
    # Variance of one speaker's share of a value: p (1 - p) (habit + (1 - habit) / n), Dirichlet-multinomial.
    rng = np.random.default_rng(0)
    for habit in (0.0, 0.1, 0.4):
        counts = answers(rng, np.array([[0.3, 0.7]]), np.zeros(20_000, dtype=int), 50, habit)
        expected = 0.21 * (habit + (1 - habit) / 50)
        assert (counts[:, 0] / 50).var() == pytest.approx(expected, rel=0.05)
        assert (counts.sum(axis=1) == 50).all()


@pytest.mark.parametrize("habit", [-0.1, 1.0, float("nan")])
def test_a_habit_is_a_share(habit: float) -> None:
    with pytest.raises(UserError):
        answers(np.random.default_rng(0), np.array([[0.5, 0.5]]), np.zeros(3, dtype=int), 5, habit)
