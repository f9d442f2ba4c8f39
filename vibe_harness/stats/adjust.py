"""Adjustment for many tests: Benjamini and Hochberg's false discovery rate over a family."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

import numpy as np

from vibe_harness.errors import UserError

ALPHA = 0.05


def permutations_needed(family: int, alpha: float = ALPHA) -> int:
    """The number of random permutations m with which the smallest p of `family` tests can pass the first threshold.

    The smallest p, 1 / (m + 1), must be below alpha / family.
    """
    return floor(family / alpha + 1e-9)


def adjusted(
    p_values: Sequence[float | None], permutations: Sequence[int | None], *, alpha: float = ALPHA
) -> list[float | None]:
    """Adjusted p of each test of one family (model x task x dimension). None stays None and does not count.

    permutations: number of random draws for each p; None for exact and parametric tests. The adjustment is scipy's
    `false_discovery_control`, axis=None.

    Raises UserError if a p is not within 0 and 1, or if a test has too few permutations for the family, so that its p
    cannot pass the first threshold, alpha / family.
    """
    from scipy.stats import false_discovery_control

    if len(p_values) != len(permutations):
        raise UserError(f"{len(p_values)} p-values but {len(permutations)} numbers of permutations")
    tested = [index for index, p_value in enumerate(p_values) if p_value is not None]
    family = np.array([p_values[index] for index in tested], dtype=np.float64)
    if not ((family >= 0) & (family <= 1)).all():
        raise UserError(f"p-values are within 0 and 1; found {family[~((family >= 0) & (family <= 1))].tolist()}")
    needed = permutations_needed(len(tested), alpha)
    drawn = [number for index in tested if (number := permutations[index]) is not None]
    if drawn and min(drawn) < needed:
        raise UserError(
            f"too few permutations to adjust {len(tested)} tests at {alpha}: {min(drawn)} were drawn, at least "
            f"{needed} are needed; score the runs again with --permutations {needed}"
        )
    results: list[float | None] = [None] * len(p_values)
    if tested:
        for index, value in zip(tested, false_discovery_control(family, axis=None).tolist(), strict=True):
            results[index] = value
    return results
