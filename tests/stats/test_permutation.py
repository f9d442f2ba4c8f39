"""Permutation tests against enumeration by hand, scipy and known null distributions."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from vibe_harness.errors import UserError
from vibe_harness.stats import batched_ntvd
from vibe_harness.stats.coverage import coverage_tests
from vibe_harness.stats.ntvd import DEGENERATE, EMPTY_GROUP, ONE_GROUP, ntvd
from vibe_harness.stats.permutation import PermutationTest, permutation_test, permutation_tests
from vibe_harness.stats.tables import Table

RNG = np.random.default_rng(4)
GROUPS = np.array([0, 0, 0, 1, 1, 1, 1])
TABLE = RNG.multinomial(12, [0.4, 0.3, 0.2, 0.1], 7)
OTHER = RNG.multinomial(6, [0.5, 0.3, 0.2], 7)


def by_group(table: np.ndarray, groups: np.ndarray) -> np.ndarray:
    return np.stack([table[groups == group].sum(axis=0) for group in range(groups.max() + 1)])


def noise(table: np.ndarray, groups: np.ndarray) -> float:
    """The standard error of a score, but for a constant, as one would write it down."""
    shares = table.sum(axis=0) / table.sum()
    variance = 0.0
    for speaker, group in enumerate(groups):
        residual = table[speaker] - table[speaker].sum() * shares
        variance += float((residual**2).sum()) / float(table[groups == group].sum()) ** 2
    return float(np.sqrt(variance))


def assert_same(first: PermutationTest, second: PermutationTest) -> None:
    """Every p the same; scores but for the order in which a machine adds."""
    for one, other in zip((*first.attributes, first.mean), (*second.attributes, second.mean), strict=True):
        assert one.p_value == other.p_value
        assert one.value == pytest.approx(other.value, abs=1e-10)
        assert one.null_p95 == pytest.approx(other.null_p95, abs=1e-10)


def test_exact_test_is_the_share_of_all_assignments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vibe_harness.stats.draws.UNLIKE_NOISE", -1.0)  # the tests of residuals are not asked
    scores, errors = [], []
    for members in combinations(range(7), 3):
        groups = np.ones(7, dtype=int)
        groups[list(members)] = 0
        scores.append([float(ntvd(by_group(table, groups))) for table in (TABLE, OTHER)])
        errors.append([noise(table, groups) for table in (TABLE, OTHER)])
    values, typical = np.array(scores), np.mean(errors, axis=0)
    studentised = values / np.array(errors) * typical
    compared = np.column_stack([studentised, studentised.mean(axis=1)])  # both attributes, and their mean
    raw = np.append(values[0], values[0].mean())
    test = permutation_test([TABLE, OTHER], GROUPS)
    assert test.exact and test.complete and test.permutations == 35
    for column, tested in enumerate((*test.attributes, test.mean)):
        assert tested.value == pytest.approx(raw[column])
        assert tested.p_value == pytest.approx((compared[:, column] >= compared[0, column] - 1e-9).mean())
        at_the_noise_of_the_data = compared[:, column] * raw[column] / compared[0, column]
        assert tested.null_mean == pytest.approx(at_the_noise_of_the_data.mean(), rel=1e-5)
        assert tested.null_p95 == pytest.approx(np.percentile(at_the_noise_of_the_data, 95), rel=1e-5)


def test_the_published_test_compares_the_scores_themselves() -> None:
    scores = []
    for members in combinations(range(7), 3):
        groups = np.ones(7, dtype=int)
        groups[list(members)] = 0
        scores.append(float(ntvd(by_group(TABLE, groups))))
    test = permutation_test([TABLE], GROUPS, studentised=False)
    assert test.mean.p_value == pytest.approx((np.array(scores) >= scores[0] - 1e-9).mean())
    assert test.mean.null_mean == pytest.approx(np.mean(scores))


def test_noise_by_hand() -> None:
    # Pooled shares 1/2: residuals (1, -1) and (-1, 1), squares 2 each, over 4^2: 2/16 + 2/16 = 1/4.
    table = Table.of([[3, 1], [1, 3]], 2)
    found = batched_ntvd.BatchedNtvd([table], 2, 1).scores(np.array([[0, 1]]))
    assert found.noise[0, 0] == pytest.approx(0.5, rel=1e-6) and found.score[0, 0] == 50
    assert found.spread[0, 0] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("sizes", [(9, 12), (6, 5, 10)])
def test_noise_of_both_portions_by_loop(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    tables = [rng.integers(0, 9, (21, width)) for width in (2, 6)]
    assigned = np.stack([rng.permutation(groups) for _ in range(5)])
    found = batched_ntvd.BatchedNtvd([Table.of(table, 21) for table in tables], len(sizes), 5).scores(assigned)
    for row, codes in enumerate(assigned):
        for column, table in enumerate(tables):
            assert found.noise[row, column] == pytest.approx(noise(table, codes), rel=1e-5)
            assert found.score[row, column] == pytest.approx(float(ntvd(by_group(table, codes))))


def test_agrees_with_scipy() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], [12, 10])
    table = rng.integers(0, 4, (22, 5)) + 2 * (groups[:, None] == 0) * np.array([1, 0, 0, 0, 0])

    def statistic(first: np.ndarray, second: np.ndarray) -> float:
        return float(ntvd([table[first.astype(int)].sum(axis=0), table[second.astype(int)].sum(axis=0)]))

    rows = np.arange(22)
    other = stats.permutation_test(
        (rows[groups == 0], rows[groups == 1]), statistic, n_resamples=4_000, alternative="greater", rng=1
    )
    ours = permutation_test([table], groups, permutations=20_000, seed=1, studentised=False)
    assert not ours.exact and ours.permutations == 20_000
    assert ours.mean.value == pytest.approx(other.statistic)
    error = 4 * np.sqrt(other.pvalue * (1 - other.pvalue) * (1 / 4_000 + 1 / 20_000))
    assert ours.mean.p_value == pytest.approx(other.pvalue, abs=error)
    assert ours.mean.null_mean == pytest.approx(np.mean(other.null_distribution), abs=0.5)


def test_draws_and_enumeration_agree() -> None:
    groups = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 2])
    table = np.random.default_rng(2).multinomial(9, [0.4, 0.3, 0.2, 0.1], 10)
    exact = permutation_test([table], groups, permutations=2_000)
    drawn = permutation_test([table], groups, permutations=1_259, seed=5)  # there are 1,260 assignments
    assert exact.exact and exact.permutations == 1_260
    assert not drawn.exact and drawn.permutations == 1_259
    assert drawn.mean.p_value == pytest.approx(exact.mean.p_value, abs=0.06)


def test_identical_speakers_tie_in_every_assignment() -> None:
    # Thirds in floating point: without a tolerance rounding would break the ties.
    table = np.tile([1, 1, 1], (9, 1)) * np.arange(1, 10)[:, None]
    test = permutation_test([table], np.arange(9) % 3)
    assert test.mean.p_value == 1 and test.mean.value == pytest.approx(0)


def test_speakers_are_exchanged_within_their_stratum_only() -> None:
    # Answers follow the stratum alone, and strata hold the groups evenly: within strata nothing changes.
    strata = np.array([0, 0, 1, 1] * 3)
    groups = np.array([0, 1, 0, 1] * 3)
    table = np.where(strata[:, None] == 0, [5, 0], [0, 5])
    assert permutation_test([table], groups, strata).mean.p_value == 1
    free = permutation_test([table], groups)
    assert free.mean.null_p95 is not None and free.mean.null_p95 > 0


def test_strata_bring_out_what_they_hide() -> None:
    # Within each stratum the groups differ a little; between the strata speakers differ a lot.
    strata = np.repeat([0, 1], 8)
    groups = np.tile([0, 1], 8)
    table = np.where(strata[:, None] == 0, [40, 2], [2, 40]) + np.where(groups[:, None] == 0, [4, 0], [0, 4])
    within, over = permutation_test([table], groups, strata), permutation_test([table], groups)
    assert within.mean.p_value is not None and over.mean.p_value is not None
    assert within.mean.p_value < 0.001 < 0.3 < over.mean.p_value


def test_many_tasks_share_draws_and_do_not_disturb_each_other() -> None:
    groups = np.arange(40) % 2
    rng = np.random.default_rng(3)
    tasks = [[rng.integers(0, 5, (40, width)) for width in (3, 6)] for _ in range(4)]
    together = permutation_tests(tasks, groups, permutations=300, seed=9)
    for task, test in zip(tasks, together, strict=True):
        assert_same(test, permutation_test(task, groups, permutations=300, seed=9))


def test_memory_limit_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = np.arange(40) % 4
    tables = [np.random.default_rng(3).integers(0, 5, (40, width)) for width in (3, 6, 2)]
    whole = permutation_test(tables, groups, permutations=300)
    monkeypatch.setattr("vibe_harness.stats.batched_ntvd.ELEMENTS", 1)
    assert_same(permutation_test(tables, groups, permutations=300), whole)


def test_counts_beyond_single_precision_are_exact() -> None:
    table = np.array([[1 << 25, 1], [1 << 25, 1], [1, 1 << 25], [1, (1 << 25) + 1]])
    assert permutation_test([table], [0, 0, 1, 1]).mean.p_value == pytest.approx(2 / 6)


def test_direct_standardisation_removes_the_strata_of_utterances() -> None:
    # Both groups answer alike in each stratum, 90:10 and 10:90; group 0 has more of stratum 0.
    alike = np.array([[[90, 10], [1, 9]], [[9, 1], [10, 90]]])
    test = permutation_test([alike], [0, 1])
    assert test.mean.value == pytest.approx(0)
    assert permutation_test([alike.sum(axis=1)], [0, 1]).mean.value == pytest.approx(100 * (91 / 110 - 19 / 110))
    # Shifts of 0.5 and 0.2 in strata with 80 and 150 of all 230 answers.
    table = np.array([[[30, 10], [40, 10]], [[10, 30], [60, 40]]])  # totals 80 and 150
    expected = 100 * (80 / 230 * 0.5 + 150 / 230 * 0.2)
    assert permutation_test([table], [0, 1]).mean.value == pytest.approx(expected)


def test_a_stratum_without_a_group_is_left_out() -> None:
    table = np.array([[[30, 10], [40, 10]], [[10, 30], [0, 0]]])
    assert permutation_test([table], [0, 1]).mean.value == pytest.approx(50)
    apart = np.array([[[3, 1], [0, 0]], [[0, 0], [1, 3]]])
    test = permutation_test([apart], [0, 1])
    assert test.mean.value is None and "stratum" in (test.mean.reason or "")


def test_undefined_draws_count_against_significance() -> None:
    # Only two of six speakers answer at all, one in each group. Of 20 assignments 8 put both into one group.
    table = np.array([[3, 1], [0, 0], [0, 0], [1, 3], [0, 0], [0, 0]])
    test = permutation_test([table], [0, 0, 0, 1, 1, 1], studentised=False)
    assert test.mean.undefined_draws == 8
    assert test.mean.p_value == 1  # the 12 others tie with what was observed
    assert test.mean.null_mean == pytest.approx(50)


def test_the_mean_leaves_out_what_has_no_score_and_says_so() -> None:
    degenerate, empty = np.tile([5, 0], (7, 1)), np.where(GROUPS[:, None] == 0, 0, [[1, 2]])
    test = permutation_test([TABLE, degenerate, empty], GROUPS)
    assert test.left_out == {1: DEGENERATE, 2: EMPTY_GROUP}
    assert [tested.value is None for tested in test.attributes] == [False, True, True]
    assert test.mean.value == test.attributes[0].value
    assert permutation_test([degenerate], GROUPS).mean.value is None
    assert permutation_test([], GROUPS).mean.value is None


@pytest.mark.parametrize(
    ("groups", "strata", "reason"),
    [([0, 0, 0], None, ONE_GROUP), ([0, 0, 1], [0, 0, 1], "nothing can be permuted"), ([0], None, ONE_GROUP)],
)
def test_what_cannot_be_permuted_is_refused(groups: list[int], strata: list[int] | None, reason: str) -> None:
    test = permutation_test([np.array([[3, 1], [2, 2], [1, 3]])[: len(groups)]], groups, strata)
    assert test.refused is not None and reason in test.refused
    assert test.mean.p_value is None and test.mean.reason == test.refused
    assert test.permutations == 0 and not test.exact


def test_one_speaker_a_group_has_a_test_that_cannot_be_significant() -> None:
    test = permutation_test([np.diag([5, 5])], [0, 1])
    assert test.exact and test.permutations == 2
    assert test.mean.value == pytest.approx(100) and test.mean.p_value == 1


def test_all_answers_the_same_have_no_score() -> None:
    assert permutation_test([np.full((4, 1), 9)], [0, 1, 0, 1]).mean.reason == DEGENERATE


def test_a_value_in_one_group_only_counts() -> None:
    assert permutation_test([np.array([[4, 0], [2, 2]])], [0, 1]).mean.value == pytest.approx(50)


@pytest.mark.parametrize("table", [np.ones((3, 2)), np.full((4, 2), np.nan), -np.ones((4, 2)), np.ones(4)])
def test_what_is_no_table_is_refused(table: np.ndarray) -> None:
    with pytest.raises(UserError):
        permutation_test([table], [0, 0, 1, 1])


def test_at_least_one_permutation() -> None:
    with pytest.raises(UserError):
        permutation_test([TABLE], GROUPS, permutations=0)


@pytest.mark.parametrize(("level", "runs"), [("speakers", 200), ("utterances", 60)])
def test_a_true_null_is_rejected_at_its_level(level: str, runs: int) -> None:
    """Speaker habits: whole speakers hold the level of 5 %, single utterances do not."""
    rng = np.random.default_rng(11)
    speakers = np.repeat(np.arange(20), 30)
    groups = np.arange(20) % 2
    rejected = 0
    for run in range(runs):
        habits = rng.dirichlet(np.full(5, 2.0), 20)
        answers = (rng.random(600)[:, None] > habits[speakers].cumsum(axis=1)).sum(axis=1).clip(max=4)
        rows = np.eye(5, dtype=int)[answers]
        if level == "speakers":
            table, codes = np.stack([rows[speakers == speaker].sum(axis=0) for speaker in range(20)]), groups
        else:
            table, codes = rows, groups[speakers]
        p_value = permutation_test([table], codes, permutations=99, seed=run).mean.p_value
        assert p_value is not None
        rejected += p_value <= 0.05
    if level == "speakers":
        assert stats.binomtest(rejected, runs, 0.05).pvalue > 0.001
    else:
        assert rejected > runs / 2


def test_coverage_difference() -> None:
    groups = np.repeat([0, 1], 8)
    table = np.where(groups[:, None] == 0, [4, 16], [0, 20])
    (test,) = coverage_tests([table], groups)
    assert test.by_group == (0.2, 0.0) and test.difference == pytest.approx(20)
    assert test.p_value == pytest.approx(2 / 10_001, abs=3e-4)
    whole, nobody, absent = coverage_tests(
        [np.tile([0, 9], (16, 1)), np.tile([9, 0], (16, 1)), np.where(groups[:, None] == 0, [[0, 0]], [[1, 8]])], groups
    )
    assert (whole.difference, whole.p_value) == (0, 1) and whole.by_group == (0, 0)
    assert (nobody.difference, nobody.p_value) == (0, 1)
    assert absent.difference is None and absent.p_value is None and absent.reason == EMPTY_GROUP


def uneven_emotions(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Tables (S, 2, V) of a true null: answers follow the emotion, and the groups have them 3:1 and 1:3."""
    groups = np.repeat([0, 1], 12)
    shares = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4]])
    number = rng.multinomial(40, np.where(groups[:, None] == 0, [0.75, 0.25], [0.25, 0.75]))
    return rng.multinomial(number, shares), groups


