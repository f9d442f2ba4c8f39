"""Whether values are missing more often for one group than for another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.stats.assignments import Design
from vibe_harness.stats.ntvd import DEGENERATE, EMPTY_GROUP, checked_counts
from vibe_harness.stats.permutation import permutation_tests


@dataclass(frozen=True, slots=True)
class CoverageTest:
    """by_group: share without a value, 0 to 1; None for a group without answers. difference: largest minus smallest
    share, in points (0 to 100). p_value: of the speaker-level permutation test. reason: why one of them is None."""

    by_group: tuple[float | None, ...]
    difference: float | None
    p_value: float | None
    reason: str | None = None


def coverage_tests(
    tables: Sequence[ArrayLike],
    groups: ArrayLike,
    strata: ArrayLike | None = None,
    *,
    permutations: int = 10_000,
    seed: int = 0,
) -> list[CoverageTest]:
    """Test whether the share of missing values differs between groups, by permuting speakers.

    tables: for each attribute, counts (S, 2) of each speaker's answers without and with a value. The statistic is the
    nTVD of the two-column table (for two groups, the difference in points). Other arguments and errors are those of
    `permutation_tests`. If every answer has a value, or none has, the groups do not differ and p is 1.
    """
    counts = [checked_counts(table, "coverage") for table in tables]
    tests = permutation_tests([[table] for table in counts], groups, strata, permutations=permutations, seed=seed)
    members = Design.of(groups, strata).groups
    results = []
    for table, test in zip(counts, tests, strict=True):
        without, valued = (np.bincount(members, weights=column) for column in table.T)
        shares = [float(a / (a + b)) if a + b else None for a, b in zip(without, valued, strict=True)]
        known = [share for share in shares if share is not None]
        difference = 100 * (max(known) - min(known)) if len(known) == len(shares) > 1 else None
        tested = test.attributes[0]
        p_value, reason = tested.p_value, tested.reason
        if reason == DEGENERATE:
            # One column alone. With an answer from every group the shares are all 0 or all 1, in every assignment.
            p_value, reason = (1.0, None) if difference is not None else (None, EMPTY_GROUP)
        results.append(CoverageTest(tuple(shares), difference, p_value, reason))
    return results
