"""Several counts in one number of a matrix product, whose time goes with the numbers and not with the counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.ntvd import Counts

BITS = 24
"""Whole numbers of so many bits are exact in single precision."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Count k stands `shift[k]` bits up in number `place[k]`, `bits[k]` bits wide: all (K,).

    A group's count is at most the total over all units, so that the bits of that total are room enough and nothing is
    carried into the next count. Few answers a unit, as where units are single utterances, leave room for two to ten.
    """

    place: NDArray[np.int64]
    shift: NDArray[np.int64]
    bits: NDArray[np.int64]

    @classmethod
    def of(cls, counts: Counts) -> Packing | None:
        """The packing of columns (S, K), the widest first; None where it would not halve their number."""
        bits = np.ceil(np.log2(counts.sum(axis=0) + 1.0)).astype(np.int64)
        place, shift = np.zeros_like(bits), np.zeros_like(bits)
        number = used = 0
        for column in np.argsort(-bits, kind="stable"):
            if used + bits[column] > BITS:
                number, used = number + 1, 0
            place[column], shift[column] = number, used
            used += bits[column]
        return cls(place, shift, bits) if 2 * (number + 1) <= bits.size else None

    def packed(self, counts: Counts) -> Counts:
        """(S, numbers) out of columns (S, K)."""
        numbers = np.zeros((len(counts), int(self.place.max()) + 1), dtype=np.int64)
        for column, (place, shift) in enumerate(zip(self.place, self.shift, strict=True)):
            numbers[:, place] += counts[:, column] << shift
        return numbers

    def counts(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """Counts (K, N) out of sums of packed numbers (numbers, N)."""
        counts = numbers.astype(np.int32)[self.place]
        counts >>= self.shift[:, None].astype(np.int32)
        counts &= ((1 << self.bits) - 1)[:, None].astype(np.int32)
        return counts
