"""Groups exchanged within speakers: by hand, against another implementation, and by a small simulation."""

from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from vibe_harness.stats.permutation import permutation_test
from vibe_harness.stats.within import within_bracket

GROUPS, OWNERS = np.tile([0, 1], 4), np.repeat(np.arange(4), 2)


def test_every_assignment_within_the_speakers_is_looked_at() -> None:
    """Four speakers who each say 'a' in one group and 'b' in the other: 2 of 2^4 assignments are as far apart."""
    table = np.tile([[5, 0], [0, 5]], (4, 1))
    found = permutation_test([table], GROUPS, OWNERS, permutations=999)
    assert found.complete and found.permutations == 16
    assert found.mean.value == 100 and found.mean.p_value == pytest.approx(2 / 16)


def test_habits_of_speakers_do_not_count() -> None:
    """Each speaker says the same in both groups, and another thing than the next: no shift, and no wide interval."""
    table = np.repeat(6 * np.eye(4, dtype=int), 2, axis=0)
    found = within_bracket([table], GROUPS, OWNERS).mean
    assert found.at_most == 0 and found.at_least == pytest.approx(0)


def test_the_error_is_that_of_leaving_out_a_speaker_whole() -> None:
    """Raw scores with each speaker left out, by hand: the jackknife of n replicates, (n - 1) / n of their squares."""
    table = np.array([[6, 2], [3, 5], [7, 1], [5, 3], [6, 2], [6, 2], [4, 4], [1, 7]])

    def raw(rows: NDArray[np.bool_]) -> float:
        one, other = (table[rows & (g == GROUPS)].sum(axis=0) / table[rows & (g == GROUPS)].sum() for g in (0, 1))
        return float(50 * np.abs(one - other).sum())

    left_out = np.array([raw(speaker != OWNERS) for speaker in range(4)])
    by_hand = np.sqrt(3 / 4 * ((left_out - left_out.mean()) ** 2).sum())
    found = within_bracket([table], GROUPS, OWNERS).mean
    assert raw(np.full(8, True)) >= found.at_most > 0
    assert found.interval is not None and found.interval[1] - found.at_most > 2 * by_hand


def test_the_bracket_does_not_hang_on_the_order_of_units() -> None:
    table = np.random.default_rng(0).integers(0, 9, (8, 3))
    first = within_bracket([table], GROUPS, OWNERS).mean
    order = np.arange(8)[::-1]
    other = within_bracket([table[order]], GROUPS[order], OWNERS[order]).mean
    assert (first.at_least, first.at_most) == pytest.approx((other.at_least, other.at_most))
    assert first.interval == pytest.approx(other.interval)


def test_one_speaker_has_no_interval() -> None:
    found = within_bracket([[[5, 1], [1, 5]]], [0, 1], [0, 0]).mean
    assert found.interval is None and found.reason and found.at_most is not None


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(6, 6), (20, 4)])
def test_the_level_holds_and_the_interval_covers(counts: tuple[int, int]) -> None:
    """No shift, and habits that make the speakers far from alike: 300 runs, so that 0.05 may come out as 0.08."""
    state = np.random.default_rng(1)
    shares = 1 / np.arange(1, 7)
    groups, owners = np.tile([0, 1], 20), np.repeat(np.arange(20), 2)
    rejected = covered = 0
    for run in range(300):
        habits = state.dirichlet(shares / shares.sum() * 7 / 3, 20)
        table = np.array([state.multinomial(counts[g], habits[s]) for s, g in zip(owners, groups, strict=True)])
        p_value = permutation_test([table], groups, owners, permutations=199, seed=run).mean.p_value
        assert p_value is not None
        rejected += p_value <= 0.05
        interval = within_bracket([table], groups, owners, seed=run).mean.interval
        covered += interval is not None and interval[0] == 0
    assert rejected <= 24 and covered >= 276


def test_permuting_by_hand_is_the_same_test() -> None:
    """Another implementation of three groups within two speakers, unweighted: all 6^2 assignments, equal numbers."""
    table = np.array([[4, 0], [2, 2], [1, 3], [3, 1], [2, 2], [0, 4]])
    groups, owners = np.tile(np.arange(3), 2), np.repeat([0, 1], 3)

    def score(codes: NDArray[np.int64]) -> float:
        shares = np.array([table[codes == g].sum(axis=0) / table[codes == g].sum() for g in range(3)])
        noise = sum(
            ((table[codes == g] - 4 * table.sum(axis=0) / table.sum()) ** 2).sum() / table[codes == g].sum() ** 2
            for g in range(3)
        )
        return float(np.abs(shares - shares.mean(axis=0)).sum() / np.sqrt(noise))

    observed = score(groups)
    drawn = [score(np.array([*one, *other])) for one in permutations(range(3)) for other in permutations(range(3))]
    by_hand = np.mean([value >= observed - 1e-9 for value in drawn])
    found = permutation_test([table], groups, owners, permutations=999)
    assert found.permutations == 36 and found.mean.p_value == pytest.approx(by_hand)
