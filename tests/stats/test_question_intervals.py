"""Intervals over questions: by hand with scipy, and covering with ten questions."""

import numpy as np
import pytest
from scipy import stats

from vibe_harness.stats.consistency import Agreement, averaged_kappa, pooled_kappa
from vibe_harness.stats.question_intervals import kappa_interval, share_interval


def test_share_by_hand() -> None:
    values = np.array([1, 1, 0.5, 0, 1, 0.75, 1, 0.25, 1, 1])
    more = np.append(values, 0.5)
    variance = more.var(ddof=1) / 11
    number = more.mean() * (1 - more.mean()) / variance * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 9)) ** 2
    hits = number * values.mean()
    expected = stats.beta.ppf(0.025, hits, number - hits + 1), stats.beta.ppf(0.975, hits + 1, number - hits)
    assert share_interval(values, np.ones(10)) == pytest.approx(expected)
    assert share_interval(values, np.full(10, 7.0)) == pytest.approx(expected)  # only the proportions of weights count


def test_questions_with_more_answers_weigh_more() -> None:
    values = np.array([1.0] * 6 + [0.0] * 6)
    low, high = share_interval(values, np.repeat([9.0, 1.0], 6))
    assert low < 0.9 < high and low > 0.4


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_all_alike_is_not_certain(share: float) -> None:
    low, high = share_interval(np.full(10, share), np.ones(10))
    assert 0.1 < high - low < 0.35 and share in (low, high)


def test_all_undecided_tells_nothing() -> None:
    assert share_interval(np.full(10, 0.5), np.ones(10)) == (0.0, 1.0)


@pytest.mark.parametrize(("a", "b", "questions"), [(2, 5, 10), (0.5, 0.5, 10), (4, 1, 20), (0.3, 0.3, 30), (8, 1, 10)])
def test_shares_cover(a: float, b: float, questions: int) -> None:
    rng, covered = np.random.default_rng(0), []
    for _ in range(400):
        low, high = share_interval(rng.binomial(12, rng.beta(a, b, questions)) / 12, np.ones(questions))
        covered.append(low <= a / (a + b) <= high)
    assert np.mean(covered) >= 0.93 - 2 * np.sqrt(0.93 * 0.07 / 400)


def test_kappa_by_hand() -> None:
    rng = np.random.default_rng(1)
    ratings = rng.multinomial(8, [0.4, 0.3, 0.2, 0.1], size=10).astype(float)
    parts = Agreement(ratings, rng.uniform(3, 7, 10))

    def error(one: Agreement) -> float:
        count = len(one.agreeing)
        values = []
        for left in range(count):
            rest = np.arange(count) != left
            values.append(float(pooled_kappa(Agreement(one.ratings[rest], one.agreeing[rest]))[0]))
        return float(np.sqrt((count - 1) / count * ((np.array(values) - np.mean(values)) ** 2).sum()))

    more = Agreement(np.vstack([ratings, np.full(4, 2.0)]), np.append(parts.agreeing, 2.0))
    reach = stats.t.ppf(0.975, 9) * max(error(parts), error(more))
    value = float(pooled_kappa(parts)[0])
    assert kappa_interval(parts, pooled_kappa) == pytest.approx((value - reach, min(value + reach, 1)))


def test_averaged_kappa_without_a_kappa_has_no_interval() -> None:
    alike = Agreement(np.tile([4.0, 0, 0, 0], (10, 1)), np.full(10, 4.0))
    assert kappa_interval(alike, averaged_kappa) is None


@pytest.mark.parametrize(("right", "questions"), [(0.5, 10), (0.9, 10), (0.7, 20)])
def test_kappa_covers(right: float, questions: int) -> None:
    rng = np.random.default_rng(2)

    def drawn(number: int) -> Agreement:
        shares = np.full((number, 4), (1 - right) / 3)
        shares[np.arange(number), rng.integers(4, size=number)] = right
        own = np.maximum(rng.standard_gamma(shares * 2), 1e-9)
        own /= own.sum(axis=1, keepdims=True)
        pairs = rng.multinomial(2, own[:, None].repeat(6, axis=1))
        return Agreement(pairs.sum(axis=1).astype(float), ((pairs**2).sum(axis=2) - 2.0).sum(axis=1))

    truth = float(pooled_kappa(drawn(40_000))[0])
    ends = [kappa_interval(drawn(questions), pooled_kappa) for _ in range(200)]
    covered = [end is not None and end[0] <= truth <= end[1] for end in ends]
    assert np.mean(covered) >= 0.93 - 2 * np.sqrt(0.93 * 0.07 / 200)
