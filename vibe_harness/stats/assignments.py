"""The assignments of units to groups in a permutation test: counting, enumerating and drawing them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, count, islice, product
from math import comb, factorial, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vibe_harness.errors import UserError
from vibe_harness.stats.rng import Words, picks, random_words

Codes = NDArray[np.int64]

BLOCK = 512
"""Most assignments in one block."""

CODES = 1 << 22
"""Largest product of units and assignments in one block, to bound the memory of computations with it."""

MEMBERS = 1 << 26
"""Largest product of units, groups and assignments in one block, for the same reason."""

STREAM = 2_048
"""Most draws that share one random stream."""

BYTES = 1 << 24
"""Most random bytes at the beginning of a stream, to bound the memory of designs with many units."""

MANY_GROUPS = 32
"""Number of groups above which sorting random numbers is faster than adjusting the sizes of groups."""

SHUFFLES = 1 << 32
"""Number of the first random stream of `Design.shuffles`; `Design.blocks` has the earlier ones."""

CANDIDATES = 2_048
"""Candidate units in each round of adjusting the sizes of groups."""


@dataclass(frozen=True, slots=True)
class Design:
    """The group and the stratum of each unit (usually a speaker). Units are permuted within strata.

    groups, strata: (S,) codes 0, 1, ... without gaps. Group sizes are fixed within each stratum.
    """

    groups: Codes
    strata: Codes

    @classmethod
    def of(cls, groups: ArrayLike, strata: ArrayLike | None = None) -> Design:
        """Check the codes. Raises UserError if they are not codes, have gaps, or differ in length."""
        group_codes = _checked_codes(groups, "groups")
        stratum_codes = np.zeros_like(group_codes) if strata is None else _checked_codes(strata, "strata")
        if group_codes.shape != stratum_codes.shape:
            raise UserError(f"{group_codes.size} groups but {stratum_codes.size} strata: every unit needs one of each")
        return cls(group_codes, stratum_codes)

    @property
    def group_count(self) -> int:
        return int(self.groups.max()) + 1

    @property
    def block(self) -> int:
        """Number of assignments in one block."""
        units = self.groups.size
        return max(min(BLOCK, CODES // units, MEMBERS // (units * self.group_count)), 1)

    def assignments(self) -> int:
        """Number of distinct assignments: a multinomial coefficient for each stratum, multiplied."""
        return prod(_multinomial(np.bincount(self.groups[rows])) for rows in self._members())

    def smallest_p(self, permutations: int) -> float:
        """The smallest p that a test of this design can reach with this number of permutations.

        Groups with equal sizes in every stratum can be relabelled: each assignment then has as many equivalents with
        the same score as there are relabellings (G! for G groups of one size). It is 1 if nothing can be permuted.
        """
        count = self.assignments()
        if count > permutations:
            return 1 / (permutations + 1)
        sizes = np.stack([np.bincount(self.groups[rows], minlength=self.group_count) for rows in self._members()])
        alike = np.unique(sizes, axis=1, return_counts=True)[1]
        return prod(map(factorial, alike.tolist())) / count

    def blocks(self, permutations: int, seed: int) -> Iterator[Codes]:
        """Blocks (B, S) of assignments, B up to `block`: all assignments if at most `permutations`, else random draws.

        The draws depend on the seed only (`random_words`).
        """
        if self.assignments() <= permutations:
            yield from self._all()
            return
        for number in count():
            if permutations <= 0:
                return
            drawn = self._draws(seed, number)[:permutations]
            permutations -= len(drawn)
            yield from (drawn[first : first + self.block] for first in range(0, len(drawn), self.block))

    def draws(self, number: int) -> int:
        """Number of draws in a random stream: many, since they are computed together, but few in the first streams, for
        tests with few draws. It depends on the design only, so that memory, cores and later draws do not change a
        draw."""
        wide = 8 if self.group_count > MANY_GROUPS else 1  # bytes a unit
        return max(min(BLOCK << min(max(number - 1, 0), 16), STREAM, BYTES // (wide * self.groups.size)), 1)

    def _draws(self, seed: int, number: int) -> Codes:
        """The draws (B, S) of a numbered stream, uniform over all assignments.

        Each unit gets a group by a random byte, with about the right probability. While a group of a stratum has too
        many units, units of the stratum are picked at random, and one from a group with too many moves to the group
        that lacks most. Every step treats all units of a stratum equally, so all assignments are equally likely (up to
        rounding of 2^32 random numbers to S units, 1 in 2^32 / S). Many groups are drawn by sorting.
        """
        words = random_words(seed, number)
        if self.group_count > MANY_GROUPS:
            return self._sorted_draws(words, self.draws(number))
        order = np.argsort(self.strata, kind="stable")
        sizes = np.stack([np.bincount(self.groups[rows], minlength=self.group_count) for rows in self._members()])
        bounds = np.minimum(np.rint(sizes.cumsum(axis=1) / sizes.sum(axis=1, keepdims=True) * 256), 255)
        draws = self.draws(number)
        random = words(-(-self.groups.size * draws // 8)).view(np.uint8)[: self.groups.size * draws]
        random = random.reshape(-1, draws)
        codes = np.zeros(random.shape, dtype=np.min_scalar_type(self.group_count))
        for bound in bounds[self.strata[order], :-1].astype(np.uint8).T:
            codes += random >= bound[:, None]
        _to_size(codes, sizes, words)
        return codes[np.argsort(order)].T

    def _sorted_draws(self, words: Words, draws: int) -> Codes:
        """Draws (B, S) that sort the units of each stratum by random numbers."""
        codes = np.empty((draws, self.groups.size), dtype=np.min_scalar_type(self.group_count))
        for rows in self._members():
            order = words(draws * rows.size).reshape(draws, rows.size).argsort(axis=1)
            codes[:, rows] = self.groups[rows][order]
        return codes

    def shuffles(self, permutations: int, seed: int) -> Iterator[tuple[Codes, NDArray[np.int8]]]:
        """Blocks of random permutations of the units within strata (B, S), as the unit whose place each takes, and of
        random signs, 1 or -1 (B, S). They depend on the seed only."""
        for number in count():
            if permutations <= 0:
                return
            draws = min(self.draws(number), permutations)
            words = random_words(seed, SHUFFLES + number)
            places = np.empty((self.draws(number), self.groups.size), dtype=np.int64)
            for rows in self._members():
                order = words(len(places) * rows.size).reshape(len(places), rows.size).argsort(axis=1)
                places[:, rows] = rows[order]
            bits = np.unpackbits(words(-(-places.size // 64)).view(np.uint8))[: places.size].reshape(places.shape)
            signs = 1 - 2 * bits.astype(np.int8)
            permutations -= draws
            for first in range(0, draws, self.block):
                last = min(first + self.block, draws)
                yield places[first:last], signs[first:last]

    def _all(self) -> Iterator[Codes]:
        members = self._members()
        arrangements = [list(_arrangements(np.bincount(self.groups[rows]).tolist())) for rows in members]
        combined = product(*arrangements)
        while batch := list(islice(combined, self.block)):
            block = np.empty((len(batch), self.groups.size), dtype=np.int64)
            for stratum, rows in enumerate(members):
                block[:, rows] = [assignment[stratum] for assignment in batch]
            yield block

    def _members(self) -> list[Codes]:
        return [np.flatnonzero(self.strata == stratum) for stratum in range(int(self.strata.max()) + 1)]


def _to_size(codes: NDArray[Any], sizes: Codes, words: Words) -> None:
    """Adjust groups to their sizes, in place. codes: (S, B), units in the order of strata; sizes: (H, G)."""
    units, draws = sizes.sum(axis=1), codes.shape[1]
    starts = units.cumsum() - units
    surplus = _surplus(codes, sizes).reshape(sizes.shape[1], -1)
    pairs = np.flatnonzero((surplus > 0).any(axis=0))  # of stratum and draw
    while pairs.size:
        stratum, draw = np.divmod(pairs, draws)
        looks = max(CANDIDATES // pairs.size, 1)
        unit = starts[stratum, None] + picks(words, units[stratum, None], (pairs.size, looks))
        usable = surplus[codes[unit, draw[:, None]], pairs[:, None]] > 0
        row = np.flatnonzero(usable.any(axis=1))
        pair, unit, draw = pairs[row], unit[row, usable[row].argmax(axis=1)], draw[row]
        left, joined = codes[unit, draw], surplus[:, pair].argmin(axis=0)
        codes[unit, draw] = joined
        surplus[left, pair] -= 1
        surplus[joined, pair] += 1
        pairs = pairs[(surplus[:, pairs] > 0).any(axis=0)]


def _surplus(codes: NDArray[Any], sizes: Codes) -> Codes:
    """By how many units each group is too large, (G, H, B). Counted 255 units at a time, as a byte can hold."""
    ends = sizes.sum(axis=1).cumsum().tolist()
    surplus = np.repeat(-sizes.T[:, :, None], codes.shape[1], axis=2)
    for group in range(sizes.shape[1]):
        members = (codes == group).view(np.uint8)
        for stratum, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            for first in range(start, end, 255):
                surplus[group, stratum] += members[first : min(first + 255, end)].sum(axis=0, dtype=np.uint8)
    return surplus


def _checked_codes(codes: ArrayLike, what: str) -> Codes:
    array = np.asarray(codes)
    if array.ndim != 1 or array.size == 0:
        raise UserError(f"{what}: one code for every unit, and at least one unit; the shape is {array.shape}")
    if array.dtype.kind not in "iu":
        raise UserError(f"{what}: codes are integers 0, 1, ...; found {array.dtype} (a missing group is not a code)")
    if array.min() < 0 or np.bincount(array).min() == 0:
        raise UserError(f"{what}: codes run 0, 1, ... without gaps; found {np.unique(array).tolist()}")
    return array.astype(np.int64)


def _multinomial(sizes: NDArray[np.int64]) -> int:
    return prod(comb(int(total), int(size)) for total, size in zip(np.cumsum(sizes), sizes, strict=True))


def _arrangements(sizes: list[int]) -> Iterator[list[int]]:
    """All ways to place sizes[g] units in each group g, as lists of group codes."""

    def place(group: int, free: tuple[int, ...], codes: list[int]) -> Iterator[list[int]]:
        if group == len(sizes):
            yield codes
            return
        for chosen in combinations(free, sizes[group]):
            placed = codes.copy()
            for unit in chosen:
                placed[unit] = group
            yield from place(group + 1, tuple(unit for unit in free if unit not in chosen), placed)

    total = sum(sizes)
    return place(0, tuple(range(total)), [0] * total)
