"""Contributions of single values: they add up, point the right way, and their intervals cover."""

import numpy as np
import pytest
from scipy.stats import t

from vibe_harness.stats.bracket import LONE_SPEAKER
from vibe_harness.stats.ntvd import DEGENERATE, EMPTY_GROUP, ntvd
from vibe_harness.stats.simulation import Pattern, answers, shifted, zipf
from vibe_harness.stats.values import contributions

GROUPS = np.repeat([0, 1, 2], 6)


def test_parts_sum_to_the_score_and_point_the_right_way() -> None:
    table = np.where(GROUPS[:, None] == 0, [8, 1, 1], [2, 4, 4])
    found = contributions(table, GROUPS)
    assert found.parts is not None and found.differences is not None and found.shares is not None
    by_group = np.stack([table[group == GROUPS].sum(axis=0) for group in range(3)])
    assert found.parts.sum() == pytest.approx(float(ntvd(by_group)))
    np.testing.assert_allclose(found.shares, [[80, 10, 10], [20, 40, 40], [20, 40, 40]])
    np.testing.assert_allclose(found.differences, [[40, -20, -20], [-20, 10, 10], [-20, 10, 10]])


def test_interval_for_equal_numbers_of_answers_is_the_plain_one() -> None:
    # Two groups: the difference from their mean is half the difference of two means over speakers.
    groups = np.repeat([0, 1], [7, 5])
    first = np.random.default_rng(0).integers(0, 11, 12)
    found = contributions(np.stack([first, 10 - first], axis=1), groups)
    shares = first * 10.0
    errors = [shares[groups == group].var(ddof=1) / size for group, size in ((0, 7), (1, 5))]
    reach = t.ppf(0.975, 10) * np.sqrt(sum(errors)) / 2
    assert found.low is not None and found.high is not None
    assert (found.high - found.low)[0, 0] / 2 == pytest.approx(reach)


def test_a_value_that_all_speakers_of_a_group_give_alike_has_an_interval_of_some_width() -> None:
    # Of 5 and 5 speakers none was unlike; q_0 / 2 + q_1 / 2, each up to 1 - 0.025^(1/10), is what others could add.
    groups = np.repeat([0, 1], 5)
    reach = 100 * (1 - 0.025 ** (1 / 10))
    found = contributions(np.where(groups[:, None] == 0, [10, 0], [9, 1]), groups)
    assert found.low is not None and found.high is not None
    np.testing.assert_allclose(found.low, [[5 - reach, -5 - reach], [-5 - reach, 5 - reach]])
    np.testing.assert_allclose(found.high, [[5 + reach, -5 + reach], [-5 + reach, 5 + reach]])
    apart = contributions(np.where(groups[:, None] == 0, [10, 0], [0, 10]), groups)
    assert apart.high is not None and apart.low is not None
    np.testing.assert_allclose([apart.low[0, 0], apart.high[0, 0]], [50 - reach, 50])  # no difference is over 50


def test_intervals_cover() -> None:
    shares = shifted(zipf(5), 3, 20, Pattern.SPREAD)
    truth = 100 * (shares - shares.mean(axis=0))
    covered = []
    for seed in range(100):
        found = contributions(answers(np.random.default_rng(seed), shares, GROUPS, 60, 0.1), GROUPS)
        assert found.low is not None and found.high is not None
        covered.append((found.low <= truth) & (truth <= found.high))
    assert 0.92 <= np.mean(covered) <= 0.98


@pytest.mark.parametrize(
    ("table", "groups", "reason"),
    [
        ([[3, 0], [1, 0]], [0, 1], DEGENERATE),
        ([[3, 1], [0, 0]], [0, 1], EMPTY_GROUP),
        ([[3, 1], [1, 3]], [0, 1], LONE_SPEAKER),
    ],
)
def test_what_is_missing_has_a_reason(table: list[list[int]], groups: list[int], reason: str) -> None:
    found = contributions(table, groups)
    assert found.low is None and found.reason == reason
    assert (found.parts is None) == (reason != LONE_SPEAKER)
