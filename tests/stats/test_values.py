"""Contributions of single values: they add up, point the right way, and their intervals cover."""

import numpy as np
import pytest
from scipy.stats import t

from vibe_harness.stats.bracket import LONE_SPEAKER
from vibe_harness.stats.ntvd import DEGENERATE, EMPTY_GROUP, kept_values, ntvd
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


def test_interval_for_equal_numbers_of_answers_by_hand() -> None:
    # Two groups: the difference from their mean is half the difference of two means over speakers.
    groups = np.repeat([0, 1], [7, 5])
    first = np.random.default_rng(0).integers(0, 11, 12)
    found = contributions(np.stack([first, 10 - first], axis=1), groups)
    shares = first * 10.0
    own = [shares[groups == group].var(ddof=1) / size for group, size in ((0, 7), (1, 5))]
    # Two values that mirror each other have one spread: it is the group's own noise over all values, which
    # `over_all` repeats but for the pooled mean; four degrees of freedom of it beside the group's own 6 and 4.
    assert found.errors is not None and found.freedom is not None
    variance = (2 * found.errors[0, 0]) ** 2
    assert sum(own) * 0.9 <= variance <= sum(own) * 1.6
    ends = found.interval()
    assert ends is not None
    reach = t.ppf(0.975, found.freedom[0, 0]) * found.errors[0, 0]
    np.testing.assert_allclose(ends[1] - ends[0], 2 * reach)
    wider = found.interval(0.999)
    assert wider is not None
    assert wider[1][0, 0] - found.differences[0, 0] == pytest.approx(
        t.ppf(0.9995, found.freedom[0, 0]) * found.errors[0, 0]
    )


def test_degrees_of_freedom_are_those_of_welch_and_satterthwaite() -> None:
    # Equal spreads in both groups, 4 prior degrees: (v1 + v2)^2 / (v1^2 / (n1 - 1 + 4) + v2^2 / (n2 - 1 + 4)).
    half = np.array([[6, 4], [4, 6]] * 5)
    groups = np.repeat([0, 1], [6, 4])
    found = contributions(half, groups)
    assert found.freedom is not None and found.errors is not None
    own = [100 * 0.1**2 * 100 / (size - 1) for size in (6, 4)]  # variance of a mean of shares 60 and 40: s^2 / n
    assert found.errors[0, 0] == pytest.approx(np.sqrt(sum(own)) / 2, rel=0.05)
    expected = sum(own) ** 2 / (own[0] ** 2 / 9 + own[1] ** 2 / 7)
    assert found.freedom[0, 0] == pytest.approx(expected, rel=0.05)


def test_few_speakers_that_all_lack_a_value_have_an_error_all_the_same() -> None:
    # Without the spread over all speakers, that of a value which no speaker of a small group gives would be 0.
    groups = np.repeat([0, 1], [3, 12])
    table = np.random.default_rng(1).multinomial(20, [0.5, 0.4, 0.1], size=15)
    table[:3, 1] += table[:3, 2]
    table[:3, 2] = 0
    found = contributions(table, groups)
    only_large = contributions(np.concatenate([table[3:], table[3:]]), np.repeat([0, 1], 12))
    assert found.errors is not None and only_large.errors is not None
    assert found.errors[0, 2] > 1.3 * only_large.errors[0, 2]


def test_a_value_that_all_speakers_of_a_group_give_alike_has_an_interval_of_some_width() -> None:
    # Of 5 and 5 speakers none was unlike; q_0 / 2 + q_1 / 2, each up to 1 - 0.025^(1/10), is what others could add.
    groups = np.repeat([0, 1], 5)
    reach = 100 * (1 - 0.025 ** (1 / 10))
    ends = contributions(np.where(groups[:, None] == 0, [10, 0], [9, 1]), groups).interval()
    assert ends is not None
    np.testing.assert_allclose(ends[0], [[5 - reach, -5 - reach], [-5 - reach, 5 - reach]])
    np.testing.assert_allclose(ends[1], [[5 + reach, -5 + reach], [-5 + reach, 5 + reach]])
    apart = contributions(np.where(groups[:, None] == 0, [10, 0], [0, 10]), groups).interval()
    assert apart is not None
    np.testing.assert_allclose([apart[0][0, 0], apart[1][0, 0]], [50 - reach, 50])  # no difference is over 50


DESIGNS = [
    ((4,) * 6, (200,) * 6, (0.1,) * 6, 0.0),
    ((5, 40), (50, 50), (0.3, 0.05), 0.0),
    ((4, 20, 20), (50,) * 3, (0.1,) * 3, 0.0),
    ((2, 20, 20), (50,) * 3, (0.1,) * 3, 20.0),
    ((20, 20), (60, 6), (0.0, 0.0), 10.0),
]


@pytest.mark.parametrize(("sizes", "clips", "habits", "score"), DESIGNS)
def test_intervals_of_single_values_cover_in_every_group(
    sizes: tuple[int, ...], clips: tuple[int, ...], habits: tuple[float, ...], score: float
) -> None:
    """Calibration in short (benchmarks/value_parts.py): 0.59 to 0.87 with the groups' errors alone."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    shares = shifted(zipf(20), len(sizes), score, Pattern.SPREAD)
    rng, covered = np.random.default_rng(5), []
    for _ in range(40):
        table = np.concatenate([
            answers(rng, shares[[group]], np.zeros(size, dtype=np.int64), clips[group], habits[group])
            for group, size in enumerate(sizes)
        ])  # fmt: skip
        kept = kept_values(table, 10)
        own = shares[:, kept] / shares[:, kept].sum(axis=1, keepdims=True)
        truth, ends = 100 * (own - own.mean(axis=0)), contributions(table[:, kept], groups).interval()
        assert ends is not None
        covered.append(((ends[0] <= truth + 1e-9) & (truth <= ends[1] + 1e-9)).mean(axis=1))
    assert np.min(np.mean(covered, axis=0)) >= 0.93


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
    assert found.interval() is None and found.reason == reason
    assert (found.parts is None) == (reason != LONE_SPEAKER)
