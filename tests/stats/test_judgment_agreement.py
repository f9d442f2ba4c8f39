"""Shares of right judgments: against cases worked by hand, full enumeration, and scipy's own resampling."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from vibe_harness.stats.judgment_agreement import cohen_kappa, paired_difference, share_right


def judged_responses(seed: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """2,280 judgments in 600 responses (120 each of tasks with 6, 1, 4, 4 and 4 attributes), faults in clusters."""
    rng = np.random.default_rng(seed)
    judged = np.repeat([6, 1, 4, 4, 4], 120)
    return rng.binomial(judged, rng.beta(3, 0.1, size=600)), judged


def test_a_small_case_worked_by_hand() -> None:
    # A: 3 of 3 right, B: 0 of 1. Two responses are drawn: AA 1 (1/4), AB or BA 3/4 (1/2), BB 0 (1/4), so that both
    # tails hold a quarter. Drawn judgment by judgment, 0 of 4 has a chance of 1/256 and the interval begins at 1/4.
    share = share_right([3, 0], [3, 1])
    assert share.value == 3 / 4 and share.interval == (0.0, 1.0) and not share.exact


def test_the_bootstrap_is_that_of_all_resamples() -> None:
    right, judged = np.array([4, 3, 6, 0, 1]), np.array([4, 4, 6, 1, 2])
    drawn = np.array(list(itertools.product(range(5), repeat=5)))
    every = right[drawn].sum(axis=1) / judged[drawn].sum(axis=1)
    share = share_right(right, judged, resamples=200_000)
    assert share.value == 14 / 17
    assert share.interval == pytest.approx(np.percentile(every, [2.5, 97.5]), abs=0.005)


def test_the_bootstrap_agrees_with_scipys_over_600_responses() -> None:
    right, judged = judged_responses()
    assert judged.sum() == 2280
    other = scipy.stats.bootstrap(
        (right, judged), lambda r, n, axis: r.sum(axis=axis) / n.sum(axis=axis), paired=True, vectorized=True,
        method="percentile", n_resamples=20_000, batch=1_000, random_state=np.random.default_rng(0),
    )  # fmt: skip
    share = share_right(right, judged, resamples=20_000)
    assert share.value == right.sum() / 2280
    assert share.interval == pytest.approx(tuple(other.confidence_interval), abs=0.0008)
    # Judgments drawn one by one would look more certain than they are.
    low, high = scipy.stats.binomtest(int(right.sum()), 2280).proportion_ci()
    assert share.interval[1] - share.interval[0] > 1.3 * (high - low)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(400):
        right = rng.binomial(4, rng.beta(9, 0.6, size=120))
        low, high = share_right(right, np.full(120, 4), resamples=500).interval
        inside += low <= 9 / 9.6 <= high
    assert 0.91 <= inside / 400 <= 0.98


def test_where_nothing_is_wrong_the_interval_is_clopper_and_pearsons() -> None:
    share = share_right([4] * 120, [4] * 120)
    exact = scipy.stats.binomtest(0, 120).proportion_ci(method="exact")
    assert share.exact and share.interval == pytest.approx((1 - exact.high, 1.0))
    assert share_right([0, 0], [1, 3]).interval == pytest.approx((0.0, 1 - 0.025 ** (1 / 2)))


def test_where_every_response_has_the_same_share_the_interval_has_a_width() -> None:
    # 3 of 4 right in each of 40: up to 1 - 0.025^(1/40) of all responses could be right or wrong throughout.
    share, unlike = share_right([3] * 40, [4] * 40), 1 - 0.025 ** (1 / 40)
    assert share.exact and share.interval == pytest.approx((0.75 - 0.75 * unlike, 0.75 + 0.25 * unlike))
    assert not share_right([3] * 39 + [2], [4] * 40).exact
    assert share_right([1, 2], [2, 4]).exact  # halves of responses of different lengths
    found = paired_difference([3] * 40, [2] * 40, [4] * 40)
    assert found.interval == pytest.approx((0.25 - 1.25 * unlike, 0.25 + 0.75 * unlike))


def test_nothing_judged_is_no_share() -> None:
    assert share_right([], []).value is None
    assert share_right([0, 0], [0, 0]).interval is None
    assert share_right([2, 0], [2, 0]) == share_right([2], [2])  # a response without a judgment counts for nothing


def test_more_right_than_judged_is_refused() -> None:
    with pytest.raises(ValueError, match="more right"):
        share_right([2], [1])
    with pytest.raises(ValueError, match="shapes"):
        share_right([1, 1], [1])


def test_the_paired_test_is_the_sign_test_where_all_differences_have_one_size() -> None:
    first, second = [1] * 15 + [0] * 4 + [1] * 60, [0] * 15 + [1] * 4 + [1] * 60
    found = paired_difference(first, second, [1] * 79, resamples=100_000)
    assert found.value == pytest.approx(11 / 79)
    assert found.p_value == pytest.approx(scipy.stats.binomtest(15, 19).pvalue, abs=0.002)


def test_the_paired_test_agrees_with_scipys_permutations() -> None:
    rng = np.random.default_rng(2)
    judged = np.repeat([6, 1, 4], 40)
    first, second = rng.binomial(judged, 0.9), rng.binomial(judged, 0.86)
    other = scipy.stats.permutation_test(
        (first, second), lambda a, b, axis: (a - b).sum(axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=20_000, batch=1_000, random_state=np.random.default_rng(0),
    )  # fmt: skip
    found = paired_difference(first, second, judged, resamples=20_000)
    assert found.p_value == pytest.approx(other.pvalue, abs=0.015)
    interval = scipy.stats.bootstrap(
        (first, second, judged), lambda a, b, n, axis: (a - b).sum(axis=axis) / n.sum(axis=axis), paired=True,
        vectorized=True, method="percentile", n_resamples=20_000, batch=1_000, random_state=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    assert found.interval == pytest.approx(tuple(interval), abs=0.003)


def test_two_that_never_differ_have_no_difference() -> None:
    found = paired_difference([1] * 40, [1] * 40, [2] * 40)
    unlike = 1 - 0.025 ** (1 / 40)  # as of none of 40: what was not seen is not impossible
    assert (found.value, found.p_value) == (0, 1) and found.interval == pytest.approx((-unlike, unlike))
    assert paired_difference([], [], []).value is None


def test_kappa_of_tables_worked_by_hand() -> None:
    # 20 both right, 5 and 10 apart, 15 both wrong: p_o = 35/50, p_e = 0.5 * 0.6 + 0.5 * 0.4 = 0.5, kappa = 0.4
    first = [True] * 25 + [False] * 25
    second = [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15
    found = cohen_kappa(first, second)
    assert found.same == pytest.approx(0.7) and found.kappa == pytest.approx(0.4)
    assert cohen_kappa([True, False], [False, True]).kappa == -1


def test_kappa_is_undefined_without_variety() -> None:
    found = cohen_kappa([True] * 9, [True] * 9)
    assert found.same == 1 and found.kappa is None and found.undefined
    assert cohen_kappa([], []).same is None


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_kappa_is_symmetric_and_at_most_1(pairs: list[tuple[bool, bool]]) -> None:
    first, second = zip(*pairs, strict=True)
    one, other = cohen_kappa(first, second), cohen_kappa(second, first)
    assert one.same == other.same and (one.kappa is None) == (other.kappa is None)
    assert one.kappa is None or (one.kappa <= 1 and one.kappa == pytest.approx(other.kappa))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1), st.integers(0, 3))
def test_the_interval_holds_the_share_and_is_the_same_each_time(pairs: list[tuple[int, int]], seed: int) -> None:
    right, judged = [min(pair) for pair in pairs], [max(pair) for pair in pairs]
    share = share_right(right, judged, resamples=200, seed=seed)
    assert share == share_right(right, judged, resamples=200, seed=seed)
    if share.interval is not None:
        assert 0 <= share.interval[0] <= share.interval[1] <= 1


def test_rounding_does_not_make_alike_responses_certain() -> None:
    # 0.1 + 0.2 and 0.3, as means over ten judges come, are not one float: a bootstrap of both would have no width.
    share = share_right([0.1 + 0.2] * 5 + [0.3] * 5, np.ones(10))
    assert share.exact and share.interval == pytest.approx(share_right([0.3] * 10, np.ones(10)).interval)
