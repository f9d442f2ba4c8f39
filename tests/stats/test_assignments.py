"""Assignments: their number, that all are listed once, and that draws are uniform and the same anywhere."""

from collections import Counter
from math import factorial

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.stats import chisquare

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import BLOCK, CANDIDATES, CODES, MANY_GROUPS, MEMBERS, Design
from vibe_harness.stats.permutation import permutation_test


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
    """In plain loops: groups by random bytes, then units picked at random until every group of a stratum has its size.

    Philox's raw stream is the same everywhere."""
    groups, strata = [0, 1, 2, 0, 1, 2, 0, 0, 1, 1, 0, 2, 2, 1], [0, 1] * 7
    design = Design.of(groups, strata)
    draws = design.draws(0)
    raw = np.random.Philox(np.random.SeedSequence([1, 0]))

    def little(words: int, size: int) -> list[int]:
        return [
            word >> (8 * size * part) & ((1 << 8 * size) - 1)
            for word in raw.random_raw(words).tolist()
            for part in range(8 // size)
        ]

    members = [[unit for unit in range(14) if strata[unit] == stratum] for stratum in (0, 1)]
    sizes = [[sum(groups[unit] == group for unit in own) for group in range(3)] for own in members]
    numbers = iter(little(14 * draws // 8, 1))
    assigned = [[0] * draws for _ in range(14)]
    for stratum in (0, 1):
        first, second = (round(256 * sum(sizes[stratum][:upto]) / 7) for upto in (1, 2))
        for unit in members[stratum]:
            for draw in range(draws):
                number = next(numbers)
                assigned[unit][draw] = (number >= first) + (number >= second)

    def surplus(stratum: int, draw: int) -> list[int]:
        held = [assigned[unit][draw] for unit in members[stratum]]
        return [held.count(group) - sizes[stratum][group] for group in range(3)]

    open_pairs = [(stratum, draw) for stratum in (0, 1) for draw in range(draws) if any(surplus(stratum, draw))]
    while open_pairs:
        picks = max(CANDIDATES // len(open_pairs), 1)
        numbers = iter(little(-(-len(open_pairs) * picks // 2), 4))
        for stratum, draw in open_pairs:
            units = [members[stratum][next(numbers) * 7 >> 32] for _ in range(picks)]
            excess = surplus(stratum, draw)
            for unit in units:
                if excess[assigned[unit][draw]] > 0:
                    assigned[unit][draw] = excess.index(min(excess))
                    break
        open_pairs = [pair for pair in open_pairs if any(surplus(*pair))]
    assert next(design.blocks(draws, seed=1)).T.tolist() == assigned


def test_groups_far_from_a_two_hundred_and_fifty_sixth_have_their_sizes_too() -> None:
    groups = np.repeat([0, 1, 2], [1, 2, 2_997])
    drawn = np.concatenate(list(Design.of(groups).blocks(600, seed=0)))
    assert {tuple(np.bincount(row)) for row in drawn} == {(1, 2, 2_997)}
    assert chisquare(np.bincount(drawn.argmin(axis=1) // 1_000)).pvalue > 0.001


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
    blocks = list(design.blocks(300, seed=0))
    assert max(map(len, blocks)) == design.block == CODES // 50_000 < BLOCK
    drawn = np.concatenate(blocks)
    assert len(drawn) == 300 and (drawn.sum(axis=1) == 25_000).all()


def test_draws_of_many_strata_keep_each_ones_sizes() -> None:
    rng = np.random.default_rng(0)
    strata = np.concatenate([np.arange(40), rng.integers(0, 40, 960)])  # up to 40 units each, one of them 600
    strata[400:] = 7
    groups = rng.integers(0, 3, 1_000)
    expected = np.bincount(strata * 3 + groups, minlength=120)
    for row in next(Design.of(groups, strata).blocks(50, seed=0)):
        assert (np.bincount(strata * 3 + row, minlength=120) == expected).all()


def test_draws_of_many_groups_keep_their_sizes_and_are_uniform() -> None:
    sizes = [1 + group % 5 for group in range(MANY_GROUPS + 8)]  # in each of two strata
    groups, strata = np.tile(np.repeat(np.arange(len(sizes)), sizes), 2), np.repeat([0, 1], sum(sizes))
    design = Design.of(groups, strata)
    drawn = np.concatenate(list(design.blocks(2_000, seed=3)))
    for row in drawn[:50]:
        for stratum in (0, 1):
            assert np.bincount(row[strata == stratum]).tolist() == sizes
    where = np.flatnonzero(drawn == 0) % groups.size  # the units that the first group, of one unit a stratum, falls to
    assert chisquare(np.bincount(where, minlength=groups.size)).pvalue > 0.001
    few = np.concatenate(list(design.blocks(700, seed=3)))
    assert np.array_equal(few, drawn[:700])


def test_more_groups_than_a_byte_tells_apart_are_drawn_in_small_blocks() -> None:
    design = Design.of(np.arange(4_000) % 1_000)
    [block] = design.blocks(4, seed=0)
    assert all((np.bincount(row) == 4).all() for row in block)
    assert design.block == MEMBERS // (4_000 * 1_000)


@pytest.mark.parametrize(
    ("groups", "strata", "expected"),
    [
        ([0] * 3 + [1] * 3, None, 2 / 20),  # a mirror image for each
        ([0, 0, 1, 1] * 2, [0] * 4 + [1] * 4, 2 / 36),
        ([0] * 3 + [1] * 4, None, 1 / 35),  # no mirror: sizes differ
        ([0, 0, 1, 1, 2, 2], None, 6 / 90),  # three groups can trade names in six ways
        ([0, 0, 1, 1, 0, 1, 1], [0] * 4 + [1] * 3, 1 / 18),  # alike in one stratum alone
        ([0, 1], [0, 1], 1.0),  # nothing can be permuted
        ([0] * 30 + [1] * 30, None, 1 / 10_001),
    ],
)
def test_the_smallest_p_of_a_design(groups: list[int], strata: list[int] | None, expected: float) -> None:
    assert Design.of(groups, strata).smallest_p(10_000) == pytest.approx(expected)


def test_the_smallest_p_is_reached_by_the_largest_shift_and_by_nothing_less() -> None:
    for groups in ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]):
        codes = np.array(groups)
        table = 10 * np.eye(int(codes.max()) + 1, dtype=np.int64)[codes] + 1
        assert permutation_test([table], codes).mean.p_value == pytest.approx(Design.of(codes).smallest_p(10_000))
