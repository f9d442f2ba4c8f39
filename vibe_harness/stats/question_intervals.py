"""Intervals of figures over few questions, ten or twenty.

Percentile bootstraps of so few questions cover 0.67 to 0.93: they lack Student's t, and if nearly all questions agree
they show hardly any variance. Here the variance is estimated with one more, undecided question; the estimate itself is
that of the questions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vibe_harness.stats.consistency import Agreement, Floats

UNDECIDED = 0.5
"""Value (0 to 1) of the additional question."""


def share_interval(values: Floats, weights: Floats, level: float = 0.95) -> tuple[float, float]:
    """Interval of the mean of values from 0 to 1, such as shares or entropies.

    values: (Q,), one per question, at least two; weights: (Q,). This is Clopper and Pearson's (1934) interval for the
    effective number of independent answers, reduced by Student's t (Korn and Graubard 1998, "Confidence intervals for
    proportions with small expected number of positive counts").
    """
    from scipy.special import betaincinv, ndtri, stdtrit

    total = weights.sum()
    mean = float((weights * values).sum() / total)
    values, weights = np.append(values, UNDECIDED), np.append(weights, total / len(values))
    own, count = weights / weights.sum(), len(values)
    drawn = float((own * values).sum())
    variance = count / (count - 1) * float((own**2 * (values - drawn) ** 2).sum())
    tail = (1 - level) / 2
    if variance <= 0:
        return 0.0, 1.0  # every question is undecided
    number = drawn * (1 - drawn) / variance * float(ndtri(1 - tail) / stdtrit(count - 2, 1 - tail)) ** 2
    hits = number * mean
    low = float(betaincinv(hits, number - hits + 1, tail)) if mean > 0 else 0.0
    high = float(betaincinv(hits + 1, number - hits, 1 - tail)) if mean < 1 else 1.0
    return low, high


def kappa_interval(
    parts: Agreement, statistic: Callable[[Agreement, Floats], Floats], level: float = 0.95
) -> tuple[float, float] | None:
    """Student's t interval of a kappa with the standard error of leaving out one question at a time.

    statistic: `pooled_kappa` or `averaged_kappa`. The error is the larger of those with and without one more question,
    whose answers are spread over all options and agree by chance. Clipped to -1 and 1; None without an error.
    """
    from scipy.special import stdtrit

    questions = len(parts.agreeing)
    value = float(statistic(parts, np.ones((1, questions)))[0])
    mean = parts.ratings.sum(axis=1).mean()
    options = parts.ratings.shape[1]
    more = Agreement(
        np.vstack([parts.ratings, np.full(options, mean / options)]), np.append(parts.agreeing, mean / options)
    )
    errors = [error for one in (parts, more) if np.isfinite(error := _jackknife(one, statistic))]
    if not errors or max(errors) <= 0 or not np.isfinite(value):
        return None
    reach = float(stdtrit(questions - 1, (1 + level) / 2)) * max(errors)
    return max(value - reach, -1.0), min(value + reach, 1.0)


def _jackknife(parts: Agreement, statistic: Callable[[Agreement, Floats], Floats]) -> float:
    count = len(parts.agreeing)
    left_out = statistic(parts, 1 - np.eye(count))
    return float(np.sqrt((count - 1) / count * ((left_out - left_out.mean()) ** 2).sum()))
