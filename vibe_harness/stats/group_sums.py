"""Sums by group under many assignments, for designs of many groups.

A product with zeros and ones takes as many steps as there are units times groups; sorted by group, a sum takes one step
a unit, however many groups there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.assignments import Codes
from vibe_harness.stats.ntvd import Floats


def group_sums(rows: NDArray[Any], assigned: Codes) -> Floats:
    """Sums (K, G, B) of the units' rows (S, K) in each group of each assignment (B, S), every group having a unit."""
    groups = int(assigned[0].max()) + 1
    sums = np.empty((len(assigned), groups, rows.shape[1]))
    for draw, codes in enumerate(assigned):
        sizes = np.bincount(codes, minlength=groups)
        sums[draw] = np.add.reduceat(rows[np.argsort(codes, kind="stable")], sizes.cumsum() - sizes, axis=0)
    return np.ascontiguousarray(sums.transpose(2, 1, 0))
