"""The score itself: normalised total variation distance between the answer distributions of groups.

VIBE (arXiv 2604.17248), equations 2 to 5. Arrays of counts in, numbers out; an undefined score is never a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vibe_harness.errors import UserError

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

DEGENERATE = "fewer than two values are kept: nothing can be compared"
EMPTY_GROUP = "a group is left with no value"
ONE_GROUP = "fewer than two groups: nothing to compare"


def checked_counts(counts: ArrayLike, what: str = "counts") -> Counts:
    """`counts` as integers. Raises UserError for NaN, negative numbers, fractions and anything that is no number."""
    array = np.asarray(counts)
    if array.dtype.kind not in "biuf":
        raise UserError(f"{what}: expected counts, found values of type {array.dtype}")
    if array.dtype.kind == "f" and not (np.isfinite(array).all() and (array == np.round(array)).all()):
        raise UserError(f"{what}: counts must be whole numbers; NaN, infinity or a fraction was found")
    if (array < 0).any():
        raise UserError(f"{what}: counts must not be negative")
    return array.astype(np.int64)


def kept_values(counts: ArrayLike, tau: int) -> NDArray[np.bool_]:
    """Mask (V,) of the values seen at least `tau` times over all rows together (VIBE, section on filtering).

    counts: (..., V), for instance speakers x values. The mask depends on the totals alone, so it is the same for
    every assignment of speakers to groups.
    """
    array = checked_counts(counts)
    totals = array.sum(axis=tuple(range(array.ndim - 1)))
    return np.asarray(totals >= max(tau, 1))


def shift(shares: Floats) -> Floats:
    """nTVD of distributions. shares: (..., G, V), each row sums to 1; G at least 2. Returns (...), 0 to 100.

    100 / (1 - 1/G) x mean over groups of 1/2 sum_v |P_g(v) - Pbar(v)|, Pbar the unweighted mean over groups
    (VIBE, equations 2 to 5); the two factors come to 50 / (G - 1) times the sum over groups and values.
    """
    deviations = shares - shares.mean(axis=-2, keepdims=True)
    total = np.abs(deviations, out=deviations).sum(axis=(-2, -1))
    return np.asarray(total * (50.0 / (shares.shape[-2] - 1)))


def standardised(counts: NDArray[Any], totals: NDArray[Any], weights: Floats) -> Floats:
    """Directly standardised distributions (..., G, V): P_g(v) = sum_h w_h P_g(v|h), the same w for all groups.

    counts: (..., G, H, V) by stratum of utterances; totals: (..., G, H), their sums over values; weights: (H,), sum 1.
    A stratum that lacks a group is left out and the others' weights are scaled up; NaN where none is complete. With a
    single stratum these are the plain distributions.
    """
    used = (totals > 0).all(axis=-2) * weights
    mass = used.sum(axis=-1, keepdims=True)
    scaled = np.divide(used, mass, out=np.full(used.shape, np.nan), where=mass > 0)
    factors = (scaled[..., None, :] / np.maximum(totals, 1))[..., None]
    return np.asarray(counts[..., 0, :] * factors[..., 0, :] if weights.size == 1 else (counts * factors).sum(axis=-2))


def ntvd(counts: ArrayLike) -> Floats:
    """nTVD of each table, 0 (no shift) to 100 (no value in common); NaN where it is undefined or degenerate.

    counts: (..., G, V), groups x values, already filtered by tau. Returns (...). Undefined: fewer than two groups, or
    a group with no value. Degenerate: fewer than two values with a count.
    """
    array = checked_counts(counts)
    if array.ndim < 2:
        raise UserError(f"nTVD needs a table of groups x values; the shape is {array.shape}")
    if array.shape[-2] < 2:
        return np.full(array.shape[:-2], np.nan)
    values = (array.sum(axis=-2) > 0).sum(axis=-1)
    return np.where(
        values < 2, np.nan, shift(standardised(array[..., None, :], array.sum(axis=-1)[..., None], np.ones(1)))
    )


def standardised_ntvd(counts: ArrayLike) -> float:
    """nTVD of one table (G, H, V), directly standardised over its strata with their shares of all counts as weights.

    NaN where it is undefined or degenerate; with a single stratum it is `ntvd`.
    """
    array = checked_counts(counts)
    if array.ndim != 3:
        raise UserError(f"a table of groups x strata x values is needed; the shape is {array.shape}")
    totals = array.sum(axis=2)
    if len(array) < 2 or (array.sum(axis=(0, 1)) > 0).sum() < 2:
        return float("nan")
    return float(shift(standardised(array, totals, totals.sum(axis=0) / totals.sum())))


def published_ntvd(counts: ArrayLike) -> Floats:
    """As `ntvd`, but 0 where a single value is left, as in the published definition. Undefined stays NaN."""
    array = checked_counts(counts)
    single = ((array.sum(axis=-2) > 0).sum(axis=-1) == 1) & (array.sum(axis=-1) > 0).all(axis=-1)
    return np.where(single & (array.shape[-2] > 1), 0.0, ntvd(array))
