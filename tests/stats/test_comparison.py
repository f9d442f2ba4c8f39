"""Two runs over the same clips: the pairing counts, no change is rarely found, a change is."""

import numpy as np
import pytest

from vibe_harness.errors import UserError
from vibe_harness.stats.bracket import LONE_SPEAKER, NEEDED_IN_HALF, NEEDED_SPEAKER, bracket
from vibe_harness.stats.comparison import compare
from vibe_harness.stats.simulation import Pattern, answers, shifted, zipf

GROUPS = np.repeat([0, 1], 15)


def run(score: float, seed: int, reorder: bool = False, habit: float = 0.05) -> np.ndarray:
    shares = shifted(zipf(6), 2, score, Pattern.SPREAD)
    return answers(np.random.default_rng(seed), shares[:, ::-1] if reorder else shares, GROUPS, 40, habit)


def test_the_same_run_twice_has_no_difference() -> None:
    found = compare([run(20, 0)], [run(20, 0)], GROUPS)
    assert found.difference == 0 and found.p_value == 1
    # Of 15 and 15 speakers none changed; up to 1 - 0.025^(1/30) of all could.
    reach = 200 * (1 - 0.025 ** (1 / 30))
    assert found.interval == pytest.approx((-reach, reach))


def test_runs_in_which_no_speaker_differs_have_an_interval_all_the_same() -> None:
    before, after = (np.where(GROUPS[:, None] == 0, [20, 20], other) for other in ([20, 20], [10, 30]))
    found = compare([before], [after], GROUPS)
    reach = 400 * (1 - 0.025 ** (1 / 30))
    assert found.difference == pytest.approx(25) and found.interval == pytest.approx((25 - reach, 25 + reach))
    assert found.p_value == pytest.approx(2 * (1 - 25 / 400) ** 30)


def test_no_difference_is_beyond_the_scale() -> None:
    few = np.repeat([0, 1], 4)
    mixed, apart = np.array([[9, 1], [1, 9], [5, 5], [5, 5]] * 2), np.where(few[:, None] == 0, [10, 0], [0, 10])
    apart[0] = [6, 4]
    found = compare([mixed], [apart], few)
    assert found.interval is not None and found.interval[1] == 100 and found.interval[0] >= -100


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ([[5, 5], [0, 0], [2, 2], [3, 1]], NEEDED_SPEAKER),
        ([[5, 5], [1, 2], [2, 2], [3, 1]], NEEDED_IN_HALF),
    ],
)
def test_without_an_interval_the_reason_is_the_true_one(before: list[object], reason: str) -> None:
    found = compare([before], [[[3, 5], [1, 1], [2, 2], [3, 1]]], [0, 0, 1, 1])
    assert found.interval is None and found.p_value is None and found.reason == reason


def test_a_change_is_found_and_signed() -> None:
    found = compare([run(40, 0)], [run(5, 1)], GROUPS)
    assert found.difference is not None and found.interval is not None and found.p_value is not None
    assert found.interval[0] < found.difference < found.interval[1] < 0 and found.p_value < 0.05
    assert found.before is not None and found.before > 30 and found.after is not None and found.after < 15
    back = compare([run(5, 1)], [run(40, 0)], GROUPS)
    assert back.difference == pytest.approx(-found.difference) and back.p_value == pytest.approx(found.p_value)


@pytest.mark.parametrize("reorder", [False, True])
def test_an_unchanged_shift_is_rarely_found_changed(reorder: bool) -> None:
    # With the values reordered every answer changes, but not how far the groups are apart.
    p_values = [compare([run(30, seed)], [run(30, 1_000 + seed, reorder)], GROUPS).p_value for seed in range(150)]
    assert np.mean([p_value is not None and p_value <= 0.05 for p_value in p_values]) <= 0.11


def test_a_run_that_is_only_noisier_is_rarely_found_changed() -> None:
    # Speakers' habits grow: the raw score rises by a good deal, the shift does not.
    found = [compare([run(0, seed)], [run(0, 1_000 + seed, habit=0.4)], GROUPS) for seed in range(100)]
    assert np.mean([one.after - one.before for one in found if one.after and one.before]) > 5
    assert np.mean([one.p_value is not None and one.p_value <= 0.05 for one in found]) <= 0.11
    assert np.mean([one.difference for one in found if one.difference is not None]) == pytest.approx(0, abs=3)


def test_only_attributes_with_both_scores_are_compared() -> None:
    degenerate = np.tile([5, 0, 0, 0, 0, 0], (30, 1))
    found = compare([run(20, 0), degenerate], [run(20, 1), run(20, 2)], GROUPS)
    assert found.attributes == (0,)
    nothing = compare([degenerate], [run(20, 1)], GROUPS)
    assert nothing.difference is None and nothing.p_value is None and nothing.reason


def test_a_lone_speaker_has_raw_scores_and_no_difference() -> None:
    found = compare([[[3, 1], [1, 3]]], [[[4, 0], [0, 4]]], [0, 1])
    assert (found.before, found.after) == (50, 100)
    assert found.difference is None and found.p_value is None and found.reason == LONE_SPEAKER


def test_the_difference_is_that_of_the_lower_ends_of_the_brackets() -> None:
    first, second = run(40, 0), run(5, 1)
    low = [bracket([table], GROUPS).mean.at_least for table in (first, second)]
    assert compare([first], [second], GROUPS).difference == pytest.approx(low[1] - low[0])


def test_runs_that_do_not_match_are_refused() -> None:
    with pytest.raises(UserError):
        compare([run(20, 0)], [run(20, 0)[:, :4]], GROUPS)
    with pytest.raises(UserError):
        compare([run(20, 0)], [], GROUPS)
