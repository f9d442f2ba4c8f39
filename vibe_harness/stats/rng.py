"""Random numbers that follow from a seed alone, on any machine and under any version of numpy.

numpy promises the words of its bit generators, and not what `numpy.random.Generator` makes of them (NEP 19). So what is
drawn for a figure is made of words, here. What has a name (clips, speakers, responses) is drawn by a digest of seed and
name (`cards.digest`), so that a draw does not hang on what else there is.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

Words = Callable[[int], NDArray[np.uint64]]


def random_words(seed: int, number: int = 0) -> Words:
    """A numbered stream of random 64-bit words, by Philox; it is called with how many are wanted next. Little-endian
    everywhere, so that their bytes are the same too."""
    stream = np.random.Philox(np.random.SeedSequence([seed, number]))
    return lambda wanted: np.asarray(stream.random_raw(wanted)).astype("<u8", copy=False)


def picks(words: Words, among: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Whole numbers from 0 to below `among` (one, or one a place of `shape`), each alike: but for the 2^32 numbers that
    they are made of, 1 in 2^32 / `among`."""
    number = prod(shape)
    return scaled(words(-(-number // 2)).view("<u4")[:number].reshape(shape), among)


def scaled(random: NDArray[np.uint32], among: ArrayLike) -> NDArray[np.int64]:
    """Whole numbers from 0 to below `among` out of random numbers of 32 bits."""
    wide = random.astype(np.uint64)  # numpy 1 keeps 32 bits else
    return (wide * np.asarray(among, dtype=np.uint64) >> np.uint64(32)).astype(np.int64)
