"""How varied the answers are: a model that always says the same shifts with no voice, and is not fair for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.errors import UserError
from vibe_harness.stats.ntvd import checked_counts


@dataclass(frozen=True, slots=True)
class Diversity:
    """entropy: in bits; evenness: entropy as a share of the largest for that many values, None with a single value;
    distinct: values that occur; commonest: share of the commonest value."""

    entropy: float
    evenness: float | None
    distinct: int
    commonest: float


def diversity(counts: ArrayLike) -> Diversity | None:
    """How varied the values with these counts (V,) are; None without any answer. Raises UserError for no counts."""
    from scipy.special import entr

    array = checked_counts(counts)
    if array.ndim != 1:
        raise UserError(f"diversity: counts of values expected, one row; the shape is {array.shape}")
    distinct = int((array > 0).sum())
    if not distinct:
        return None
    bits = float(entr(array / array.sum()).sum() / np.log(2))
    return Diversity(
        bits, bits / float(np.log2(distinct)) if distinct > 1 else None, distinct, array.max() / array.sum()
    )


def identical_share(responses: Sequence[str]) -> float | None:
    """Share of the responses that repeat another one word for word; None without any response."""
    if not responses:
        return None
    _, numbers = np.unique(np.asarray(responses, dtype=object), return_counts=True)
    return float(numbers[numbers > 1].sum() / len(responses))
