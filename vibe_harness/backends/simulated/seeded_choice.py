"""The random choices of one answer. Uniform numbers are drawn in blocks, which is much faster than one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

BLOCK = 64  # nearly every answer needs fewer

T = TypeVar("T")


class Chance:
    """A stream of random choices seeded by a digest; the same on any machine."""

    def __init__(self, digest: bytes) -> None:
        self._words = np.random.PCG64(int.from_bytes(digest, "big"))  # numpy guarantees this stream
        self._numbers = self._uniform()

    def _uniform(self) -> Iterator[float]:
        while True:
            yield from ((np.asarray(self._words.random_raw(BLOCK)) >> np.uint64(11)) * 2.0**-53).tolist()

    def happens(self, probability: float) -> bool:
        return next(self._numbers) < probability

    def below(self, count: int) -> int:
        """A uniform integer from 0 to count - 1."""
        return int(next(self._numbers) * count)

    def one_of(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def weighted(self, weights: Sequence[float]) -> int:
        """An index drawn in proportion to its weight, never one with weight 0."""
        rest = next(self._numbers) * sum(weights)
        last = 0
        for index, weight in enumerate(weights):
            if weight > 0:
                last = index
                if rest < weight:
                    return index
                rest -= weight
        return last  # reached by rounding of the sum
