"""Which group each unit could have been in: counting, listing and drawing the assignments of a permutation test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice, product
from math import comb, prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vibe_harness.errors import UserError

Codes = NDArray[np.int64]

BLOCK = 256
"""Most draws that share one random stream."""

KEYS = 1 << 22
"""Most random numbers of one block, which bounds the memory of designs with very many units."""

MAX_STRATA = 1 << 16


@dataclass(frozen=True, slots=True)
class Design:
    """Units (speakers, as a rule) with the group and the stratum of each: what may be exchanged with what.

    groups, strata: (S,) codes 0, 1, ... without gaps. Group sizes are fixed within each stratum.
    """

    groups: Codes
    strata: Codes

    @classmethod
    def of(cls, groups: ArrayLike, strata: ArrayLike | None = None) -> Design:
        """Checks the codes. Raises UserError where they are not codes, have gaps or differ in length."""
        group_codes = _checked_codes(groups, "groups")
        stratum_codes = np.zeros_like(group_codes) if strata is None else _checked_codes(strata, "strata")
        if group_codes.shape != stratum_codes.shape:
            raise UserError(f"{group_codes.size} groups but {stratum_codes.size} strata: one of each for every unit")
        if stratum_codes.max() >= MAX_STRATA:
            raise UserError(f"strata: at most {MAX_STRATA}, not {stratum_codes.max() + 1}")
        return cls(group_codes, stratum_codes)

    @property
    def group_count(self) -> int:
        return int(self.groups.max()) + 1

    @property
    def block(self) -> int:
        """Draws that share one random stream. The streams are numbered by block, and a block's size follows from the
        design alone, so that neither memory nor cores nor the number of draws that follow change a draw."""
        return max(min(BLOCK, KEYS // self.groups.size), 1)

    def assignments(self) -> int:
        """Number of distinct assignments: a multinomial coefficient for each stratum, multiplied."""
        return prod(_multinomial(np.bincount(self.groups[rows])) for rows in self._members())

    def blocks(self, permutations: int, seed: int) -> Iterator[Codes]:
        """Blocks (B, S) of assignments, B up to `block`: all there are, if at most `permutations`, else as many draws.

        The draws follow from the seed alone (`random_words`).
        """
        if self.assignments() <= permutations:
            yield from self._all()
            return
        for block, start in enumerate(range(0, permutations, self.block)):
            yield self._draws(seed, block)[: permutations - start]

    def _draws(self, seed: int, block: int) -> Codes:
        """A block of draws. A random number for each unit, its stratum in front and its own number behind: sorted, they
        give a random order of the units within each stratum, in which they take the stratum's groups."""
        units = self.groups.size
        place, front = _bits(units), 64 - _bits(int(self.strata.max()) + 1)
        keys = random_words(seed, block, self.block * units).reshape(self.block, units)
        keys &= np.uint64((1 << front) - (1 << place))
        keys |= (self.strata.astype(np.uint64) << np.uint64(front)) if front < 64 else np.uint64(0)
        keys |= np.arange(units, dtype=np.uint64)
        keys.sort(axis=1)
        keys &= np.uint64((1 << place) - 1)
        places = keys.view(np.int64)
        places += (np.arange(self.block) * units)[:, None]
        groups = self.groups[np.argsort(self.strata, kind="stable")].astype(np.min_scalar_type(self.group_count))
        assigned = np.empty(keys.size, dtype=groups.dtype)  # the smaller, the quicker to place and to compare
        assigned[places.ravel()] = np.tile(groups, self.block)
        return assigned.reshape(keys.shape)

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


def _bits(number: int) -> int:
    """Bits that tell `number` things apart."""
    return (number - 1).bit_length()


def random_words(seed: int, block: int, number: int) -> NDArray[np.uint64]:
    """Random 64-bit words (number,) of a numbered block, by Philox, whose stream numpy keeps over versions."""
    return np.asarray(np.random.Philox(np.random.SeedSequence([seed, block])).random_raw(number), dtype=np.uint64)


def _checked_codes(codes: ArrayLike, what: str) -> Codes:
    array = np.asarray(codes)
    if array.ndim != 1 or array.size == 0:
        raise UserError(f"{what}: one code for every unit, and at least one unit; the shape is {array.shape}")
    if array.dtype.kind not in "iu":
        raise UserError(f"{what}: codes are whole numbers 0, 1, ...; found {array.dtype} (a missing group is no code)")
    if array.min() < 0 or np.bincount(array).min() == 0:
        raise UserError(f"{what}: codes run 0, 1, ... without gaps; found {np.unique(array).tolist()}")
    return array.astype(np.int64)


def _multinomial(sizes: NDArray[np.int64]) -> int:
    return prod(comb(int(total), int(size)) for total, size in zip(np.cumsum(sizes), sizes, strict=True))


def _arrangements(sizes: list[int]) -> Iterator[list[int]]:
    """Every way to place sizes[g] units in each group g, as lists of group codes."""

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
