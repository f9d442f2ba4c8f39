"""Many tests at once: Benjamini and Hochberg's false discovery rate over the family of a leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

import numpy as np

from vibe_harness.errors import UserError

ALPHA = 0.05


def permutations_needed(family: int, alpha: float = ALPHA) -> int:
    """The fewest random permutations with which the best of `family` tests can pass its first threshold.

    The smallest p, 1 / (m + 1), has to be under alpha / family.
    """
    return floor(family / alpha + 1e-9)


def adjusted(
    p_values: Sequence[float | None], permutations: Sequence[int | None], *, alpha: float = ALPHA
) -> list[float | None]:
    """Adjusted p of each test of one family, model x task x dimension; None stays None and is not of the family.

    permutations: random draws behind each p; None for tests that drew none (exact or parametric), whose p cannot be
    made any finer. The adjustment is scipy's `false_discovery_control`, axis=None.

    Raises UserError where a p is not within 0 and 1, or where a test drew too few permutations for the family: its p
    could not pass the first threshold alpha / family, however large the shift.
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
