"""nTVD of many tables under many assignments of speakers to groups, by matrix products.

The work of the permutation tests. Group counts are whole numbers, which a product of zeros and ones gives exactly in
whatever order a machine adds them; only the last steps round, by far less than the tests' tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.assignments import Codes
from vibe_harness.stats.ntvd import Floats
from vibe_harness.stats.tables import Table

ELEMENTS = 1 << 18
"""Group counts held at a time, for the columns of one portion of the tables."""


PAIR_UNITS = 500

MOST_STRATA = 100
"""Strata of utterances beyond which noise is not worked out: its cost grows with their square."""


class Engine:
    """Tables over the same units, cut into portions of columns that are small enough for `block` assignments."""

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
        see `_Portion._noise`."""
        result = np.full((len(assigned), self._width), np.nan)
        noise = np.ones(result.shape)
        for kind in {portion.matrix.dtype for _, portion in self._portions}:
            members = assigned == np.arange(self._groups - 1, dtype=assigned.dtype)[:, None, None]
            rows = members.reshape(-1, assigned.shape[1]).astype(kind)
            for indices, portion in self._portions:
                if portion.matrix.dtype == kind:
                    result[:, indices], noise[:, indices] = portion.scores(rows, self._groups)
        return result, noise


def _cut(tables: Sequence[Table], indices: Sequence[int], columns: int) -> Iterator[list[int]]:
    """The indices of tables in portions of so many columns, at least one table each."""
    chosen: list[int] = []
    for index in indices:
        if chosen and sum(tables[i].counts[0].size for i in (*chosen, index)) > columns:
            yield chosen
            chosen = []
        chosen.append(index)
    if chosen:
        yield chosen


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
        self.sizes = np.stack([one.sum(axis=1) for one in counts], axis=1)
        self.totals = self.sizes.sum(axis=0)
        self.matrix: NDArray[Any] = np.concatenate(
            [one * one.sum() - np.outer(one.sum(axis=1), one.sum(axis=0)) for one in counts], axis=1
        )
        self.starts = _starts([one.shape[1] for one in counts])

    def scores(self, rows: NDArray[Any], groups: int) -> tuple[Floats, Floats]:
        """As `_Portion.scores`, for groups = 2."""
        first = rows @ self.sizes
        product = first * (self.totals - first)
        differences = rows @ self.matrix
        total = np.add.reduceat(np.abs(differences, out=differences), self.starts, axis=1)
        scores = np.divide(50.0 * total, product, out=np.full(total.shape, np.nan), where=product > 0)
        return scores, np.ones(total.shape)


