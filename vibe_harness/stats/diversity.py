"""Diversity of answers. A model that always gives the same answer has no shift, which does not make it fair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.errors import UserError
from vibe_harness.stats.ntvd import checked_counts


@dataclass(frozen=True, slots=True)
class Diversity:
    """entropy: in bits; evenness: entropy as a share of its maximum for that number of values, None for one value;
    distinct: number of values that occur; commonest: share of the most frequent value."""

    entropy: float
    evenness: float | None
    distinct: int
    commonest: float


def diversity(counts: ArrayLike) -> Diversity | None:
    """Diversity of values with these counts (V,); None without answers. Raises UserError if they are not counts."""
    from scipy.special import entr

    array = checked_counts(counts)
    if array.ndim != 1:
        raise UserError(f"diversity: counts of shape (V,) expected; the shape is {array.shape}")
    distinct = int((array > 0).sum())
    if not distinct:
        return None
    bits = float(entr(array / array.sum()).sum() / np.log(2))
    return Diversity(
        bits, bits / float(np.log2(distinct)) if distinct > 1 else None, distinct, array.max() / array.sum()
    )


def identical_share(responses: Sequence[str]) -> float | None:
    """Share of responses with exactly the text of another one; None without responses."""
    if not responses:
        return None
    _, numbers = np.unique(np.asarray(responses, dtype=object), return_counts=True)
    return float(numbers[numbers > 1].sum() / len(responses))