def test_uneven_strata_of_utterances_keep_the_level() -> None:
    """Pooled, the emotions are taken for the groups; standardised, a true null is rejected at its level."""
    pooled = standardised = 0
    for run in range(200):
        table, groups = uneven_emotions(np.random.default_rng(run))
        for split in (True, False):
            test = permutation_test([table if split else table.sum(axis=1)], groups, permutations=99, seed=run)
            assert test.mean.p_value is not None
            standardised += split and test.mean.p_value <= 0.05
            pooled += not split and test.mean.p_value <= 0.05
    assert pooled > 190
    assert stats.binomtest(int(standardised), 200, 0.05).pvalue > 0.001


def test_precision_does_not_touch_a_design_without_strata() -> None:
    table = uneven_emotions(np.random.default_rng(0))[0]
    groups = np.repeat([0, 1], 12)
    one_stratum = permutation_test([table.sum(axis=1)[:, None]], groups, permutations=300)
    assert_same(one_stratum, permutation_test([table.sum(axis=1)], groups, permutations=300))


def test_mean_of_strata_is_a_second_statistic() -> None:
    """Opposite shifts in two strata cancel when standardised; each stratum as an attribute of its own shows them."""
    table = np.array([[[30, 10], [10, 30]], [[10, 30], [30, 10]]])
    assert permutation_test([table], [0, 1]).mean.value == pytest.approx(0)
    assert permutation_test([table[:, 0], table[:, 1]], [0, 1]).mean.value == pytest.approx(50)


