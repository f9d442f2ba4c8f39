"""nTVD of many tables under many assignments of speakers to groups, by matrix products.

The work of the permutation tests. Group counts are whole numbers, which a product of zeros and ones gives exactly in
whatever order a machine adds them; only the last steps round, by far less than the tests' tolerance. Assignments run
along the last axis everywhere, so that each step works on long rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.assignments import Codes
from vibe_harness.stats.ntvd import Floats
from vibe_harness.stats.packing import BITS, Packing
from vibe_harness.stats.tables import Table

PAIR_UNITS = 500
"""Most units for which two groups take a product in double precision: with more it costs more than it saves."""

PACK_UNITS = 200
"""Fewest units for which the counts of several values share one number: with fewer it saves less than it costs."""

ELEMENTS = 1 << 21
"""Group counts held at a time."""

MOST_STRATA = 100
"""Strata of utterances beyond which noise is not worked out: its cost grows with their square."""


class Engine:
    """Tables over the same units, in portions of columns that are small enough for `block` assignments."""

    def __init__(self, tables: Sequence[Table], groups: int, block: int) -> None:
        self._groups = groups
        self._width = len(tables)
        self._portions: list[tuple[list[int], _Portion | _PairPortion]] = []
        usable = [] if groups < 2 else [index for index, table in enumerate(tables) if not table.degenerate]
        pairs = [index for index in usable if groups == 2 and _is_pair(tables[index])]
        for indices, kind in ((pairs, _PairPortion), (sorted(set(usable) - set(pairs)), _Portion)):
            for chosen in _cut(tables, indices, max(ELEMENTS // (block * groups), 1)):
                self._portions.append((chosen, kind([tables[index] for index in chosen])))

    def scores(self, assigned: Codes) -> tuple[Floats, Floats]:
        """nTVD (B, A) of every table under every assignment (B, S), NaN where a table has none; and its noise (B, A),
        see `_noise`."""
        result = np.full((self._width, len(assigned)), np.nan)
        noise = np.ones(result.shape)
        units = np.ascontiguousarray(assigned.T)
        for kind in {portion.matrix.dtype for _, portion in self._portions}:
            members = np.stack([(units == group).astype(kind) for group in range(self._groups - 1)], axis=1)
            for indices, portion in self._portions:
                if portion.matrix.dtype == kind:
                    result[indices], noise[indices] = portion.scores(members)
        return result.T, noise.T


def _cut(tables: Sequence[Table], indices: Sequence[int], columns: int) -> list[list[int]]:
    """The indices of tables in portions of so many columns, at least one table each."""
    portions: list[list[int]] = []
    room = 0
    for index in indices:
        width = tables[index].counts[0].size
        if width > room:
            portions.append([])
            room = columns
        portions[-1].append(index)
        room -= width
    return portions


def _is_pair(table: Table) -> bool:
    """Whether `_PairPortion` takes it: one stratum, few enough counts for whole numbers of double precision, and few
    enough units for a product of double precision to cost less than it saves."""
    units, strata, _ = table.counts.shape
    return strata == 1 and units <= PAIR_UNITS and float(table.counts.sum()) ** 2 < 2.0**52


class _PairPortion:
    """Tables of two groups without strata: |c / n - (t - c) / (N - n)| = |c N - t n| / (n (N - n)) for each value.

    c and n are the first group's counts of the value and of all values, t and N those of both groups. c N - t n is a
    whole number and linear in the members, so that one matrix product gives it exactly.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        counts = [table.counts[:, 0].astype(np.float64) for table in tables]
        self.sizes = np.stack([one.sum(axis=1) for one in counts])
        self.totals = self.sizes.sum(axis=1)[:, None]
        self.matrix: NDArray[Any] = np.concatenate(
            [(one * one.sum() - np.outer(one.sum(axis=1), one.sum(axis=0))).T for one in counts]
        )
        self.columns = _slices([one.shape[1] for one in counts])

    def scores(self, members: NDArray[Any]) -> tuple[Floats, Floats]:
        """As `_Portion.scores`, for two groups."""
        first = self.sizes @ members[:, 0]
        product = first * (self.totals - first)
        differences = self.matrix @ members[:, 0]
        np.abs(differences, out=differences)
        total = np.stack([differences[columns].sum(axis=0) for columns in self.columns])
        scores = np.divide(50.0 * total, product, out=np.full(total.shape, np.nan), where=product > 0)
        return scores, np.ones(total.shape)


