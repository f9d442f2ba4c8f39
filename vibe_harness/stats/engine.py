"""nTVD of many tables under many assignments of speakers to groups, by matrix products.

The work of the permutation tests. Group counts are whole numbers, which a product of zeros and ones gives exactly in
whatever order a machine adds them; only the last steps round, by far less than the tests' tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.assignments import Codes
from vibe_harness.stats.ntvd import Floats
from vibe_harness.stats.tables import Table

ELEMENTS = 1 << 17
"""Group counts held at a time, for the columns of one portion of the tables."""


class Engine:
    """Tables over the same units, cut into portions of columns that are small enough for `block` assignments."""

    def __init__(self, tables: Sequence[Table], groups: int, block: int) -> None:
        self._groups = groups
        self._width = len(tables)
        self._portions: list[tuple[list[int], _Portion]] = []
        columns = max(ELEMENTS // (block * groups), 1)
        chosen: list[int] = []
        for index, table in enumerate(tables):
            if table.degenerate or groups < 2:
                continue
            if chosen and sum(tables[i].counts[0].size for i in (*chosen, index)) > columns:
                self._portions.append((chosen, _Portion([tables[i] for i in chosen])))
                chosen = []
            chosen.append(index)
        if chosen:
            self._portions.append((chosen, _Portion([tables[i] for i in chosen])))

    def scores(self, assigned: Codes) -> Floats:
        """nTVD (B, A) of every table under every assignment (B, S); NaN where a table has none."""
        result = np.full((len(assigned), self._width), np.nan)
        for kind in {portion.matrix.dtype for _, portion in self._portions}:
            members = assigned[:, None, :] == np.arange(self._groups - 1, dtype=assigned.dtype)[:, None]
            rows = members.reshape(-1, assigned.shape[1]).astype(kind)
            for indices, portion in self._portions:
                if portion.matrix.dtype == kind:
                    result[:, indices] = portion.scores(rows, self._groups)
        return result


class _Portion:
    """Some tables side by side. A cell is one table's stratum of utterances, a column one value in a cell."""

    def __init__(self, tables: Sequence[Table]) -> None:
        values = np.concatenate([table.counts.reshape(len(table.counts), -1) for table in tables], axis=1)
        sums = np.concatenate([table.counts.sum(axis=2) for table in tables], axis=1)
        # Counts below 2^24 are exact in single precision.
        kind = np.float32 if sums.sum(axis=0).max() < 1 << 24 else np.float64
        self.matrix: NDArray[Any] = values.astype(kind)
        self.cells: NDArray[Any] = sums.astype(kind)
        self.weights = np.concatenate([table.weights for table in tables])
        self.shapes = [table.counts.shape[1:] for table in tables]
        cells, widths = zip(*self.shapes, strict=True)
        self.cell_of_column = np.repeat(np.arange(sum(cells)), np.repeat(widths, cells))
        self.table_of_cell = np.repeat(np.arange(len(tables)), cells)
        self.cells_of_tables = _indicator(self.table_of_cell)
        self.values_of_tables = _indicator(np.repeat(np.arange(len(tables)), widths))

    def scores(self, rows: NDArray[Any], groups: int) -> Floats:
        """nTVD (B, tables). rows: (B x (G - 1), S), 1 where a unit is in the group; the last group is the rest."""
        totals = _with_last((rows @ self.cells).reshape(-1, groups - 1, self.weights.size), self.cells)
        used = (totals > 0).all(axis=1) * self.weights
        mass = used @ self.cells_of_tables
        factors = (used / np.where(mass > 0, mass, 1.0)[:, self.table_of_cell])[:, None] / np.maximum(totals, 1.0)
        shares = _with_last((rows @ self.matrix).reshape(-1, groups - 1, self.cell_of_column.size), self.matrix)
        shares *= np.take(factors, self.cell_of_column, axis=2)
        if self.weights.size > len(self.shapes):
            shares = self._over_strata(shares)
        if groups == 2:
            deviations = shares[:, 0] - shares[:, 1]  # twice each group's difference from the mean of the two
            deviations = np.abs(deviations, out=deviations)
        else:
            shares -= shares.mean(axis=1, keepdims=True)
            deviations = np.abs(shares, out=shares).sum(axis=1)
        scores = (deviations @ self.values_of_tables) * (50.0 / (groups - 1))
        return np.where(mass > 0, scores, np.nan)

    def _over_strata(self, shares: Floats) -> Floats:
        ends = np.cumsum([cells * width for cells, width in self.shapes])[:-1]
        parts = np.split(shares, ends, axis=2)
        return np.concatenate(
            [part.reshape(*part.shape[:2], *shape).sum(axis=2) for part, shape in zip(parts, self.shapes, strict=True)],
            axis=2,
        )


def _with_last(counts: NDArray[Any], units: NDArray[Any]) -> Floats:
    """Counts (B, G, K) out of those (B, G - 1, K) of all groups but the last. units: (S, K)."""
    whole = np.empty((len(counts), counts.shape[1] + 1, counts.shape[2]))
    whole[:, :-1] = counts
    rest = counts[:, 0] if counts.shape[1] == 1 else whole[:, :-1].sum(axis=1)
    np.subtract(units.sum(axis=0, dtype=np.float64), rest, out=whole[:, -1])
    return whole


def _indicator(owner: Codes) -> Floats:
    """(N, M) with 1 where owner[n] = m."""
    return np.asarray(owner[:, None] == np.arange(owner.max() + 1), dtype=np.float64)
