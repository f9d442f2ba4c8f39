"""Residuals permuted and flipped: against plain loops, identities, values by hand, and true nulls."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from vibe_harness.stats.assignments import Design
from vibe_harness.stats.level import permutation_test_with_level, simulated_levels
from vibe_harness.stats.ntvd import ntvd
from vibe_harness.stats.permutation import permutation_test, permutation_tests
from vibe_harness.stats.residuals import group_habits, pooled_shares, residuals_of
from vibe_harness.stats.simulation import answers, zipf
from vibe_harness.stats.tables import Table

RNG = np.random.default_rng(8)
GROUPS = np.repeat([0, 1, 2], [5, 4, 6])
NUMBER = np.array([60, 60, 50, 60, 40, 6, 5, 9, 6, 20, 25, 30, 20, 20, 15])
COUNTS = RNG.multinomial(NUMBER, [0.4, 0.3, 0.2, 0.1])


def by_group(table: np.ndarray, groups: np.ndarray) -> np.ndarray:
    return np.stack([table[groups == group].sum(axis=0) for group in range(groups.max() + 1)])


@pytest.mark.parametrize("strata", [None, np.arange(15) % 2])
def test_the_permutation_that_moves_nothing_gives_the_data(strata: np.ndarray | None) -> None:
    design = Design.of(GROUPS, strata)
    found = residuals_of(Table.of(COUNTS, 15), design)
    score, noise = found.permuted(np.arange(15)[None])
    assert score[0] == pytest.approx(float(ntvd(by_group(COUNTS, GROUPS)))) and noise[0] == pytest.approx(found.noise)


def test_strata_of_utterances_give_the_standardised_score() -> None:
    counts = RNG.multinomial(np.stack([NUMBER, NUMBER[::-1]], axis=1), [0.4, 0.3, 0.2, 0.1])
    table = Table.of(counts, 15)
    score = residuals_of(table, Design.of(GROUPS)).permuted(np.arange(15)[None])[0]
    assert score[0] == pytest.approx(permutation_test([counts], GROUPS, permutations=9).mean.value)


def test_a_permutation_written_out() -> None:
    """The residuals in units of their noise, turned by an explicit matrix, permuted, turned back and set in place."""
    design = Design.of(GROUPS)
    found = residuals_of(Table.of(COUNTS, 15), design)
    totals = np.array([NUMBER[group == GROUPS].sum() for group in range(3)])
    deviation = np.sqrt(found.variance)
    axis = NUMBER / totals[GROUPS] / deviation
    axis = axis / np.linalg.norm(axis)
    difference = axis - np.full(15, 1 / np.sqrt(15))
    mirror = np.eye(15) - 2 * np.outer(difference, difference) / (difference @ difference)
    assert mirror @ axis == pytest.approx(np.full(15, 1 / np.sqrt(15)))
    weights = axis / (NUMBER / totals[GROUPS]) / deviation * NUMBER / totals[GROUPS]  # in proportion to n / variance
    shares = (weights / NUMBER) @ (COUNTS / deviation[:, None] * deviation[:, None]) / weights.sum()
    precision = (NUMBER / totals[GROUPS]) ** 2 / found.variance
    shares = (precision / NUMBER) @ COUNTS / precision.sum()
    units = (COUNTS - NUMBER[:, None] * shares) / totals[GROUPS][:, None] / deviation[:, None]
    assert axis @ units == pytest.approx(np.zeros(4), abs=1e-12)
    turned = mirror @ units
    places = RNG.permutation(15)
    placed = np.zeros((15, 4))
    placed[places] = turned
    back = mirror @ placed
    drawn = np.stack([(deviation[:, None] * back)[group == GROUPS].sum(axis=0) for group in range(3)])
    score = np.abs(drawn - drawn.mean(axis=0)).sum() * 50 / 2
    noise = np.sqrt((found.variance * (placed**2).sum(axis=1)).sum())
    scores, noises = found.permuted(places[None])
    assert scores[0] == pytest.approx(score) and noises[0] == pytest.approx(noise)


def test_signs_written_out() -> None:
    found = residuals_of(Table.of(COUNTS, 15), Design.of(GROUPS))
    signs = RNG.choice([-1, 1], 15)
    shares = np.zeros((3, 4))
    for speaker, group in enumerate(GROUPS):
        shares[group] += signs[speaker] * found.departures[speaker]
    expected = np.abs(shares - shares.mean(axis=0)).sum() * 50 / 2
    assert found.flipped(signs[None].astype(np.int8))[0] == pytest.approx(expected)


def test_with_equal_numbers_and_noise_residuals_are_exchanged_speakers() -> None:
    """Two groups of one size: p by residuals is that of whole speakers, since no speaker is reflected."""
    groups = np.repeat([0, 1], 6)
    counts = np.concatenate([RNG.multinomial(20, [0.5, 0.3, 0.2], 6)] * 2)  # the same in both: equal noise
    found = residuals_of(Table.of(counts, 12), Design.of(groups))
    assert np.ptp(found.variance) == pytest.approx(0, abs=1e-12)
    places = np.stack([RNG.permutation(12) for _ in range(20)])
    taken = np.stack([groups[place] for place in places])
    expected = [float(ntvd(by_group(counts, codes))) for codes in taken]
    assert found.permuted(places)[0] == pytest.approx(np.array(expected))


def test_speakers_without_a_value_are_passed_over_alike() -> None:
    """All permutations of four speakers, two of them without a value: both orders of the others come up as often."""
    counts = np.array([[3, 1], [0, 0], [1, 3], [0, 0]])
    found = residuals_of(Table.of(counts, 4), Design.of([0, 0, 1, 1]))
    local = found._among_units(np.array(list(permutations(range(4)))))
    assert (local[:, 0] == 0).sum() == (local[:, 0] == 1).sum() == 12
    assert (local.sum(axis=1) == 1).all()


def test_effective_speakers_by_hand() -> None:
    # Independent answers: the variances of a group are in proportion to the numbers, (4 + 1 + 1)^2 / (16 + 1 + 1) = 2.
    counts = np.array([[20, 20], [5, 5], [5, 5], [7, 3], [3, 7], [5, 5]])
    found = residuals_of(Table.of(counts, 6), Design.of([0, 0, 0, 1, 1, 1]))
    assert found.habit == 0 and found.effective == pytest.approx([2, 3])


@pytest.mark.parametrize("habit", [0.0, 0.05, 0.3])
def test_habits_are_found(habit: float) -> None:
    rng = np.random.default_rng(2)
    number = rng.integers(5, 100, 400)
    counts = answers(rng, zipf(10)[None], np.zeros(400, dtype=int), number, habit)
    (found,) = group_habits(counts, np.zeros(400, dtype=int), pooled_shares(counts))
    assert found == pytest.approx(habit, rel=0.25, abs=0.003)


def level(runs: int, groups: np.ndarray, number: np.ndarray, habits: np.ndarray, values: int = 20) -> float:
    """The share of true nulls that the test rejects at 0.05."""
    rng = np.random.default_rng(5)
    tables = []
    for _ in range(runs):
        table = np.zeros((groups.size, values), dtype=np.int64)
        for habit in np.unique(habits):
            rows = habits == habit
            table[rows] = answers(rng, zipf(values)[None], np.zeros(rows.sum(), dtype=int), number[rows], float(habit))
        tables.append([table[:, table.sum(axis=0) >= 10]])
    tests = permutation_tests(tables, groups, permutations=299, seed=1)
    return float(np.mean([test.mean.p_value is not None and test.mean.p_value <= 0.05 for test in tests]))


DESIGNS = {
    "20 and 20 speakers, 100 and 5 clips": ((20, 20), (100, 5), (0.0, 0.0)),
    "20 and 20 speakers, 60 and 6 clips": ((20, 20), (60, 6), (0.01, 0.01)),
    "40 speakers of 5, 8 of 100": ((40, 8), (5, 100), (0.1, 0.1)),
    "40 speakers of 100, 8 of 10": ((40, 8), (100, 10), (0.05, 0.05)),
    "5 and 40 speakers, unlike habits": ((5, 40), (50, 50), (0.3, 0.05)),
    "three groups, one of few clips": ((15, 15, 15), (50, 50, 5), (0.0, 0.0, 0.0)),
    "three groups, one of strong habits": ((15, 15, 15), (50, 50, 50), (0.5, 0.0, 0.0)),
    "one clip a speaker, and hundreds": ((40, 20), (1, 300), (0.1, 0.1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_the_level_is_held_whatever_the_numbers_of_clips(name: str) -> None:
    sizes, clips, habits = DESIGNS[name]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    share = level(400, groups, np.repeat(clips, sizes), np.repeat(habits, sizes))
    assert stats.binomtest(round(400 * share), 400, 0.06, alternative="greater").pvalue > 0.001


def test_unequal_clips_do_not_make_a_shift() -> None:
    """What was rejected in 0.99 of true nulls when whole speakers were exchanged without regard to noise."""
    assert level(60, np.repeat([0, 1], 20), np.repeat([100, 5], 20), np.zeros(40)) <= 0.2


def test_a_shift_is_found_all_the_same() -> None:
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1], 20)
    shares = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    table = answers(rng, shares, groups, np.repeat([60, 6], 20), 0.05)
    test = permutation_test([table], groups, permutations=999).mean
    assert test.p_value == 0.001 and test.value is not None and test.null_p95 is not None
    assert test.value > test.null_p95 > (test.null_mean or 0)


def test_all_answers_of_a_group_in_one_speaker_show_nothing() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], [5, 20])
    table = rng.multinomial(np.where(groups == 0, 0, 20), [0.4, 0.3, 0.3])
    table[0] = [0, 0, 500]
    found = permutation_test_with_level([table], groups, permutations=199, seed=0).mean
    assert found.p_value is not None and found.p_value > 0.3
    assert found.effective_speakers == pytest.approx(1) and found.level is not None and found.level <= 0.1


def test_ties_everywhere() -> None:
    same = np.tile([2, 1, 1], (8, 1)) * np.array([1, 9, 1, 9, 50, 60, 1, 1])[:, None]
    test = permutation_test([same], np.repeat([0, 1], 4), permutations=99).mean
    assert test.value == pytest.approx(0) and test.p_value == 1


def test_one_clip_a_speaker_beside_hundreds_has_an_answer() -> None:
    rng = np.random.default_rng(4)
    groups = np.repeat([0, 1], [30, 12])
    table = rng.multinomial(np.where(groups == 0, 1, 300), zipf(4))
    test = permutation_test([table], groups, permutations=199).mean
    assert test.p_value is not None and test.p_value > 0.01 and test.undefined_draws == 0


def test_p_and_what_chance_reaches_agree() -> None:
    """A score above the 95th percentile of its null has p of at most 0.05, and the other way round."""
    rng = np.random.default_rng(3)
    groups = np.repeat([0, 1], 12)
    for run in range(20):
        shares = np.array([[0.5, 0.3, 0.2], [0.42, 0.33, 0.25]])
        tables = [answers(rng, shares, groups, np.repeat([50, 8], 12), 0.05) for _ in range(2)]
        test = permutation_test(tables, groups, permutations=999, seed=run)
        for one in (*test.attributes, test.mean):
            assert one.value is not None and one.p_value is not None and one.null_p95 is not None
            assert (one.value > one.null_p95) == (one.p_value <= 0.05) or one.p_value == pytest.approx(0.05, abs=0.002)


def test_simulated_level_is_that_of_an_equal_design() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 10)
    table = Table.of(answers(rng, zipf(5)[None], np.zeros(20, dtype=int), 30, 0.1), 20)
    attribute, mean = simulated_levels([table], Design.of(groups), 0)
    assert attribute == mean and stats.binomtest(round(200 * mean), 200, 0.05).pvalue > 0.001
