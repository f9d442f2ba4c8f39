"""Benjamini-Hochberg: the published example, and a refusal where the permutations are too few."""

import numpy as np
import pytest

from vibe_harness.errors import UserError
from vibe_harness.stats.adjust import adjusted, permutations_needed

# Benjamini and Hochberg (1995), section 4: fifteen p-values; the four smallest are significant at 0.05.
PUBLISHED = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
             0.7590, 1.0]  # fmt: skip


def test_published_example() -> None:
    values = adjusted(PUBLISHED, [None] * 15)
    assert [value is not None and value <= 0.05 for value in values] == [True] * 4 + [False] * 11
    assert values[0] == pytest.approx(15 * 0.0001)
    assert values[3] == pytest.approx(15 * 0.0095 / 4)


def test_a_family_of_one_stays_as_it_is() -> None:
    assert adjusted([0.03], [999]) == [pytest.approx(0.03)]


def test_what_was_not_tested_is_not_of_the_family() -> None:
    assert adjusted([None, 0.04, None, 0.02], [None, 999, None, 999]) == [None, 0.04, None, 0.04]
    assert adjusted([], []) == []
    assert adjusted([None], [None]) == [None]


def test_too_few_permutations_are_refused_with_the_number_needed() -> None:
    family = 120  # first threshold 0.05 / 120 = 1 / 2400: 1 / (m + 1) is under it from m = 2400 on
    assert permutations_needed(family) == 2_400
    with pytest.raises(UserError, match="at least 2400"):
        adjusted([0.01] * family, [2_399] * family)
    assert adjusted([1 / 2401] + [1.0] * 119, [2_400] * family)[0] == pytest.approx(120 / 2401)
    assert adjusted([0.01] * family, [None] * family)[0] == pytest.approx(0.01)


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1])
def test_what_is_no_p_is_refused(bad: float) -> None:
    with pytest.raises(UserError):
        adjusted([bad], [999])
