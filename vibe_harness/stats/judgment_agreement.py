"""How often judges call a reading right: shares, differences and agreement, with whole responses as units.

Readings of one response are not independent, so resampling and tests take a response with all its judgments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vibe_harness.stats.rng import picks, random_words

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
DRAWN = 1 << 20
"""Responses in one block of resamples."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of judgments. `value` and `interval` (95 %) are None without judgments."""

    value: float | None
    interval: tuple[float, float] | None
    exact: bool = False  # nothing varies, so the interval is the exact bound of `share_right`


def share_right(right: ArrayLike, judged: ArrayLike, *, resamples: int = 10_000, seed: int = 0) -> Share:
    """Judgments called right over all judgments, with a percentile bootstrap over whole responses.

    right, judged: (R,), of each response; 0 <= right <= judged (fractions if several judges are averaged). Responses
    without a judgment are left out. If all responses have the same share, such as all judgments right, a bootstrap has
    no width; the interval is then exact: none of R responses differs, so at most 1 - 0.025^(1/R) of all responses do
    (Clopper and Pearson 1934), and those are entirely right or entirely wrong at worst.
    """
    pairs = _responses(right, judged)
    if not len(pairs):
        return Share(None, None)
    value = float(pairs[:, 0].sum() / pairs[:, 1].sum())
    if _alike(pairs):
        unlike = _unlike(len(pairs))
        return Share(value, (value * (1 - unlike), 1 - (1 - value) * (1 - unlike)), exact=True)
    return Share(value, _interval(pairs, resamples, seed))


@dataclass(frozen=True, slots=True)
class Difference:
    """first - second of two shares of the same judgments, its 95 % interval, and the p of a test that it is 0.

    None without judgments.
    """

    value: float | None
    interval: tuple[float, float] | None
    p_value: float | None


def paired_difference(
    first: ArrayLike, second: ArrayLike, judged: ArrayLike, *, resamples: int = 10_000, seed: int = 0
) -> Difference:
    """Compare how often two extractors are right on the same attributes of the same responses.

    first, second, judged: (R,), right readings of each extractor and attributes judged for both, by response. Interval:
    percentile bootstrap over whole responses, or exact, as in `share_right`, if all responses have the same difference:
    if the two never differ, up to 1 - 0.025^(1/R) of all responses may. Test: random signs of the responses'
    differences (Fisher's randomisation of paired data); p = (b + 1)/(m + 1), two-sided, m = resamples.
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    pairs = _responses(difference, judged)
    if not len(pairs):
        return Difference(None, None, None)
    value = float(pairs[:, 0].sum() / pairs[:, 1].sum())
    words, differences = random_words(seed, 1), pairs[:, 0]
    drawn = [(2 * picks(words, 2, shape) - 1) @ differences for shape in _portions(resamples, len(pairs))]
    reached = int((np.abs(np.concatenate(drawn)) >= abs(differences.sum()) - 1e-9).sum())
    interval = _interval(pairs, resamples, seed)
    if _alike(pairs):
        unlike = _unlike(len(pairs))
        interval = value * (1 - unlike) - unlike, value * (1 - unlike) + unlike
    return Difference(value, interval, (reached + 1) / (resamples + 1))


@dataclass(frozen=True, slots=True)
class Kappa:
    """Two judges: the share of judgments that are the same, and Cohen's kappa; None, and why, where undefined."""

    same: float | None
    kappa: float | None
    undefined: str | None = None


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> Kappa:
    """Agreement of two judges beyond chance: (p_o - p_e) / (1 - p_e) (Cohen 1960, equation 1).

    first, second: (N,), True where the judge says right, of the judgments that both made.
    """
    one, other = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if one.shape != other.shape or one.ndim != 1:
        raise ValueError(f"two judgments of each reading are needed, not shapes {one.shape} and {other.shape}")
    if not one.size:
        return Kappa(None, None, "nothing was judged by both")
    same = float((one == other).mean())
    chance = float(one.mean() * other.mean() + (1 - one.mean()) * (1 - other.mean()))
    if chance == 1:
        return Kappa(same, None, "both give one and the same judgment throughout")
    return Kappa(same, (same - chance) / (1 - chance))


def _responses(sums: ArrayLike, judged: ArrayLike) -> Floats:
    """(R, 2): sum and number of judgments of each response that has any."""
    numerators, numbers = np.asarray(sums, dtype=np.float64), np.asarray(judged, dtype=np.float64)
    if numerators.shape != numbers.shape or numbers.ndim != 1:
        raise ValueError(f"one number of each response is needed, not shapes {numerators.shape} and {numbers.shape}")
    if (np.abs(numerators) > numbers).any():
        raise ValueError("a response has more right judgments than judgments")
    return np.column_stack([numerators, numbers])[numbers > 0]


def _alike(pairs: Floats) -> bool:
    """Whether all responses have the same share, but for the rounding of judges' means."""
    return bool(np.allclose(pairs[:, 0] * pairs[0, 1], pairs[0, 0] * pairs[:, 1], rtol=1e-9, atol=1e-9))


def _unlike(responses: int) -> float:
    """The largest share of responses unlike all that were judged, by the confidence of one end."""
    return float(1 - ((1 - CONFIDENCE) / 2) ** (1 / responses))


def _interval(pairs: Floats, resamples: int, seed: int) -> tuple[float, float]:
    """Percentile bootstrap of the ratio of the two sums over responses drawn with replacement."""
    words, number = random_words(seed), len(pairs)
    portions = [pairs[picks(words, number, shape)].sum(axis=1) for shape in _portions(resamples, number)]
    drawn = np.concatenate(portions)
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(drawn[:, 0] / drawn[:, 1], [tail, 100 - tail])
    return float(low), float(high)


def _portions(resamples: int, responses: int) -> list[tuple[int, int]]:
    """Shapes of resamples x responses, as many of the former as are worked on at a time."""
    rows = max(DRAWN // responses, 1)
    return [(min(rows, resamples - start), responses) for start in range(0, resamples, rows)]
