"""Diversity against values known in closed form."""

import pytest

from vibe_harness.errors import UserError
from vibe_harness.stats.diversity import diversity, identical_share


def test_known_entropies() -> None:
    even = diversity([5, 5, 5, 5, 0])
    assert even is not None
    assert even.entropy == pytest.approx(2) and even.evenness == pytest.approx(1)
    assert (even.distinct, even.commonest) == (4, 0.25)
    skewed = diversity([2, 1, 1])
    assert skewed is not None and skewed.entropy == pytest.approx(1.5) and skewed.commonest == 0.5


def test_one_value_has_no_evenness() -> None:
    single = diversity([0, 7])
    assert single is not None and (single.entropy, single.evenness, single.distinct) == (0, None, 1)


def test_no_answer_is_no_diversity() -> None:
    assert diversity([0, 0]) is None
    assert diversity([]) is None
    assert identical_share([]) is None


def test_identical_responses() -> None:
    assert identical_share(["a", "b", "a", "a", "c"]) == pytest.approx(0.6)
    assert identical_share(["a", "b"]) == 0


def test_a_table_is_refused() -> None:
    with pytest.raises(UserError):
        diversity([[1, 2], [3, 4]])
