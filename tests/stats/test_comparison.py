"""Two runs over the same clips: the pairing counts, no change is rarely found, a change is."""

import numpy as np
import pytest

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import Design
from vibe_harness.stats.bracket import LONE_SPEAKER, NEEDED_IN_HALF, NEEDED_SPEAKER, Statistic, bracket
from vibe_harness.stats.comparison import LEAST_RATIO, _near_no_shift, _tangent, compare, expected_size
from vibe_harness.stats.simulation import Pattern, answers, shifted, zipf
from vibe_harness.stats.tables import Table

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


def test_expected_size_by_hand_and_by_integration() -> None:
    # h(0) = sqrt(2 / pi), with slope 0; at 1: 2 phi(1) + 2 Phi(1) - 1 and 2 Phi(1) - 1, from tables of the normal law.
    assert expected_size(0.0) == (pytest.approx(0.7978846, abs=1e-7), 0)
    assert expected_size(1.0) == (pytest.approx(1.1666309, abs=1e-6), pytest.approx(0.6826895, abs=1e-6))
    steps = np.linspace(-9, 9, 200_001)
    weights = np.exp(-(steps**2) / 2) / np.exp(-(steps**2) / 2).sum()
    assert expected_size(LEAST_RATIO)[0] == pytest.approx(
        float((np.abs(LEAST_RATIO + steps) * weights).sum()), abs=1e-9
    )


def test_the_upper_score_is_the_tangent_by_hand() -> None:
    # At ratio 0.75: phi = 0.3011374, 2 Phi - 1 = 0.5467453; h = 0.6022748 + 0.4100590 = 1.0123338.
    raw = Statistic(8.0, np.array([7.0, 9.0]), noise=10.0)  # under 7.98, so that no shift is in keeping with it
    found = _tangent(raw)
    assert found.value == pytest.approx(7.5 + (8 - 10.123338) / 0.5467453, abs=1e-4)
    assert found.left_out == pytest.approx(7.5 + (raw.left_out - 10.123338) / 0.5467453, abs=1e-4)
    far = _tangent(Statistic(100.0, np.array([99.0, 101.0]), noise=10.0))
    assert far.value == pytest.approx(100) and far.left_out == pytest.approx([99, 101])
    still = Statistic(5.0, np.full(2, 5.0))
    assert _tangent(still) is still


def test_the_upper_score_near_no_shift_by_hand() -> None:
    """Two groups of two speakers of 8 answers, 2 values. Shares of the first value 1/4 and 3/4 in the first group, 1/2
    and 1/2 in the second: P = (1/2, 1/2), no difference.

    Without its first speaker the first group is at 3/4, without its second at 1/4; half of that, 1/8, is a difference
    from the mean over groups. The jackknife's variance is 1/2 (1/64 + 1/64) = 1/64 for each of the four differences; a
    = 1/4 x 1/8 = 1/32, the weights 1 / (4 a) = 8. The sum of a - 8 / 64 over four differences is -3/8, times the scale
    50 / (2 - 1): -18.75. With a speaker left out (1/8)^2 - 1/64 = 0 stands in place of -1/64, so 4/32 x 50 = 6.25;
    with one of the second group, nothing changes.
    tr(wC) = 50 x 4 x 8 / 64 = 25, one free difference: 2 x 25^2 = 1,250.
    """
    groups = np.array([0, 0, 1, 1])
    table = Table.of([[2, 6], [6, 2], [4, 4], [4, 4]], 4)
    found = _near_no_shift([table], Design.of(groups))
    assert found.score.value == pytest.approx(-18.75)
    assert found.score.left_out == pytest.approx([6.25, 6.25, -18.75, -18.75])
    assert found.doubled == pytest.approx(1_250)
    twice = _near_no_shift([table, table], Design.of(groups))
    assert twice.score.value == pytest.approx(-18.75) and twice.doubled == pytest.approx(625)


def test_the_upper_score_near_no_shift_is_the_size_of_differences_without_noise() -> None:
    table = Table.of([[6, 2], [6, 2], [2, 6], [2, 6]], 4)
    found = _near_no_shift([table], Design.of(np.array([0, 0, 1, 1])))
    assert found.score.value == pytest.approx(50) and found.doubled == 0


