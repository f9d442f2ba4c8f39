"""Agreement between sets of scores of models: over thresholds tau, corpora and tasks. NaN is a missing score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.errors import UserError
from vibe_harness.stats.ntvd import Counts, Floats, checked_counts, kept_values, ntvd, standardised_ntvd

TAUS = (1, 2, 5, 10, 15, 20, 30, 50)


@dataclass(frozen=True, slots=True)
class Correlation:
    """value: None if it is undefined; `reason` says why. models: number of models with both scores."""

    value: float | None
    models: int
    reason: str | None = None


def rank_agreement(first: ArrayLike, second: ArrayLike) -> Correlation:
    """Spearman correlation over models of two sets of scores (M,), such as two corpora or two thresholds tau."""
    from scipy.stats import spearmanr

    return _correlation(first, second, lambda x, y: float(spearmanr(x, y).statistic))


def correlation(first: ArrayLike, second: ArrayLike) -> Correlation:
    """Pearson correlation over models of two sets of scores (M,), such as two tasks."""
    from scipy.stats import pearsonr

    return _correlation(first, second, lambda x, y: float(pearsonr(x, y).statistic))


def task_correlations(scores: ArrayLike) -> list[list[Correlation]]:
    """`correlation` of every pair of tasks. scores: (M, T), models x tasks."""
    columns = _scores(scores).T
    return [[correlation(first, second) for second in columns] for first in columns]


@dataclass(frozen=True, slots=True)
class TauStudy:
    """scores: (K, M), the task's score at each tau and for each model; NaN where no attribute has one. attributes:
    (K, M), how many attributes each is a mean of. agreement: for each tau the models' ranks against those at the
    reference tau."""

    taus: tuple[int, ...]
    scores: Floats
    attributes: Counts
    agreement: tuple[Correlation, ...]


def tau_study(models: Sequence[Sequence[ArrayLike]], taus: Sequence[int] = TAUS, *, reference: int = 10) -> TauStudy:
    """How the scores of one task depend on the threshold tau.

    models: for each model, an unfiltered table for each attribute, of shape (G, V), groups x values, or (G, H, V) by
    stratum of utterances. All models have the same attributes, but not the same values. Raises UserError if `reference`
    is not one of the taus.
    """
    if reference not in taus:
        raise UserError(f"tau {reference} is not among {list(taus)}")
    scores = np.full((len(taus), len(models)), np.nan)
    attributes = np.zeros(scores.shape, dtype=np.int64)
    for column, tables in enumerate(models):
        for row, tau in enumerate(taus):
            filtered = [table[..., kept_values(table, tau)] for table in map(checked_counts, tables)]
            values = np.array([standardised_ntvd(one) if one.ndim == 3 else ntvd(one) for one in filtered])
            attributes[row, column] = np.isfinite(values).sum()
            if attributes[row, column]:
                scores[row, column] = np.nanmean(values)
    base = scores[list(taus).index(reference)]
    return TauStudy(tuple(taus), scores, attributes, tuple(rank_agreement(row, base) for row in scores))


def _correlation(first: ArrayLike, second: ArrayLike, function: Callable[[Floats, Floats], float]) -> Correlation:
    x, y = _scores(first), _scores(second)
    if x.shape != y.shape or x.ndim != 1:
        raise UserError(f"both need one score per model; the shapes are {x.shape} and {y.shape}")
    both = np.isfinite(x) & np.isfinite(y)
    models = int(both.sum())
    if models < 3:
        return Correlation(None, models, "fewer than three models have both scores")
    if np.ptp(x[both]) == 0 or np.ptp(y[both]) == 0:
        return Correlation(None, models, "all models have the same score")
    return Correlation(function(x[both], y[both]), models)


def _scores(scores: ArrayLike) -> Floats:
    array = np.asarray(scores, dtype=np.float64)
    if np.isinf(array).any():
        raise UserError("a score is infinite")
    return array