class _Portion:
    """Some tables side by side. A cell is one table's stratum of utterances, a column one value in a cell."""

    def __init__(self, tables: Sequence[Table]) -> None:
        values = np.concatenate([table.counts.reshape(len(table.counts), -1) for table in tables], axis=1)
        sums = np.concatenate([table.counts.sum(axis=2) for table in tables], axis=1)
        # Counts below 2^24 are exact in single precision.
        kind = np.float32 if sums.sum(axis=0).max() < 1 << 24 else np.float64
        self.matrix: NDArray[Any] = values.astype(kind)
        self.totals = self.matrix.sum(axis=0)
        self.cells: NDArray[Any] = sums.astype(kind)
        self.weights = np.concatenate([table.weights for table in tables])
        self.shapes = [table.counts.shape[1:] for table in tables]
        cells, widths = zip(*self.shapes, strict=True)
        self.cell_of_column = np.repeat(np.arange(sum(cells)), np.repeat(widths, cells))
        self.table_of_cell = np.repeat(np.arange(len(tables)), cells)
        self.cells_of_tables = _indicator(self.table_of_cell)
        self.starts = _starts(widths)
        self.spreads = [
            _spread(table) if 1 < cells <= MOST_STRATA else None for table, cells in zip(tables, cells, strict=True)
        ]

    def scores(self, rows: NDArray[Any], groups: int) -> tuple[Floats, Floats]:
        """nTVD and noise (B, tables). rows: ((G - 1) x B, S), 1 where a unit is in the group; the last is the rest."""
        totals = _with_last((rows @ self.cells).reshape(groups - 1, -1, self.weights.size), self.cells)
        used = (totals > 0).all(axis=0) * self.weights
        mass = used @ self.cells_of_tables
        factors = (used / np.where(mass > 0, mass, 1.0)[:, self.table_of_cell]) / np.maximum(totals, 1.0)
        counts = (rows @ self.matrix).reshape(groups - 1, -1, self.cell_of_column.size)
        scores = np.add.reduceat(self._deviations(counts, factors), self.starts, axis=1) * (50.0 / (groups - 1))
        return np.where(mass > 0, scores, np.nan), self._noise(rows, factors)

    def _noise(self, rows: NDArray[Any], factors: Floats) -> Floats:
        """How much chance adds to each score (B, tables), but for a constant; 1 for tables without strata.

        A standardised share is a sum over strata of counts times factors w_h / N_gh. Where strata are spread unevenly
        over the groups, the factors of the data are more uneven than those of most draws and its score is the noisier:
        without a correction true nulls are rejected too often. The variance is the quadratic form of the factors with
        the sums of the members' products of residuals, which takes in speakers' habits: f' (sum_i r_i r_i') f.
        """
        noise = np.ones((factors.shape[1], len(self.shapes)))
        for index, spread in enumerate(self.spreads):
            if spread is None:
                continue
            own = factors[:, :, self.table_of_cell == index]
            products = _with_last((rows @ spread).reshape(len(own) - 1, -1, spread.shape[1]), spread)
            products = products.reshape(*own.shape, own.shape[2])
            variance = np.einsum("gbh,gbhk,gbk->b", own, products, own, optimize=True)
            noise[:, index] = np.sqrt(np.maximum(variance, 0.0))
        return noise

    def _deviations(self, counts: NDArray[Any], factors: Floats) -> Floats:
        """Differences from the mean over groups, summed over groups (B, values). counts: (G - 1, B, K)."""
        shares = np.take(factors, self.cell_of_column, axis=2)
        shares[:-1] *= counts
        shares[-1] *= self.totals - counts.sum(axis=0)
        shares = self._over_strata(shares)
        shares -= shares.mean(axis=0)
        return np.asarray(np.abs(shares, out=shares).sum(axis=0))

    def _over_strata(self, columns: Floats) -> Floats:
        """Sums (..., values) over each table's strata of what is in columns (..., K)."""
        if self.weights.size == len(self.shapes):
            return columns
        ends = np.cumsum([cells * width for cells, width in self.shapes])[:-1]
        parts = np.split(columns, ends, axis=-1)
        parts = [part.reshape(*part.shape[:-1], *shape) for part, shape in zip(parts, self.shapes, strict=True)]
        return np.concatenate([part.sum(axis=-2) for part in parts], axis=-1)


def _spread(table: Table) -> Floats:
    """(S, H x H): for each unit the products, summed over values, of its residuals from the strata's own shares."""
    sums = table.counts.sum(axis=2)
    shares = table.counts.sum(axis=0) / np.maximum(sums.sum(axis=0), 1)[:, None]
    residuals = table.counts - sums[:, :, None] * shares
    return np.asarray(np.einsum("shv,skv->shk", residuals, residuals).reshape(len(sums), -1))


def _with_last(counts: NDArray[Any], units: NDArray[Any]) -> Floats:
    """Sums (G, B, K) out of those (G - 1, B, K) of all groups but the last. units: (S, K)."""
    rest = units.sum(axis=0) - counts.sum(axis=0)
    return np.concatenate([counts, rest[None]])


def _starts(widths: Sequence[int]) -> Codes:
    """Where each table's values begin in the columns, in which tables of these widths stand side by side."""
    return np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.int64)


def _indicator(owner: Codes) -> Floats:
    """(N, M) with 1 where owner[n] = m."""
    return np.asarray(owner[:, None] == np.arange(owner.max() + 1), dtype=np.float64)