@pytest.mark.parametrize("pattern", [Pattern.SPREAD, Pattern.TWO_VALUES])
@pytest.mark.parametrize("truth", [0, 5, 10])
def test_neither_upper_score_is_under_the_truth_with_unequal_clips(pattern: Pattern, truth: int) -> None:
    groups, rng = np.repeat(np.arange(3), 5), np.random.default_rng(2)
    clips = np.tile([200, 100, 50, 20, 10], 3)
    shares = shifted(zipf(8), 3, truth, pattern)
    tables = [Table.of(answers(rng, shares, groups, clips, 0.1), groups.size) for _ in range(200)]
    found = np.array([_near_no_shift([table], Design.of(groups)).score.value for table in tables])
    assert found.mean() > truth - 2 * found.std() / np.sqrt(len(found))


def test_no_upper_score_is_under_the_truth_on_average() -> None:
    # Whatever carries the shift: cells with normal errors, a share of which differ.
    rng = np.random.default_rng(0)
    for share in (1.0, 0.3, 0.05):
        for truth in (0.0, 0.3, 1.0, 3.0):
            cells = np.where(np.arange(400) < 400 * share, truth / share, 0.0)
            raw = np.abs(cells + rng.standard_normal((300, 400))).mean(axis=1)
            upper = [_tangent(Statistic(float(one), np.zeros(1), noise=1.0)).value for one in raw]
            assert np.mean(upper) >= truth - 0.01


@pytest.mark.parametrize("start", range(5))
def test_the_interval_is_within_what_the_runs_own_intervals_allow(start: int) -> None:
    first, second = run(20, start, habit=0.02), run(30, 1_000 + start, habit=0.3)
    own = [bracket([table], GROUPS).mean.interval for table in (first, second)]
    found = compare([first], [second], GROUPS)
    assert own[0] and own[1] and found.interval and found.upper is not None
    assert own[1][0] - own[0][1] <= found.interval[0] <= found.interval[1] <= own[1][1] - own[0][0]
    assert found.interval[0] <= found.upper <= found.interval[1]


def test_p_is_the_level_at_which_the_interval_would_end_at_0() -> None:
    first, second = run(5, 1), run(30, 3)
    found = compare([first], [second], GROUPS)
    assert found.p_value is not None and found.p_value < 0.1
    at = compare([first], [second], GROUPS, level=1 - found.p_value)
    assert at.interval is not None and at.interval[0] == pytest.approx(0, abs=1e-6)


def test_runs_that_answer_largely_alike_are_close_however_noisy_each_is() -> None:
    table = run(20, 0, habit=0.3)
    other = table.copy()
    for speaker in range(0, 30, 4):  # one answer of a few speakers moves on to another value
        value = int(other[speaker].argmax())
        other[speaker, value] -= 1
        other[speaker, (value + 1) % 6] += 1
    found = compare([table], [other], GROUPS)
    unlike = compare([table], [run(20, 1, habit=0.3)], GROUPS)
    assert found.interval is not None and found.upper is not None and unlike.interval is not None
    # A fortieth of 7 or 8 of 30 speakers' answers: 1.3 points at the very most.
    assert found.interval[0] < 0 < found.upper <= found.interval[1] < 2
    assert unlike.interval[1] - unlike.interval[0] > 20


@pytest.mark.parametrize(("first", "second"), [("spread", "two values"), ("two values", "spread")])
@pytest.mark.slow
def test_other_values_that_carry_the_same_shift_are_no_change(first: str, second: str) -> None:
    # The two differences of before (cross-fitted, largest truths) found 0.06 to 0.3 of these.
    groups = np.repeat(np.arange(6), 4)
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(150):
        pair = [
            answers(rng, shifted(zipf(20), 6, 40, Pattern(pattern)), groups, 400, habit)
            for pattern, habit in ((first, 0.1), (second, 0.3))
        ]
        p_value = compare([pair[0]], [pair[1]], groups).p_value
        found += p_value is not None and p_value <= 0.05
    assert found <= 14  # of 150: beyond 0.05 by three standard errors


def test_unequal_clips_and_one_clip_a_speaker() -> None:
    rng = np.random.default_rng(0)
    shares = shifted(zipf(6), 2, 30, Pattern.SPREAD)
    for number in (rng.integers(1, 60, 30), 1):
        pair = [answers(rng, shares, GROUPS, number, 0.05) for _ in range(2)]
        found = compare([pair[0]], [pair[1]], GROUPS)
        assert found.interval is not None and found.upper is not None and found.p_value is not None
        assert found.interval[0] <= 0 <= found.interval[1] and found.upper > 0


def test_a_group_without_answers_in_one_run_has_no_comparison() -> None:
    silent = np.where(GROUPS[:, None] == 1, 0, run(20, 0))
    found = compare([silent], [run(20, 1)], GROUPS)
    assert found.difference is None and found.upper is None and found.reason


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
