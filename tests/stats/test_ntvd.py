"""nTVD against hand calculations, scipy and its own definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import ArrayLike
from scipy.spatial.distance import cityblock

from vibe_harness.errors import UserError
from vibe_harness.stats.ntvd import (
    DEGENERATE,
    EMPTY_GROUP,
    ONE_GROUP,
    kept_values,
    ntvd,
    published_ntvd,
)
from vibe_harness.stats.tables import Table

tables = st.tuples(st.integers(2, 5), st.integers(2, 6)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 30))
)


def test_hand_calculation_for_two_groups() -> None:
    # P = (3/4, 1/4) and (1/4, 3/4): total variation distance between them 1/2.
    assert ntvd([[3, 1], [10, 30]]) == pytest.approx(50)


def test_hand_calculation_for_three_groups() -> None:
    # P = (1, 0), (1/2, 1/2), (0, 1); Pbar = (1/2, 1/2); TVD_g = 1/2, 0, 1/2; mean 1/3; over (1 - 1/3) gives 1/2.
    assert ntvd([[8, 0], [3, 3], [0, 1]]) == pytest.approx(50)


def test_ends_of_the_scale() -> None:
    assert ntvd([[2, 4], [1, 2], [50, 100]]) == pytest.approx(0)
    assert ntvd(np.diag([3, 9, 1, 4])) == pytest.approx(100)


def test_reference_is_the_unweighted_mean_over_groups() -> None:
    # A group of a million answers weighs no more than one of two.
    assert ntvd([[1_000_000, 0], [1, 1]]) == pytest.approx(50)


@given(tables)
def test_definition_written_out(table: np.ndarray) -> None:
    totals = table.sum(axis=1)
    if (totals == 0).any() or (table.sum(axis=0) > 0).sum() < 2:
        assert np.isnan(ntvd(table))
        return
    shares = [row / row.sum() for row in table]
    mean = sum(shares) / len(shares)
    distance = sum(0.5 * cityblock(share, mean) for share in shares) / len(shares)
    assert ntvd(table) == pytest.approx(100 * distance / (1 - 1 / len(shares)), abs=1e-9)


@given(tables, st.randoms())
def test_names_and_sizes_do_not_matter(table: np.ndarray, random: object) -> None:
    flipped = table[::-1, ::-1] * np.arange(1, len(table) + 1)[:, None]
    np.testing.assert_allclose(ntvd(flipped), ntvd(table), atol=1e-9)


def test_leading_axes_are_kept() -> None:
    stack = np.array([[[3, 1], [1, 3]], [[1, 0], [0, 1]], [[1, 0], [0, 0]]])
    np.testing.assert_allclose(ntvd(stack), [50, 100, np.nan])


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([[3, 4], [0, 0]], EMPTY_GROUP),
        ([[3, 0], [5, 0]], DEGENERATE),
        ([[3], [5]], DEGENERATE),
        ([[0, 0], [0, 0]], DEGENERATE),
        ([[3, 5]], ONE_GROUP),
    ],
)
def test_undefined_is_never_a_number(table: list[list[int]], reason: str) -> None:
    assert np.isnan(ntvd(table))
    assert Table.of(table, len(table)).why_undefined(len(table)) == reason


def test_published_definition_counts_a_single_value_as_zero() -> None:
    assert published_ntvd([[3, 0], [5, 0]]) == 0
    assert np.isnan(published_ntvd([[3, 0], [0, 0]]))
    assert published_ntvd([[3, 1], [1, 3]]) == pytest.approx(50)


def test_refusal_is_a_table_of_two_values() -> None:
    # 30 of 100 against 10 of 100 refused: 20 points apart.
    assert ntvd([[30, 70], [10, 90]]) == pytest.approx(20)


@pytest.mark.parametrize("bad", [[[np.nan, 1], [1, 1]], [[-1, 1], [1, 1]], [[0.5, 1], [1, 1]], [["a", "b"]], [1, 2]])
def test_what_is_no_table_of_counts_is_refused(bad: ArrayLike) -> None:
    with pytest.raises(UserError):
        ntvd(bad)


def test_filter_counts_over_all_rows() -> None:
    counts = np.array([[6, 10, 0], [3, 0, 0]])
    assert kept_values(counts, 10).tolist() == [False, True, False]
    assert kept_values(counts, 9).tolist() == [True, True, False]
    assert kept_values([9, 10, 0], 0).tolist() == [True, True, False]
    assert kept_values(counts[:, None, :], 9).tolist() == [True, True, False]
