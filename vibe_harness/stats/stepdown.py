"""Step-down adjusted p-values of several statistics with the same permutations (Westfall and Young 1993)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.ntvd import Floats

TOLERANCE = 1e-9
"""Relative difference under which two statistics are tied."""


class StepDown:
    """The step-down maxT procedure (Westfall and Young 1993, algorithm 4.1), in blocks of draws.

    In each draw, the j-th largest statistic is compared with the maximum of its own and all smaller ones. The
    probability of any false rejection at alpha is at most alpha, whichever hypotheses are true.
    """

    def __init__(self, observed: Floats) -> None:
        """observed: (M,) statistics, larger against the null hypothesis, on one scale."""
        self._order = np.argsort(-observed, kind="stable")
        self._sorted = observed[self._order]
        self._larger: NDArray[np.int64] = np.zeros(observed.size, dtype=np.int64)
        self._draws = 0

    def add(self, drawn: Floats) -> None:
        """Count a block of draws (M, B)."""
        largest = np.maximum.accumulate(drawn[self._order][::-1], axis=0)[::-1]
        self._larger += (largest >= (self._sorted * (1 - TOLERANCE))[:, None]).sum(axis=1)
        self._draws += drawn.shape[1]

    def p_values(self, complete: bool) -> Floats:
        """Adjusted p (M,). complete: the draws were all assignments, the observed one among them."""
        found = self._larger / self._draws if complete else (self._larger + 1) / (self._draws + 1)
        result = np.empty(found.size)
        result[self._order] = np.maximum.accumulate(found)
        return result


def adjusted_p_values(observed: Floats, drawn: Floats, complete: bool) -> Floats:
    """Adjusted p (A,) of statistics on different scales, by the smallest p (Westfall and Young 1993, minP).

    observed: (A,); drawn: (B, A). NaN in `observed` stays NaN; NaN in `drawn` counts as larger than all.
    """
    result = np.full(observed.size, np.nan)
    tested = np.flatnonzero(np.isfinite(observed))
    if not tested.size:
        return result
    draws = np.where(np.isnan(drawn[:, tested]), np.inf, drawn[:, tested])
    # The data are included, so that data and draws are ranked among equally many.
    pooled = np.sort(draws if complete else np.vstack([draws, observed[tested]]), axis=0)
    ranks = [_smaller(pooled[:, column], draws[:, column]) for column in range(tested.size)]
    own = [float(_smaller(pooled[:, column], observed[[index]])[0]) for column, index in enumerate(tested)]
    procedure = StepDown(np.array(own))
    procedure.add(np.stack(ranks))
    result[tested] = procedure.p_values(complete)
    return result


def _smaller(pooled: Floats, values: Floats) -> Floats:
    """Number of smaller draws. p decreases with it in the same way for every statistic."""
    with np.errstate(invalid="ignore"):
        slack = TOLERANCE * np.maximum(np.abs(values), 1.0)
        return np.searchsorted(pooled, np.where(np.isinf(values), values, values - slack)).astype(np.float64)
