"""Power: against the normal approximation of a two-value test, from the design and from a pilot."""

import numpy as np
import pytest
from scipy.stats import norm

from vibe_harness.errors import UserError
from vibe_harness.stats.power import detectable_shift, from_design, from_pilot
from vibe_harness.stats.simulation import Pattern, answers, zipf

OPTIONS = {"simulations": 150, "permutations": 199}


def test_two_proportions() -> None:
    # 60 speakers a group with 20 answers each to a yes-or-no question: nTVD is the difference in points, and the usual
    # formula for two proportions around 1/2 gives what is found with probability 0.8.
    expected = 100 * (norm.ppf(0.975) + norm.ppf(0.8)) * np.sqrt(2 * 0.25 / (60 * 20))
    power = detectable_shift(from_design((60, 60), 20, [[0.5, 0.5]], habit=0.0), **OPTIONS)
    assert power.detectable == pytest.approx(expected, rel=0.2)
    scores = [point.score for point in power.curve]
    assert scores == sorted(scores) and scores[0] == 0
    assert power.curve[0].low <= 0.05 <= power.curve[0].high
    assert all(point.low <= point.share <= point.high for point in power.curve)


@pytest.mark.slow
def test_habits_cost_power_and_a_pilot_shows_them() -> None:
    sizes = (20, 20)
    pilot = answers(np.random.default_rng(1), zipf(4)[None], np.zeros(40, dtype=int), 30, 0.2)
    from_it = detectable_shift(from_pilot([pilot], sizes), **OPTIONS).detectable
    independent = detectable_shift(from_design(sizes, 30, [zipf(4)], habit=0.0), **OPTIONS).detectable
    habitual = detectable_shift(from_design(sizes, 30, [zipf(4)], habit=0.2), **OPTIONS).detectable
    assert independent is not None and habitual is not None and from_it is not None
    assert independent < 0.6 * habitual
    assert from_it == pytest.approx(habitual, rel=0.35)


def test_a_corpus_that_can_show_nothing_says_so() -> None:
    power = detectable_shift(from_design((2, 2), 50, [zipf(4)], habit=0.0), **OPTIONS)
    # Six assignments, each with a mirror image of the same score: no p under 2/6.
    assert power.detectable is None and power.reason is not None and power.curve == ()
    assert power.smallest_p == pytest.approx(1 / 3) and "0.33" in power.reason


def test_pattern_limits_the_scores() -> None:
    assert from_design((5,) * 6, 30, [zipf(10)], habit=0, pattern=Pattern.ONE_GROUP).limit < 100 / 3


@pytest.mark.parametrize("sizes", [(5,), (5, 0)])
def test_designs_without_two_groups_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(UserError):
        from_design(sizes, 3, [zipf(3)], habit=0)
    with pytest.raises(UserError):
        from_pilot([np.ones((5, 3), dtype=int)], sizes)


def test_pilots_without_anything_to_shift_are_refused() -> None:
    with pytest.raises(UserError):
        from_pilot([np.full((5, 1), 3)], (3, 3))
    with pytest.raises(UserError):
        from_pilot([], (3, 3))


def test_unequal_clips_alone_are_no_power() -> None:
    # 60 and 6 clips: 120 answers of one group decide. Exchanged without their noise, a shift of 0.2 was "found".
    simulator = from_design((20, 20), np.repeat([60, 6], 20), [zipf(20)], habit=0.0)
    power = detectable_shift(simulator, simulations=60, permutations=199)
    assert power.curve[0].share <= 0.2 and power.detectable is not None and power.detectable > 8
