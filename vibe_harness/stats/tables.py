"""The counts of one attribute by speaker, checked once, as every test and interval takes them."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from vibe_harness.errors import UserError
from vibe_harness.stats.ntvd import DEGENERATE, EMPTY_GROUP, ONE_GROUP, Counts, Floats, checked_counts


@dataclass(frozen=True, slots=True)
class Table:
    """Counts of one attribute. counts: (S, H, V). weights: (H,) shares of the strata of utterances."""

    counts: Counts
    weights: Floats

    @classmethod
    def of(cls, counts: ArrayLike, units: int) -> Table:
        array = checked_counts(counts, "table")
        if array.ndim == 2:
            array = array[:, None, :]
        if array.ndim != 3 or array.shape[0] != units:
            raise UserError(f"table: {units} rows of counts expected, one for each unit; the shape is {array.shape}")
        totals = array.sum(axis=(0, 2))
        return cls(array, totals / max(totals.sum(), 1))

    @property
    def degenerate(self) -> bool:
        return int((self.counts.sum(axis=(0, 1)) > 0).sum()) < 2

    def why_undefined(self, groups: int) -> str:
        if groups < 2:
            return ONE_GROUP
        if self.degenerate:
            return DEGENERATE
        return EMPTY_GROUP if self.counts.shape[1] == 1 else "no stratum has values of every group"
