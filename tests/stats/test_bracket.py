"""The bracket: around the truth on average, its interval over it, and silent where nothing can be said."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import Design
from vibe_harness.stats.bracket import (
    EMPTY_HALF,
    LIFT,
    LONE_SPEAKER,
    NEEDED_IN_HALF,
    NEEDED_SPEAKER,
    NULL,
    SPLITS,
    _split_scores,
    bracket,
    critical_value,
    cross_fitted,
    jackknife_error,
    largest_truth,
    satterthwaite,
    speaker_halves,
)
from vibe_harness.stats.ntvd import DEGENERATE, EMPTY_GROUP, ONE_GROUP, kept_values, ntvd, shift
from vibe_harness.stats.rng import random_words
from vibe_harness.stats.simulation import Pattern, answers, shifted, zipf
from vibe_harness.stats.tables import Table

GROUPS = np.repeat([0, 1], [9, 7])


def simulated(score: float, habit: float = 0.1, seed: int = 0) -> np.ndarray:
    return answers(np.random.default_rng(seed), shifted(zipf(8), 2, score, Pattern.SPREAD), GROUPS, 40, habit)


def test_ends_are_in_order_and_at_most_the_raw_score() -> None:
    table = simulated(30)
    found = bracket([table], GROUPS).mean
    raw = float(ntvd([table[GROUPS == 0].sum(axis=0), table[GROUPS == 1].sum(axis=0)]))
    assert found.at_least is not None and found.at_most is not None and found.interval is not None
    assert 0 <= found.interval[0] <= found.at_least <= found.at_most <= raw + 1e-9
    assert found.at_most <= found.interval[1] <= 100


def test_speakers_that_do_not_differ_leave_what_was_not_heard() -> None:
    # All speakers of a group answer alike, as under a model that hears the words only. Of 7 and 9 speakers none was
    # unlike: up to 1 - 0.025^(1/14) of all could be, in everything, and move the score by twice as much.
    for group, other in (([30, 10], [10, 30]), ([20, 20], [20, 20]), ([40, 0], [0, 40])):
        found = bracket([np.where(GROUPS[:, None] == 0, group, other)], GROUPS).mean
        truth, reach = 50 * abs(group[0] - other[0]) / 20, 200 * (1 - 0.025 ** (1 / 14))
        assert found.at_least == pytest.approx(truth) and found.at_most == pytest.approx(truth)
        assert found.interval == pytest.approx((max(truth - reach, 0), min(truth + reach, 100)))


def test_a_score_far_under_its_null_is_no_proof_of_no_shift() -> None:
    # Speakers differ a good deal, and by chance both groups come out the same: the raw score is 0.
    half = np.where(np.arange(16)[:, None] % 2 == 0, [30, 10], [10, 30])
    groups = np.repeat([0, 1], 8)
    found = bracket([half], groups).mean
    assert found.at_most == 0 and found.interval is not None and found.interval[0] == 0
    # Each speaker's share is 0.25 off, so that the one free difference, of two groups of 8, has a standard error of
    # 100 sqrt(2 x 0.0625 / 7) = 13.4, though leaving out a speaker shows none in its size.
    noise = 100 * np.sqrt(2 * 0.0625 / 7)
    raw = noise * np.sqrt(2 / np.pi) + (stats.t.ppf(0.975, 14) - 1) * noise
    assert found.interval[1] == pytest.approx(largest_truth(raw, noise), rel=0.02)


@pytest.mark.parametrize("score", [0, 10, 15])
def test_an_attribute_of_two_values_is_covered_too(score: int) -> None:
    groups = np.repeat([0, 1], 12)
    shares = shifted(np.full(2, 0.5), 2, score, Pattern.SPREAD)
    covered = []
    for seed in range(150):
        found = bracket([answers(np.random.default_rng([seed, score]), shares, groups, 40, 0.1)], groups).mean
        assert found.interval is not None
        covered.append(found.interval[0] <= score <= found.interval[1])
    assert np.mean(covered) >= 0.92


def test_cross_fitting_by_hand() -> None:
    # Two speakers a group: every split takes one from each. With speakers a, b and c, d the halves are {a, c}, {b, d}
    # or {a, d}, {b, c}. Shares of the first value: a 0.9, b 0.5, c 0.2, d 0.6. Differences of two-value groups:
    # halves ac: 0.7, bd: -0.1; product (sign(0.7) x -0.1 + sign(-0.1) x 0.7) / 2 = -0.4; halves ad: 0.3, bc: 0.3: 0.3.
    table = np.array([[90, 10], [50, 50], [20, 80], [60, 40]])
    found = bracket([table], [0, 0, 1, 1], splits=1_000).mean
    assert found.at_least == pytest.approx(100 * (-0.4 + 0.3) / 2, abs=4)
    once = bracket([table], [0, 0, 1, 1], splits=1).mean.at_least
    assert once is not None and min(abs(once + 40), abs(once - 30)) < 1e-9


def test_equal_shares_have_no_sign_whatever_rounding_makes_of_them() -> None:
    """Against fractions: the mean of three equal floats is not always that float."""
    table = np.random.default_rng(0).multinomial(3, [0.4, 0.3, 0.2, 0.1], size=18)
    design = Design.of(np.repeat(np.arange(3), 6))
    words = random_words(0)

    def differences(members: np.ndarray) -> list[Fraction]:
        sums = [table[members & (design.groups == group)].sum(axis=0).tolist() for group in range(3)]
        shares = [[Fraction(one, sum(row)) for one in row] for row in sums]
        return [share - sum(column) / 3 for column in zip(*shares, strict=True) for share in column]

    def sign(one: Fraction) -> int:
        return (one > 0) - (one < 0)

    whole = Fraction(0)
    for half in (speaker_halves(design, words) for _ in range(SPLITS)):
        pairs = zip(differences(half == 0), differences(half == 1), strict=True)
        whole += sum(sign(one) * other + one * sign(other) for one, other in pairs) * Fraction(25, 2)
    assert cross_fitted(Table.of(table, 18), design).value == pytest.approx(float(whole / SPLITS))


def test_jackknife_of_a_mean_is_its_standard_error() -> None:
    values = np.random.default_rng(1).normal(size=12)
    left_out = (values.sum() - values) / 11
    assert jackknife_error(left_out, np.zeros(12, dtype=int)) == pytest.approx(values.std(ddof=1) / np.sqrt(12))


@pytest.mark.parametrize("noise", [0.5, 3.0, 20.0])
def test_largest_truth_inverts_the_expected_raw_score(noise: float) -> None:
    for truth in (0.0, 2.0, 15.0, 60.0):
        raw = noise * quad(lambda x, ratio=truth / noise: abs(x) * norm.pdf(x - ratio), -40, 160, limit=500)[0]
        assert largest_truth(raw, noise) == pytest.approx(truth, abs=0.02 * noise)
    assert largest_truth(0.1 * noise, noise) == 0
    assert largest_truth(7.0, 0.0) == 7


def test_critical_value_goes_from_two_sided_to_one_sided() -> None:
    assert critical_value(0, 1, 10_000, 0.95) == pytest.approx(1.96, abs=0.001)
    assert critical_value(50, 1, 10_000, 0.95) == pytest.approx(1.645, abs=0.001)
    # Imbens and Manski (2004), section 4: between the two for a bracket as wide as its error.
    middle = critical_value(1, 1, 10_000, 0.95)
    assert norm.cdf(middle + 1) - norm.cdf(-middle) == pytest.approx(0.95, abs=1e-3) and 1.645 < middle < 1.96


@pytest.mark.parametrize(("score", "pattern"), [(0, Pattern.SPREAD), (10, Pattern.TWO_VALUES), (25, Pattern.ONE_GROUP)])
def test_around_the_truth_on_average_and_covered(score: int, pattern: Pattern) -> None:
    """Calibration in short; benchmarks/calibration.py is the full form."""
    shares = shifted(zipf(8), 2, score, pattern)
    rows = []
    for seed in range(120):
        table = answers(np.random.default_rng(seed), shares, GROUPS, 40, 0.1)
        table = table[:, kept_values(table, 10)]
        found = bracket([table], GROUPS, seed=seed).mean
        assert found.interval is not None
        rows.append((found.at_least, found.at_most, *found.interval))
    least, most, low, high = np.array(rows, dtype=float).T
    error = 3 / np.sqrt(len(rows))
    assert least.mean() - error * least.std() <= score <= most.mean() + error * most.std()
    assert ((low <= score) & (score <= high)).mean() >= 0.9


def test_mean_of_the_attributes_with_a_score() -> None:
    first, second, degenerate = simulated(30), simulated(5, seed=1), np.tile([4, 0], (16, 1))
    task = bracket([first, degenerate, second], GROUPS)
    assert task.attributes[1].reason == DEGENERATE and task.attributes[1].at_most is None
    assert task.mean.at_least == pytest.approx(
        np.mean([task.attributes[0].at_least or 0, task.attributes[2].at_least or 0])
    )
    assert task.mean.interval is not None


def test_strata_of_utterances_are_standardised() -> None:
    rng = np.random.default_rng(3)
    table = np.stack([answers(rng, np.tile(zipf(5), (2, 1)), GROUPS, 30, 0.0) for _ in range(2)], axis=1)
    found = bracket([table], GROUPS).mean
    weights = table.sum(axis=(0, 2)) / table.sum()
    by_group = np.stack([table[group == GROUPS].sum(axis=0) for group in (0, 1)])
    expected = shift(np.einsum("h,ghv->gv", weights, by_group / by_group.sum(axis=2, keepdims=True)))
    assert found.at_most is not None and found.at_most <= expected


@pytest.mark.parametrize(
    ("table", "groups", "reason"),
    [
        ([[5, 5], [1, 4], [2, 2]], [0, 0, 1], LONE_SPEAKER),
        ([[5, 5], [1, 4]], [0, 0], ONE_GROUP),
        ([[5, 5], [1, 4], [0, 0], [0, 0]], [0, 0, 1, 1], EMPTY_GROUP),
        ([[5], [1], [1], [2]], [0, 0, 1, 1], DEGENERATE),
    ],
)
def test_without_a_bracket_there_is_a_reason(table: list[list[int]], groups: list[int], reason: str) -> None:
    found = bracket([table], groups).mean
    assert found.at_least is None and found.interval is None and found.reason == reason


@pytest.mark.parametrize(
    ("table", "groups", "reason", "has_low"),
    [
        # One of two speakers has all values of group 0.
        ([[5, 5], [0, 0], [2, 2], [3, 1]], [0, 0, 1, 1], NEEDED_SPEAKER, False),
        # Two speakers a group: without one, that one's half has none.
        ([[5, 5], [4, 1], [2, 2], [3, 1]], [0, 0, 1, 1], NEEDED_IN_HALF, True),
        # Two of four speakers of group 0 have values: some splits can be used, none of them without either of the two.
        ([[5, 5], [4, 1], [0, 0], [0, 0], [2, 2], [3, 1], [3, 2], [4, 2]], [0] * 4 + [1] * 4, NEEDED_IN_HALF, True),
    ],
)
def test_without_an_interval_the_reason_is_the_true_one(
    table: list[object], groups: list[int], reason: str, has_low: bool
) -> None:
    found = bracket([table], groups).mean
    assert found.at_most is not None and found.interval is None and found.reason == reason
    assert (found.at_least is not None) == has_low


def test_splits_that_leave_a_half_without_values_say_so() -> None:
    # Two of four speakers of group 0 have values. A single split has them in different halves, or in one.
    table = [[5, 5], [4, 1], [0, 0], [0, 0], [2, 2], [3, 1], [3, 2], [4, 2]]
    found = {bracket([table], [0] * 4 + [1] * 4, splits=1, seed=seed).mean.reason for seed in range(20)}
    assert found == {EMPTY_HALF, NEEDED_IN_HALF}


def test_splits_without_an_error_are_passed_over_where_there_are_others() -> None:
    # Four of eight speakers of group 0 have values: split two and two, each half has some whoever is left out.
    table = [[5, 5], [4, 1], [2, 6], [3, 3], *[[0, 0]] * 4, *[[2, 2], [3, 1], [3, 2], [4, 2]] * 2]
    design = Design.of([0] * 8 + [1] * 8)
    for seed in range(10):
        words = random_words(seed)
        halves = np.stack([speaker_halves(design, words) for _ in range(SPLITS)])
        steady = halves[(halves[:, :4].sum(axis=1) == 2)]
        scores, left_out = _split_scores(Table.of(table, 16), design, steady)
        found = cross_fitted(Table.of(table, 16), design, seed=seed)
        assert 0 < len(steady) < SPLITS and found.value == pytest.approx(scores.mean())
        np.testing.assert_allclose(found.left_out, left_out.mean(axis=0))
        assert bracket([table], design.groups, seed=seed).mean.interval is not None


def by_hand(table: np.ndarray, groups: np.ndarray) -> tuple[float, tuple[float, float], float]:
    """at_most, interval and no_more_than of two groups and any values, written out with scipy.stats and constants of
    its own: 0.2 standard errors, sqrt(2 / pi), Satterthwaite's degrees of freedom, Imbens and Manski's c."""

    def shares(rows: np.ndarray) -> np.ndarray:
        return np.stack([table[rows & (groups == group)].sum(axis=0) for group in (0, 1)]) / [
            [table[rows & (groups == group)].sum()] for group in (0, 1)
        ]

    everyone = np.ones(groups.size, dtype=bool)
    without = [everyone & (np.arange(groups.size) != speaker) for speaker in range(groups.size)]

    def parts(values: np.ndarray) -> np.ndarray:
        return np.array([
            (size - 1) / size * ((values[groups == group] - values[groups == group].mean()) ** 2).sum()
            for group, size in enumerate(np.bincount(groups))
        ])  # fmt: skip

    raw = 50 * np.abs(np.subtract(*shares(everyone))).sum()
    left_out = np.array([50 * np.abs(np.subtract(*shares(rows))).sum() for rows in without])
    halves = np.stack([np.subtract(*shares(rows)) / 2 for rows in without])
    noise = 100 * sum(float(np.sqrt(parts(column).sum())) for column in halves.T)
    low = cross_fitted(Table.of(table, groups.size), Design.of(groups))
    raw_parts, low_parts = parts(left_out), parts(low.left_out)
    raw_error, low_error = np.sqrt(raw_parts.sum()), np.sqrt(low_parts.sum())

    def freedom(own: np.ndarray) -> float:
        return float(own.sum() ** 2 / (own**2 / (np.bincount(groups) - 1)).sum())

    def truth(score: float) -> float:
        def expected(true: float) -> float:
            ratio = true / noise
            return noise * (2 * norm.pdf(ratio) + ratio * (2 * norm.cdf(ratio) - 1))

        return 0.0 if score <= expected(0) else float(brentq(lambda true: expected(true) - score, 0, score + 1))

    at_most = min(raw, truth(raw + 0.2 * raw_error))
    degrees = min(freedom(raw_parts), freedom(low_parts))
    error, free = max(raw_error, low_error), noise / np.sqrt(table.shape[1] - 1)
    ratio = (at_most - low.value) / error
    student = stats.t(degrees)
    c = (
        brentq(lambda c: student.cdf(c + ratio) - student.cdf(-c) - 0.95, 1, student.ppf(0.975))
        if ratio > 0
        else student.ppf(0.975)
    )

    def upper(reach: float) -> float:
        hidden = noise * np.sqrt(2 / np.pi) + (reach - 1) * max(error, free)
        return max(truth(max(raw + reach * raw_error, hidden)), at_most)

    ends = max(low.value - c * low_error, 0), min(upper(c), 100)
    return at_most, ends, min(upper(student.ppf(0.95)), 100)


@pytest.mark.parametrize(("sizes", "score"), [((9, 7), 0), ((9, 7), 15), ((4, 20), 30), ((5, 5), 8)])
def test_every_constant_against_another_program(sizes: tuple[int, int], score: float) -> None:
    """Fails if LIFT, NULL, the degrees of freedom, the quantiles or the number of splits are changed."""
    groups = np.repeat([0, 1], sizes)
    shares = shifted(zipf(6), 2, score, Pattern.SPREAD)
    table = answers(np.random.default_rng(score), shares, groups, 40, 0.1)
    found = bracket([table], groups).mean
    at_most, ends, limit = by_hand(table, groups)
    assert found.at_most == pytest.approx(at_most, abs=1e-6)
    assert found.interval == pytest.approx(ends, abs=1e-6)
    assert found.no_more_than == pytest.approx(limit, abs=1e-6)
    assert found.at_least == pytest.approx(bracket([table], groups, splits=20).mean.at_least)


def test_lift_is_the_least_that_keeps_the_upper_end_over_the_truth() -> None:
    # The limit of small errors (docs/statistics.md): raw = true + e, all of one noise W with error W in it. The mean of
    # the inverse at raw + L W is to be at least the truth for every truth: 0.201 by quadrature.
    def shortfall(lift: float) -> float:
        points, weights = np.polynomial.hermite_e.hermegauss(80)
        weights = weights / weights.sum()
        truths = np.linspace(0, 4, 41)
        means = [
            float(weights @ [largest_truth(max(abs(true + x) + lift, 0.0), 1.0) for x in points]) for true in truths
        ]
        return float(np.min(np.array(means) - truths))

    assert shortfall(LIFT) > -0.02 and shortfall(LIFT - 0.05) < shortfall(LIFT)
    assert LIFT == 0.2 and pytest.approx(float(np.sqrt(2 / np.pi))) == NULL and SPLITS == 20


def test_satterthwaite_by_hand() -> None:
    # Welch (1947), example: variances of means 4 and 1 of 5 and 10: (4 + 1)^2 / (16 / 4 + 1 / 9).
    groups = np.repeat([0, 1], [5, 10])
    assert satterthwaite(np.array([4.0, 1.0]), groups) == pytest.approx(25 / (4 + 1 / 9))
    assert satterthwaite(np.zeros(2), groups) == 13
    # Equal groups and variances: those of both together, as for Student's t.
    assert satterthwaite(np.ones(2), np.repeat([0, 1], 8)) == pytest.approx(14)


def test_a_sign_beyond_doubt_is_far_out() -> None:
    # 3.9 errors out the expected raw score is still more than the truth, by 2 (phi(x) - x (1 - Phi(x))).
    more = 2 * (norm.pdf(3.9) - 3.9 * norm.sf(3.9))
    assert largest_truth(3.9 + more, 1.0) == pytest.approx(3.9, abs=1e-9)
    assert largest_truth(8.5, 1.0) == 8.5


def test_the_one_sided_limit_is_over_the_truth_and_not_under_the_upper_end() -> None:
    """Coverage in short; benchmarks/value_parts.py has the full form."""
    for score, pattern in ((0, Pattern.SPREAD), (10, Pattern.TWO_VALUES), (25, Pattern.SPREAD)):
        shares, held = shifted(zipf(8), 2, score, pattern), []
        for seed in range(60):
            found = bracket([answers(np.random.default_rng(seed), shares, GROUPS, 40, 0.1)], GROUPS, seed=seed).mean
            assert found.no_more_than is not None and found.at_most is not None and found.interval is not None
            assert found.at_most <= found.no_more_than <= found.interval[1] + 1e-9
            held.append(score <= found.no_more_than)
        assert np.mean(held) >= 0.9
    alike = bracket([np.where(GROUPS[:, None] == 0, [30, 10], [10, 30])], GROUPS).mean
    assert alike.no_more_than == pytest.approx(50 + 200 * (1 - 0.05 ** (1 / 14)))


def test_nan_is_refused() -> None:
    with pytest.raises(UserError):
        bracket([np.full((2, 2), np.nan)], [0, 1])


def test_leaving_out_a_speaker_is_a_run_without_him() -> None:
    table = Table.of(simulated(30), 16)
    halves = np.arange(16)[None] % 2
    scores, left_out = _split_scores(table, Design.of(GROUPS), halves)
    for speaker in range(16):
        rest = np.arange(16) != speaker
        without = Table.of(table.counts[rest], 15)
        assert left_out[0, speaker] == pytest.approx(
            _split_scores(without, Design.of(GROUPS[rest]), halves[:, rest])[0][0]
        )
    assert scores.shape == (1,) and left_out.shape == (1, 16)
