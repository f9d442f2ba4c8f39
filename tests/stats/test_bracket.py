"""The bracket: around the truth on average, its interval over it, and silent where nothing can be said."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import Design
from vibe_harness.stats.bracket import LONE_SPEAKER, _critical, _split_scores, bracket, jackknife_error, largest_truth
from vibe_harness.stats.ntvd import DEGENERATE, EMPTY_GROUP, ONE_GROUP, kept_values, ntvd, shift
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


def test_no_habit_no_noise_no_width() -> None:
    # All speakers of a group answer alike: nothing is left to chance.
    table = np.where(GROUPS[:, None] == 0, [30, 10], [10, 30])
    found = bracket([table], GROUPS).mean
    assert found.interval is not None
    np.testing.assert_allclose(np.array([found.at_least, found.at_most, *found.interval], dtype=float), 50)


def test_cross_fitting_by_hand() -> None:
    # Two speakers a group: every split takes one from each. With speakers a, b and c, d the halves are {a, c}, {b, d}
    # or {a, d}, {b, c}. Shares of the first value: a 0.9, b 0.5, c 0.2, d 0.6. Differences of two-value groups:
    # halves ac: 0.7, bd: -0.1; product (sign(0.7) x -0.1 + sign(-0.1) x 0.7) / 2 = -0.4; halves ad: 0.3, bc: 0.3: 0.3.
    table = np.array([[90, 10], [50, 50], [20, 80], [60, 40]])
    found = bracket([table], [0, 0, 1, 1], splits=1_000).mean
    assert found.at_least == pytest.approx(100 * (-0.4 + 0.3) / 2, abs=4)
    once = bracket([table], [0, 0, 1, 1], splits=1).mean.at_least
    assert once is not None and min(abs(once + 40), abs(once - 30)) < 1e-9


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
    assert _critical(0, 1, 10_000, 0.95) == pytest.approx(1.96, abs=0.001)
    assert _critical(50, 1, 10_000, 0.95) == pytest.approx(1.645, abs=0.001)
    # Imbens and Manski (2004), section 4: between the two for a bracket as wide as its error.
    middle = _critical(1, 1, 10_000, 0.95)
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


def test_one_speaker_with_all_values_has_no_interval() -> None:
    found = bracket([[[5, 5], [0, 0], [2, 2], [3, 1]]], [0, 0, 1, 1]).mean
    assert found.at_most is not None and found.interval is None and found.reason is not None


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
