"""What every function on counts does with bad input: the same refusal or the same reason, never a number.

The whole metric is held to the same in tests/metrics/test_bad_frames.py, a family of one in test_adjust.py.
"""

from collections.abc import Callable

import numpy as np
import pytest

from vibe_harness.errors import UserError
from vibe_harness.stats.bracket import LONE_SPEAKER, NEEDED_SPEAKER, bracket
from vibe_harness.stats.comparison import compare
from vibe_harness.stats.coverage import coverage_tests
from vibe_harness.stats.ntvd import DEGENERATE, EMPTY_GROUP, ONE_GROUP, ntvd
from vibe_harness.stats.permutation import permutation_test
from vibe_harness.stats.power import from_pilot
from vibe_harness.stats.values import contributions

GROUPS = [0, 0, 1, 1]
GOOD = np.array([[3, 1], [1, 3], [2, 2], [4, 1]])
Function = Callable[[np.ndarray], object]
FUNCTIONS: dict[str, Function] = {
    "ntvd": ntvd,
    "permutation_test": lambda table: permutation_test([table], GROUPS),
    "bracket": lambda table: bracket([table], GROUPS),
    "contributions": lambda table: contributions(table, GROUPS),
    "compare": lambda table: compare([GOOD], [table], GROUPS),
    "coverage_tests": lambda table: coverage_tests([table], GROUPS),
    "from_pilot": lambda table: from_pilot([table], [2, 2]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "bad", [np.where(GOOD > 3, np.nan, GOOD), GOOD - 2, GOOD + 0.5, GOOD.astype(str)],
    ids=["NaN", "negative", "fractions", "words"],
)  # fmt: skip
def test_what_is_no_count_is_refused(name: str, bad: np.ndarray) -> None:
    with pytest.raises(UserError):
        FUNCTIONS[name](bad)


@pytest.mark.parametrize(
    ("table", "groups", "reason"),
    [
        (np.where(np.array(GROUPS)[:, None] == 0, GOOD, 0), GROUPS, EMPTY_GROUP),
        (GOOD * [1, 0], GROUPS, DEGENERATE),  # all answers the same
        (GOOD[:, :1], GROUPS, DEGENERATE),  # one value only
        (GOOD, [0, 0, 0, 0], ONE_GROUP),
    ],
    ids=["a group with no kept value", "all answers the same", "one value only", "one group"],
)
def test_without_a_score_nothing_is_a_number(table: np.ndarray, groups: list[int], reason: str) -> None:
    tested = permutation_test([table], groups)
    for one in (tested.mean, *tested.attributes):
        assert (one.value, one.p_value, one.null_mean, one.null_p95) == (None,) * 4 and one.reason == reason
    around = bracket([table], groups)
    for end in (around.mean, *around.attributes):
        assert (end.at_least, end.at_most, end.interval) == (None,) * 3 and end.reason == reason
    found = contributions(table, groups)
    assert found.differences is None and found.parts is None and found.interval() is None and found.reason == reason
    other = GOOD[:, : table.shape[1]]
    for pair in (([table], [other]), ([other], [table])):
        compared = compare(*pair, groups)
        assert (compared.difference, compared.interval, compared.p_value) == (None,) * 3 and compared.reason


def test_one_speaker_a_group_has_a_score_and_nothing_more() -> None:
    table, groups = np.array([[4, 1], [1, 4]]), [0, 1]
    assert permutation_test([table], groups).mean.p_value == 1
    assert bracket([table], groups).mean.interval is None and bracket([table], groups).mean.at_least is None
    found = contributions(table, groups)
    assert found.differences is not None and found.interval() is None and found.reason == LONE_SPEAKER
    assert compare([table], [table], groups).p_value is None


def test_a_value_in_one_group_only_counts_in_full() -> None:
    table = np.array([[4, 0], [4, 0], [2, 2], [1, 3]])  # shares of 1 and 3 / 8
    assert permutation_test([table], GROUPS).mean.value == pytest.approx(62.5)
    found = contributions(table, GROUPS)
    assert found.differences is not None
    np.testing.assert_allclose(found.differences, [[31.25, -31.25], [-31.25, 31.25]])


def test_strata_that_leave_nothing_to_permute_refuse_the_test_and_keep_the_score() -> None:
    tested = permutation_test([GOOD], GROUPS, GROUPS)
    assert tested.refused and tested.mean.value is not None and tested.mean.p_value is None
    assert tested.permutations == 0


def test_a_speaker_who_holds_all_values_of_a_group_leaves_differences_without_intervals() -> None:
    found = contributions(np.array([[3, 1], [0, 0], [2, 2], [4, 1]]), GROUPS)
    assert found.differences is not None and found.interval() is None and found.reason == NEEDED_SPEAKER
