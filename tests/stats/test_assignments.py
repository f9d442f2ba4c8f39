"""Assignments: their number, that all are listed once, and that draws are uniform and the same anywhere."""

from collections import Counter
from math import factorial

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.stats import chisquare

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import BLOCK, Design


@pytest.mark.parametrize(
    ("groups", "strata", "number"),
    [
        ([0, 0, 1, 1], None, 6),
        ([0, 0, 1, 1, 2], None, 30),
        ([0, 1, 0, 1], [0, 0, 1, 1], 4),
        ([0, 0, 1, 1], [0, 0, 1, 1], 1),
        ([0], None, 1),
    ],
)
def test_all_are_listed_once_with_sizes_fixed_in_each_stratum(
    groups: list[int], strata: list[int] | None, number: int
) -> None:
    design = Design.of(groups, strata)
    assert design.assignments() == number
    listed = np.concatenate(list(design.blocks(10_000, seed=0)))
    assert len({tuple(row) for row in listed.tolist()}) == len(listed) == number
    for row in listed:
        assert Counter(zip(row, design.strata, strict=True)) == Counter(zip(design.groups, design.strata, strict=True))


def test_number_of_a_large_design_is_exact() -> None:
    groups = np.repeat(np.arange(6), 4)
    assert Design.of(groups).assignments() == factorial(24) // factorial(4) ** 6


def test_draws_are_uniform_within_strata() -> None:
    design = Design.of([0, 0, 1, 0, 1, 2], [0, 0, 0, 1, 1, 1])
    drawn = np.concatenate([design._draws(7, block) for block in range(40)])
    seen = Counter(map(tuple, drawn.tolist()))
    assert len(seen) == design.assignments() == 18
    assert chisquare(list(seen.values())).pvalue > 0.001


def test_draws_follow_the_seed_alone() -> None:
    design = Design.of(np.arange(30) % 3)
    few = np.concatenate(list(design.blocks(BLOCK + 10, seed=1)))
    many = np.concatenate(list(design.blocks(3 * BLOCK, seed=1)))
    assert np.array_equal(few, many[: len(few)])
    assert not np.array_equal(many, np.concatenate(list(design.blocks(3 * BLOCK, seed=2))))


def test_draws_written_out() -> None:
    # Philox's raw stream is the same everywhere. Sorted by it, the speakers take the groups in their order.
    raw = np.random.Philox(np.random.SeedSequence([1, 0])).random_raw(30).tolist()
    groups = [speaker % 3 for speaker in range(30)]
    assigned = dict(zip(sorted(range(30), key=lambda speaker: raw[speaker] >> 5), groups, strict=True))
    first = next(Design.of(groups).blocks(1_000, seed=1))[0]
    assert first.tolist() == [assigned[speaker] for speaker in range(30)]


@pytest.mark.parametrize(
    ("groups", "strata"),
    [
        ([], None),
        ([0, 2], None),
        ([-1, 0], None),
        ([0.0, np.nan], None),
        (["a", "b"], None),
        ([[0, 1]], None),
        ([0, 1], [0]),
        ([0, 1], [0, 2]),
    ],
)
def test_what_is_no_code_is_refused(groups: ArrayLike, strata: list[int] | None) -> None:
    with pytest.raises(UserError):
        Design.of(groups, strata)


def test_blocks_of_many_units_are_smaller_and_whole() -> None:
    design = Design.of(np.arange(50_000) % 2)
    assert design.block < BLOCK
    drawn = np.concatenate(list(design.blocks(design.block + 3, seed=0)))
    assert len(drawn) == design.block + 3 and (drawn.sum(axis=1) == 25_000).all()
