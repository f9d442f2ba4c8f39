"""nTVD of many tables under many assignments of speakers to groups, by matrix products.

The work of the permutation tests. Group counts are whole numbers, which a product of zeros and ones gives exactly in
whatever order a machine adds them; only the last steps round, by far less than the tests' tolerance. Assignments run
along the last axis everywhere, so that each step works on long rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.assignments import MANY_GROUPS, Codes
from vibe_harness.stats.group_sums import group_sums
from vibe_harness.stats.ntvd import Floats
from vibe_harness.stats.packing import BITS, Packing
from vibe_harness.stats.tables import Table

PAIR_UNITS = 500
"""Most units for which two groups take a product in double precision: with more it costs more than it saves."""

PACK_UNITS = 200
"""Fewest units for which the counts of several values share one number: with fewer it saves less than it costs."""

ELEMENTS = 1 << 21
"""Group counts held at a time."""

WHOLE = 1 << 22
"""What the squared residuals of a table are scaled to sum to: whole numbers that single precision adds exactly."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Of every assignment and table, (B, A) each. score: nTVD, NaN where a table has none. noise: the standard error
    that the counts give it, but for a constant. spread: how unlike the groups' noise is, 0 where it is alike."""

    score: Floats
    noise: Floats
    spread: Floats


class BatchedNtvd:
    """Tables (S, V) over the same units, in portions of columns that are small enough for `block` assignments."""

    def __init__(self, tables: Sequence[Table], groups: int, block: int) -> None:
        self._groups = groups
        self._width = len(tables)
        self._portions: list[tuple[list[int], _Portion | _PairPortion]] = []
        self._sorted: list[tuple[list[int], _SortedPortion]] = []
        usable = [] if groups < 2 else [index for index, table in enumerate(tables) if not table.degenerate]
        if groups > MANY_GROUPS:
            cut = _cut(tables, usable, max(ELEMENTS // (block * groups), 1))
            self._sorted = [(chosen, _SortedPortion([tables[index] for index in chosen])) for chosen in cut]
            return
        pairs = [index for index in usable if groups == 2 and _is_pair(tables[index])]
        for indices, kind in ((pairs, _PairPortion), (sorted(set(usable) - set(pairs)), _Portion)):
            for chosen in _cut(tables, indices, max(ELEMENTS // (block * groups), 1)):
                self._portions.append((chosen, kind([tables[index] for index in chosen])))

    def scores(self, assigned: Codes, *, noise: bool = True) -> Scores:
        """Scores under every assignment (B, S). Without `noise`, as in the published tests, noise is 1 and spread 0."""
        result = np.full((self._width, len(assigned)), np.nan)
        errors, spread = np.ones(result.shape), np.zeros(result.shape)
        for indices, sorted_portion in self._sorted:
            result[indices], own_errors, own_spread = sorted_portion.scores(assigned)
            if noise:
                errors[indices], spread[indices] = own_errors, own_spread
        units = np.ascontiguousarray(assigned.T)
        for kind in {portion.matrix.dtype for _, portion in self._portions}:
            members = np.stack([(units == group).astype(kind) for group in range(self._groups - 1)], axis=1)
            for indices, portion in self._portions:
                if portion.matrix.dtype == kind:
                    result[indices], totals = portion.scores(members)
                    if noise:
                        errors[indices], spread[indices] = portion.noise.of(members, totals)
        return Scores(result.T, errors.T, spread.T)


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
    """Whether `_PairPortion` takes it: few enough counts for whole numbers of double precision, and few enough units
    for a product of double precision to cost less than it saves."""
    return len(table.counts) <= PAIR_UNITS and float(table.counts.sum()) ** 2 < 2.0**52


class _Noise:
    """The standard errors of a portion's tables, from the squared residuals of the units in each group.

    With P_g = sum_i c_i / N_g over the members i of a group, and c_i - n_i p as the residual of a unit from the pooled
    shares p, the variance of P_g summed over values is estimated by sum_i |c_i - n_i p|^2 / N_g^2. It is linear in the
    members: one product for each table. Sums are kept as whole numbers, which do not hang on the order of adding.
    """

    def __init__(self, tables: Sequence[Table], kind: type) -> None:
        counts = [table.counts.sum(axis=1) for table in tables]
        totals = np.stack([one.sum(axis=1) for one in counts])
        shares = [one.sum(axis=0) / one.sum() for one in counts]
        squared = np.stack([
            ((one - own[:, None] * share) ** 2).sum(axis=1)
            for one, own, share in zip(counts, totals, shares, strict=True)
        ])  # fmt: skip
        self.unit = squared.sum(axis=1) / WHOLE
        relative = squared / np.maximum(totals, 1)
        rows = np.concatenate([_whole(squared), _whole(relative)])
        self.rows: NDArray[Any] = rows.astype(kind)

    def of(self, members: NDArray[Any], totals: NDArray[Any]) -> tuple[Floats, Floats]:
        """Noise and spread (tables, B). members: (S, G - 1, B); totals: (tables, G, B) counts of each group."""
        units, groups, draws = members.shape
        sums = (self.rows @ members.reshape(units, -1)).astype(np.float64).reshape(-1, groups, draws)
        rest = self.rows.sum(axis=1, dtype=np.float64)[:, None] - sums.sum(axis=1)
        sizes = members[:, :, 0].sum(axis=0, dtype=np.float64)
        sizes = np.append(sizes, units - sizes.sum())
        return self.from_sums(np.concatenate([sums, rest[:, None]], axis=1), totals, sizes)

    def from_sums(self, sums: Floats, totals: Floats, sizes: Floats) -> tuple[Floats, Floats]:
        """The same from the sums (2 x tables, G, B) of the rows in each group. sizes: (G,) units of each group."""
        squared, relative = np.split(sums, 2)
        variance = (squared / np.maximum(totals, 1.0) ** 2).sum(axis=1)
        sizes = sizes[:, None]
        means, mean = relative / sizes, relative.sum(axis=1) / sizes.sum()
        unlike = np.log(np.maximum(mean, 1e-9)[:, None] / np.maximum(means, 1e-9 * np.maximum(mean, 1e-9)[:, None]))
        return np.sqrt(variance * self.unit[:, None]), (sizes * unlike).sum(axis=1)


def _whole(rows: Floats) -> Floats:
    """Rows as whole numbers that sum to about WHOLE each."""
    return np.asarray(np.rint(rows * (WHOLE / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300))))


class _PairPortion:
    """Tables of two groups: |c / n - (t - c) / (N - n)| = |c N - t n| / (n (N - n)) for each value.

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
        self.noise = _Noise(tables, np.float64)

    def scores(self, members: NDArray[Any]) -> tuple[Floats, Floats]:
        """As `_Portion.scores`, for two groups."""
        first = self.sizes @ members[:, 0]
        second = self.totals - first
        differences = self.matrix @ members[:, 0]
        np.abs(differences, out=differences)
        total = np.stack([differences[columns].sum(axis=0) for columns in self.columns])
        product = first * second
        scores = np.divide(50.0 * total, product, out=np.full(total.shape, np.nan), where=product > 0)
        return scores, np.stack([first, second], axis=1)


class _Portion:
    """Some tables side by side. A row of the matrix is one value of a table."""

    def __init__(self, tables: Sequence[Table]) -> None:
        values = np.concatenate([table.counts[:, 0] for table in tables], axis=1)
        kind = np.float32 if max(table.counts.sum(axis=(0, 2)).max() for table in tables) < 1 << BITS else np.float64
        self.packing = Packing.of(values) if len(values) >= PACK_UNITS and kind == np.float32 else None
        rows = values if self.packing is None else self.packing.packed(values)
        self.matrix: NDArray[Any] = np.ascontiguousarray(rows.T, dtype=kind)
        self.columns = _slices([table.counts.shape[2] for table in tables])
        self.totals = [table.counts[:, 0].sum(axis=0).astype(kind) for table in tables]
        self.noise = _Noise(tables, kind)

    def scores(self, members: NDArray[Any]) -> tuple[Floats, Floats]:
        """nTVD (tables, B) and the groups' counts (tables, G, B). members: (S, G - 1, B), 1 where a unit is in the
        group; the last is the rest."""
        units, groups, draws = members.shape
        counts = self.matrix @ members.reshape(units, -1)
        if self.packing is not None:
            counts = self.packing.counts(counts)
        scores = np.full((len(self.columns), draws), np.nan)
        sizes = np.empty((len(self.columns), groups + 1, draws))
        for index, columns in enumerate(self.columns):
            own = counts[columns].reshape(-1, groups, draws)
            rest = self.totals[index][:, None] - own.sum(axis=1)
            totals = np.concatenate([own.sum(axis=0), rest.sum(axis=0)[None]]).astype(np.float64)
            used = (totals > 0).all(axis=0)
            scores[index] = np.where(used, _shift(own, rest, used / np.maximum(totals, 1.0)), np.nan)
            sizes[index] = totals
        return scores, sizes


class _SortedPortion:
    """Some tables of many groups, whose counts are sums of units sorted by group."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.columns = _slices([table.counts.shape[2] for table in tables])
        self.noise = _Noise(tables, np.float64)
        counts = np.concatenate([table.counts[:, 0] for table in tables], axis=1)
        self.rows: Floats = np.concatenate([counts, self.noise.rows.T], axis=1)

    def scores(self, assigned: Codes) -> tuple[Floats, Floats, Floats]:
        """nTVD, noise and spread (tables, B) under assignments (B, S)."""
        sums = group_sums(self.rows, assigned)
        counts = [sums[columns] for columns in self.columns]
        totals = np.stack([own.sum(axis=0) for own in counts])
        used = np.asarray((totals > 0).all(axis=1))
        factors = used[:, None] / np.maximum(totals, 1.0)
        scores = [_shift(own[:, :-1], own[:, -1], factor) for own, factor in zip(counts, factors, strict=True)]
        noise, spread = self.noise.from_sums(
            sums[self.columns[-1].stop :], totals, np.bincount(assigned[0]).astype(np.float64)
        )
        return np.where(used, np.stack(scores), np.nan), noise, spread


def _shift(counts: NDArray[Any], rest: NDArray[Any], factors: Floats) -> Floats:
    """nTVD (B,) of one table. counts: (V, G - 1, B) of all groups but the last; rest: (V, B) of the last.

    factors: (G, B), what a count adds to its group's share.
    """
    shares, last = counts * factors[None, :-1], rest * factors[-1]
    groups = len(factors)
    mean = (shares.sum(axis=1) + last) / groups
    shares -= mean[:, None]
    last -= mean
    total = np.abs(shares, out=shares).sum(axis=(0, 1)) + np.abs(last, out=last).sum(axis=0)
    return np.asarray(total * (50.0 / (groups - 1)))


def _slices(widths: Sequence[int]) -> list[slice]:
    """Where each of several things of these widths stands that stand side by side."""
    ends = np.cumsum(widths).tolist()
    return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]
