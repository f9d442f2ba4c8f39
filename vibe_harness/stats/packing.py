"""Packing several counts into one number, so that a matrix product over them takes less time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.ntvd import Counts

BITS = 24
"""Integers of up to this number of bits are exact in single precision."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Count k is in number `place[k]`, from bit `shift[k]`, `bits[k]` bits wide; all (K,).

    A group's count is at most the total over all units, so the bits of that total suffice and nothing is carried into
    the next count. With few answers per unit, as for single utterances, two to ten counts fit into a number.
    """

    place: NDArray[np.int64]
    shift: NDArray[np.int64]
    bits: NDArray[np.int64]

    @classmethod
    def of(cls, counts: Counts) -> Packing | None:
        """The packing of columns (S, K), widest first; None if it does not halve their number."""
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
        """Packed numbers (S, numbers) of columns (S, K)."""
        numbers = np.zeros((len(counts), int(self.place.max()) + 1), dtype=np.int64)
        for column, (place, shift) in enumerate(zip(self.place, self.shift, strict=True)):
            numbers[:, place] += counts[:, column] << shift
        return numbers

    def counts(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """Counts (K, N) of sums of packed numbers (numbers, N)."""
        counts = numbers.astype(np.int32)[self.place]
        counts >>= self.shift[:, None].astype(np.int32)
        counts &= ((1 << self.bits) - 1)[:, None].astype(np.int32)
        return counts