def test_two_groups_have_the_same_scores_by_whole_numbers_and_by_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    tables = [rng.integers(0, 6, size=(30, width)) for width in (2, 7)]
    tables[1][:14] = 0  # draws that leave a group without values
    groups = rng.permutation(np.repeat([0, 1], [16, 14]))
    whole = permutation_test(tables, groups, permutations=400, seed=1, studentised=False)
    monkeypatch.setattr(batched_ntvd, "PAIR_UNITS", 0)
    shares = permutation_test(tables, groups, permutations=400, seed=1, studentised=False)
    for one, other in zip((whole.mean, *whole.attributes), (shares.mean, *shares.attributes), strict=True):
        assert one.value == pytest.approx(other.value) and one.p_value == other.p_value
        assert one.null_p95 == pytest.approx(other.null_p95) and one.undefined_draws == other.undefined_draws


def test_counts_that_share_a_number_are_the_same_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    tables = [rng.multinomial(1, np.full(width, 1 / width), size=300) for width in (9, 14)]
    groups = rng.permutation(np.repeat([0, 1, 2], [150, 130, 20]))
    packed = permutation_test(tables, groups, permutations=300, seed=1)
    monkeypatch.setattr(batched_ntvd, "PACK_UNITS", 1_000)
    assert_same(permutation_test(tables, groups, permutations=300, seed=1), packed)


@pytest.mark.parametrize("counts", [(4, 4, 4, 4, 4, 4), (4, 4, 4, 4, 4, 3), (40, 4, 4, 3, 9, 4)])
def test_three_speakers_a_group_can_tell_nothing_whatever_their_numbers_of_answers(counts: tuple[int, ...]) -> None:
    """Of 20 assignments two have the largest score: 0.10. The signs of residuals alone would promise 1/32."""
    table = np.zeros((6, 1, 2), dtype=np.int64)
    table[:3, 0, 0], table[3:, 0, 1] = counts[:3], counts[3:]
    found = permutation_test([table], np.repeat([0, 1], 3), permutations=999, seed=0)
    assert found.smallest_p == pytest.approx(0.1)
