"""Counts packed into one number come out of any sum of rows as they went in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vibe_harness.stats.packing import BITS, Packing


@given(arrays(np.int64, st.tuples(st.integers(1, 30), st.integers(2, 40)), elements=st.integers(0, 50)), st.data())
def test_packed_counts_are_the_counts_of_any_members(table: np.ndarray, data: st.DataObject) -> None:
    packing = Packing.of(table)
    if packing is None:
        return
    numbers = packing.packed(table)
    assert 2 * numbers.shape[1] <= table.shape[1] and numbers.sum(axis=0).max() < 1 << BITS
    members = data.draw(arrays(np.float32, (len(table), 3), elements=st.sampled_from([0.0, 1.0])))
    found = packing.counts(numbers.T.astype(np.float32) @ members)
    np.testing.assert_array_equal(found, table.T @ members.astype(np.int64))


def test_wide_counts_are_not_packed() -> None:
    assert Packing.of(np.full((10, 6), 5_000)) is None  # 16 bits each: no two in 24
    packing = Packing.of(np.full((10, 6), 25))  # 250, of 8 bits: three in a number
    assert packing is not None and packing.packed(np.full((10, 6), 25)).shape == (10, 2)