class _Portion:
    """Some tables side by side. A row of the matrix is one value in one of a table's strata of utterances."""

    def __init__(self, tables: Sequence[Table]) -> None:
        values = np.concatenate([table.counts.reshape(len(table.counts), -1) for table in tables], axis=1)
        kind = np.float32 if max(table.counts.sum(axis=(0, 2)).max() for table in tables) < 1 << BITS else np.float64
        self.packing = Packing.of(values) if len(values) >= PACK_UNITS and kind == np.float32 else None
        rows = values if self.packing is None else self.packing.packed(values)
        self.matrix: NDArray[Any] = np.ascontiguousarray(rows.T, dtype=kind)
        self.shapes = [table.counts.shape[1:] for table in tables]
        self.columns = _slices([strata * width for strata, width in self.shapes])
        self.totals = [table.counts.sum(axis=0).astype(kind) for table in tables]
        self.weights = [table.weights[:, None] for table in tables]
        self.spreads = [_spread(table) if 1 < len(table.weights) <= MOST_STRATA else None for table in tables]

    def scores(self, members: NDArray[Any]) -> tuple[Floats, Floats]:
        """nTVD and noise (tables, B). members: (S, G - 1, B), 1 where a unit is in the group; the last is the rest."""
        units, groups, draws = members.shape
        flat = members.reshape(units, -1)
        counts = self.matrix @ flat
        if self.packing is not None:
            counts = self.packing.counts(counts)
        scores, noise = np.full((len(self.shapes), draws), np.nan), np.ones((len(self.shapes), draws))
        for index, (columns, shape) in enumerate(zip(self.columns, self.shapes, strict=True)):
            own = counts[columns].reshape(*shape, groups, draws)
            rest = self.totals[index][..., None] - own.sum(axis=2)
            totals = np.concatenate([own.sum(axis=1), rest.sum(axis=1)[:, None]], axis=1)
            used = (totals > 0).all(axis=1) * self.weights[index]
            mass = used.sum(axis=0)
            factors = (used / np.where(mass > 0, mass, 1.0))[:, None] / np.maximum(totals, 1.0)
            scores[index] = np.where(mass > 0, _shift(own, rest, factors), np.nan)
            spread = self.spreads[index]
            if spread is not None:
                noise[index] = _noise(spread, flat, factors)
        return scores, noise


def _shift(counts: NDArray[Any], rest: NDArray[Any], factors: Floats) -> Floats:
    """nTVD (B,) of one table. counts: (H, V, G - 1, B) of all groups but the last; rest: (H, V, B) of the last.

    factors: (H, G, B), what a count of the stratum adds to its group's share.
    """
    shares, last = counts[0] * factors[0, None, :-1], rest[0] * factors[0, -1]
    for stratum in range(1, len(factors)):
        shares += counts[stratum] * factors[stratum, None, :-1]
        last += rest[stratum] * factors[stratum, -1]
    groups = factors.shape[1]
    mean = (shares.sum(axis=1) + last) / groups
    shares -= mean[:, None]
    last -= mean
    total = np.abs(shares, out=shares).sum(axis=(0, 1)) + np.abs(last, out=last).sum(axis=0)
    return np.asarray(total * (50.0 / (groups - 1)))


def _noise(spread: Floats, members: NDArray[Any], factors: Floats) -> Floats:
    """How much chance adds to each score (B,), but for a constant. members: (S, (G - 1) x B); factors: (H, G, B).

    A standardised share is a sum over strata of counts times factors w_h / N_gh. Where strata are spread unevenly over
    the groups, the factors of the data are more uneven than those of most draws and its score is the noisier: without
    a correction true nulls are rejected too often. The variance is the quadratic form of the factors with the sums of
    the members' products of residuals, which takes in speakers' habits: f' (sum_i r_i r_i') f.
    """
    strata, groups, draws = factors.shape
    products = (spread @ members).reshape(len(spread), groups - 1, draws)
    rest = spread.sum(axis=1)[:, None] - products.sum(axis=1)
    whole = np.concatenate([products, rest[:, None]], axis=1).reshape(strata, strata, groups, draws)
    variance = np.einsum("hgb,hkgb,kgb->b", factors, whole, factors, optimize=True)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def _spread(table: Table) -> Floats:
    """(H x H, S): for each unit the products, summed over values, of its residuals from the strata's own shares."""
    sums = table.counts.sum(axis=2)
    shares = table.counts.sum(axis=0) / np.maximum(sums.sum(axis=0), 1)[:, None]
    residuals = table.counts - sums[:, :, None] * shares
    return np.asarray(np.einsum("shv,skv->hks", residuals, residuals).reshape(-1, len(sums)))


def _slices(widths: Sequence[int]) -> list[slice]:
    """Where each of several things of these widths stands that stand side by side."""
    ends = np.cumsum(widths).tolist()
    return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]
