"""The clustered mean by hand, beside the textbook, and at its level where items and speakers have habits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.choice_level import HABITS, level, null_signs
from vibe_harness.stats.clusters import clustered_mean, deviation_floor


def test_its_variance_is_that_of_crossed_random_effects() -> None:
    """Textbook: a^2 / I + b^2 / S + e^2 / (I S) for items (I), speakers (S) and pairs; a content that turns with the
    group adds nothing to the mean of both groups."""
    generator = np.random.default_rng(0)
    items, speakers = (grid.ravel() for grid in np.meshgrid(np.arange(60), np.arange(6), indexing="ij"))
    groups = speakers < 3
    a, b, e, content = 0.5, 0.4, 1.0, 2.0
    found = []
    for _ in range(2_000):
        values = (
            generator.normal(0, a, 60)[items] + generator.normal(0, b, 6)[speakers] + generator.normal(0, e, 360)
            + np.where(groups, 1, -1) * generator.normal(0, content, 60)[items]
        )  # fmt: skip
        mean = clustered_mean(values, items, speakers, groups)
        assert mean is not None
        found.append(mean.error**2)
    assert np.mean(found) == pytest.approx(a**2 / 60 + b**2 / 6 + e**2 / 360, rel=0.05)


def test_by_hand() -> None:
    # items 0, 1; speakers 0, 1 of one group; mean 1/2, residuals 1/2 1/2 1/2 -3/2
    # sums by item 1, -1: V = 2 (1 + 1) / 16 = 1/4; by speaker the same; by pair in its item: 0 0 and 1 -1: V = 1/4
    found = clustered_mean([1, 1, 1, -1], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0])
    assert found is not None and found.value == 0.5
    assert found.error == pytest.approx(0.5)  # 1/4 + 1/4 - 1/4
    assert found.freedom == 1  # (1/4)^2 over two halves of (1/4)^2 is 1/2, and never less than 1
    low, high = found.interval()
    assert (low, high) == (pytest.approx(0.5 - 12.706 * 0.5, rel=1e-3), pytest.approx(0.5 + 12.706 * 0.5, rel=1e-3))
    assert found.p_value(0) == pytest.approx(0.5)  # t of 1 with one degree of freedom


def test_it_asks_for_two_items_and_two_speakers_a_group() -> None:
    assert clustered_mean([1, 1, -1], [0, 0, 0], [0, 1, 2], [0, 0, 0]) is None
    assert clustered_mean([1, 1, -1, 1], [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1]) is None
    assert clustered_mean([], [], [], []) is None
    apart = clustered_mean([1, 1, 1, -1], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1])  # a speaker in two groups
    assert apart is not None and apart.error == pytest.approx(0.5)  # as without groups, above
    assert clustered_mean([1, 1, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]) is None  # no error to go by


def test_the_floor_of_the_deviation() -> None:
    assert deviation_floor(100) == pytest.approx(8.0, abs=0.05) and deviation_floor(500) == pytest.approx(3.6, abs=0.05)
    assert deviation_floor(1) == 100 and deviation_floor(2) == 50  # by hand
    for answers in (3, 10, 77):
        shares = [math.comb(answers, k) / 2**answers for k in range(answers + 1)]
        by_sum = sum(p * 2 * abs(50 - 100 * k / answers) for k, p in enumerate(shares))
        assert deviation_floor(answers) == pytest.approx(by_sum)


@pytest.mark.parametrize("habits", sorted(HABITS))
def test_its_level_holds_with_habits_of_items_and_speakers(habits: str) -> None:
    """The short form: 300 simulations of 100 items; 2,000 in benchmarks/choice_level.py."""
    found = level(habits, items=100, simulations=300, seed=1)
    assert 0.02 - 0.016 <= found["two-way"] <= 0.10 + 0.034  # 1.96 binomial errors at the ends of [0.02, 0.10]


def test_a_bias_is_found() -> None:
    signs, items, speakers = null_signs("both", 200, np.random.default_rng(0))
    biased = np.where(np.random.default_rng(1).random(len(signs)) < 0.5, 1, signs)
    found = clustered_mean(biased, items, speakers, speakers < 3)
    assert found is not None and found.p_value(0) < 0.01
