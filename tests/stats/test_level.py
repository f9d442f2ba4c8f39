"""The simulated level of a test: of few speakers, and of answers so rare that a group's habits do not show."""

import numpy as np
import pytest

from vibe_harness.stats.assignments import Design
from vibe_harness.stats.level import TOO_OFTEN, hidden_habits, permutation_test_with_level, simulated_levels
from vibe_harness.stats.residuals import group_habits, pooled_shares
from vibe_harness.stats.simulation import answers, zipf
from vibe_harness.stats.tables import Table

FIVE_AND_FORTY = np.repeat([0, 1], [5, 40])


def none_in_five() -> np.ndarray:
    """Five speakers who never say yes beside forty of whom each does in 3 of 50 answers: p is small, and five speakers
    with strong habits would look the same in one data set of five."""
    yes = np.where(FIVE_AND_FORTY == 0, 0, 3)
    return np.stack([yes, 50 - yes], axis=1)


def test_a_finding_that_hidden_habits_could_make_has_their_level() -> None:
    found = permutation_test_with_level([none_in_five()], FIVE_AND_FORTY, permutations=199, seed=0)
    for one in (found.attributes[0], found.mean):
        assert one.p_value is not None and one.p_value <= 0.05
        assert one.level is not None and one.level >= TOO_OFTEN
    assert hidden_habits(none_in_five(), Design.of(FIVE_AND_FORTY), 0) == pytest.approx([0.3, 0])


def test_without_a_finding_no_level_is_simulated() -> None:
    yes = np.tile([0, 1, 3, 6, 2], 9)
    found = permutation_test_with_level([np.stack([yes, 50 - yes], axis=1)], FIVE_AND_FORTY, permutations=199, seed=0)
    assert found.mean.p_value is not None and found.mean.p_value > 0.05 and found.mean.level is None


@pytest.mark.parametrize(
    ("groups", "number", "shares"),
    [
        (np.repeat([0, 1], [43, 48]), 82, [0.05, 0.95]),  # CREMA-D, a rare answer
        (np.repeat([0, 1], 12), 82, zipf(20)),
        (np.repeat(np.arange(6), [150, 80, 60, 50, 40, 26]), 1, [0.1, 0.9]),
    ],
)
def test_enough_speakers_for_their_answers_hide_no_habits(groups: np.ndarray, number: int, shares: list[float]) -> None:
    rng = np.random.default_rng(0)
    table = answers(rng, np.array([shares]), np.zeros(groups.size, dtype=int), number, 0.0 if number == 1 else 0.05)
    assert hidden_habits(table, Design.of(groups), 0) is None


def test_open_values_of_four_speakers_show_their_habits() -> None:
    """L2-ARCTIC: 19 free shares of four speakers leave room for a habit of 0.1 in place of 0.05, and not for 0.2; six
    groups of which one has it are tested at their level."""
    groups = np.repeat(np.arange(6), 4)
    tables = [answers(np.random.default_rng(0), zipf(20)[None], np.zeros(24, dtype=int), 400, 0.05)]
    habits = hidden_habits(tables[0], Design.of(groups), 0)
    assert habits is not None and 0.1 <= habits.max() < 0.2
    (level, _) = simulated_levels([Table.of(tables[0], 24)], Design.of(groups), 0, [habits])
    assert level < TOO_OFTEN


def test_a_group_that_gives_its_answer_evenly_hides_no_strong_habits() -> None:
    """Each of the five says yes in 2 of 50: with a habit of 0.3 that is all but impossible."""
    table = none_in_five()
    table[:5] = [2, 48]
    assert hidden_habits(table, Design.of(FIVE_AND_FORTY), 0) is None


def test_one_value_alone_or_no_answer_hides_nothing() -> None:
    assert hidden_habits(np.tile([7, 0], (45, 1)), Design.of(FIVE_AND_FORTY), 0) is None
    assert hidden_habits(np.zeros((45, 2), dtype=int), Design.of(FIVE_AND_FORTY), 0) is None


def test_habits_of_groups_by_hand() -> None:
    """p = (1/2, 1/2), one answer's variance 1/2. Speakers of 10 and 0: each departs by |(5, -5)|^2 = 50, over
    10 (1 + 9 h); two of them against a freedom of 1 and 1/2: 10 / (1 + 9 h) = 1/2, so h is 1 at most. Speakers of 5 and
    5 do not depart."""
    table = np.array([[10, 0], [0, 10], [5, 5], [5, 5]])
    assert group_habits(table, np.array([0, 0, 1, 1]), np.array([0.5, 0.5])) == pytest.approx([1, 0])
    # 7 and 3: |(2, -2)|^2 = 8; two over 10 (1 + 9 h) = 1/2: h = 11/45; the habits tried are 16 % apart.
    table[:2] = [[7, 3], [3, 7]]
    assert 11 / 45 <= group_habits(table, np.array([0, 0, 1, 1]), np.array([0.5, 0.5]))[0] <= 11 / 45 * 1.17


def test_pooled_shares_weigh_by_precision_by_hand() -> None:
    """Weights 1 / (1 + (n - 1) h): 10 answers of habit 1 count as one, one of habit 0 as itself."""
    assert pooled_shares([[10, 0], [0, 1]], np.array([1.0, 0.0])) == pytest.approx([0.5, 0.5])
