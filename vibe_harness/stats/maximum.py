"""Which values differ between the groups: tests of single values, adjusted over all values and attributes of a task.

Each value of each group has a statistic of its own, its difference from the mean over groups divided by its standard
error. In every permutation the largest of them all is kept, so that what is named has been tested together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import MANY_GROUPS, Codes, Design
from vibe_harness.stats.draws import speakers_alike
from vibe_harness.stats.group_sums import group_sums
from vibe_harness.stats.ntvd import Floats
from vibe_harness.stats.residuals import Residuals, residuals_of
from vibe_harness.stats.stepdown import StepDown
from vibe_harness.stats.tables import Table

ELEMENTS = 1 << 20
"""Statistics held at a time."""
NO_SPREAD = 1e-20
"""Variance of a share under which no speaker differs from another."""


def value_tests(
    tables: Sequence[ArrayLike],
    groups: ArrayLike,
    strata: ArrayLike | None = None,
    *,
    permutations: int = 10_000,
    seed: int = 0,
) -> tuple[Floats | None, ...]:
    """Adjusted p (G, V) of each value in each group, for every attribute of a task; None for one without a score, and
    where nothing can be permuted.

    tables: (S, V) or (S, H, V) counts by speaker, as for `permutation_test`; groups, strata: (S,). The family is all
    values in all groups of all attributes, adjusted by the step-down maxT procedure over the draws: the chance that one
    or more values that do not differ have p <= alpha is at most alpha. An attribute's own adjusted p is the smallest of
    its array.

    The statistic is |P_g(v) - Pbar(v)| over its standard error. Where all speakers have about as many answers whole
    speakers are exchanged, and each group's variance is that of its own speakers (Janssen 1997); otherwise residuals
    are permuted and flipped (`stats.residuals`), and the larger p is taken.

    Raises UserError as `permutation_test` does.
    """
    if permutations < 1:
        raise UserError(f"permutations: at least 1, not {permutations}")
    design = Design.of(groups, strata)
    checked = [Table.of(table, design.groups.size) for table in tables]
    defined = [index for index, table in enumerate(checked) if _has_score(table, design)]
    if not defined or design.assignments() == 1:
        return (None,) * len(checked)
    usable = [checked[index] for index in defined]
    exchange = all(map(speakers_alike, usable))
    kind = _Exchanged if exchange else _Permuted
    found = kind(usable, design).tested(permutations, seed)
    results: list[Floats | None] = [None] * len(checked)
    for index, own in zip(defined, found, strict=True):
        results[index] = own
    return tuple(results)


def _has_score(table: Table, design: Design) -> bool:
    if design.group_count < 2 or table.degenerate:
        return False
    sums = np.zeros((design.group_count, len(table.weights)), dtype=np.int64)
    np.add.at(sums, design.groups, table.counts.sum(axis=2))
    return bool((sums > 0).all(axis=0).any())


class _Exchanged:
    """Whole speakers are exchanged. Two groups have mirrored differences: those of the first serve."""

    def __init__(self, tables: Sequence[Table], design: Design) -> None:
        self.design = design
        self.widths = [table.counts.shape[2] for table in tables]
        values = np.concatenate([_departures(table, design) for table in tables], axis=1)
        self.rows = np.ascontiguousarray(np.concatenate([values, values**2], axis=1).T)
        self.by_unit = np.ascontiguousarray(self.rows.T)
        self.pooled = np.maximum((values**2).mean(axis=0), NO_SPREAD)
        self.sizes = np.bincount(design.groups)[:, None].astype(np.float64)
        ends = np.cumsum(self.widths).tolist()
        self.columns = [slice(end - width, end) for end, width in zip(ends, self.widths, strict=True)]

    def tested(self, permutations: int, seed: int) -> list[Floats]:
        count = self.design.group_count
        procedure = StepDown(self._statistics(self.design.groups[None])[:, 0])
        size = max(ELEMENTS // (len(self.rows) * count), 1)
        for block in self.design.blocks(permutations, seed):
            for first in range(0, len(block), size):
                procedure.add(self._statistics(block[first : first + size]))
        found = procedure.p_values(self.design.assignments() <= permutations).reshape(-1, sum(self.widths))
        found = np.repeat(found, 2, axis=0) if count == 2 else found
        return np.split(found, np.cumsum(self.widths)[:-1], axis=1)

    def _statistics(self, assigned: Codes) -> Floats:
        """(G x K, B), of the first group alone where there are two."""
        groups = self.design.group_count
        values, squares = np.split(self._sums(assigned), 2)
        shares = values / self.sizes
        variance = squares / self.sizes - shares**2
        variance = np.maximum(variance, 0.0, out=variance) / np.maximum(self.sizes - 1, 1)
        for columns in self.columns:
            # At least what the value's spread over all speakers is at the group's noise over all values.
            noise = variance[columns].sum(axis=0) / self.pooled[columns].sum()
            np.maximum(variance[columns], self.pooled[columns, None, None] * noise, out=variance[columns])
        differences = shares - shares.mean(axis=1, keepdims=True)
        errors = variance * (1 - 2 / groups) + variance.sum(axis=1, keepdims=True) / groups**2
        shown = 1 if groups == 2 else groups
        found = _ratio(differences[:, :shown], errors[:, :shown])
        return np.ascontiguousarray(found.transpose(1, 0, 2)).reshape(-1, len(assigned))

    def _sums(self, assigned: Codes) -> Floats:
        """Sums (2 K, G, B) of values and squares in each group."""
        groups = self.design.group_count
        if groups > MANY_GROUPS:
            return group_sums(self.by_unit, assigned)
        units = np.ascontiguousarray(assigned.T)
        members = np.stack([units == group for group in range(groups)], axis=1).astype(np.float64)
        return np.asarray((self.rows @ members.reshape(len(units), -1)).reshape(len(self.rows), groups, -1))


def _departures(table: Table, design: Design) -> Floats:
    """How each speaker departs from the pooled shares of its stratum, (S, V), one answer's weight being one over the
    mean number."""
    counts = table.counts.sum(axis=1).astype(np.float64)
    totals = counts.sum(axis=1)
    pooled, sums = np.zeros((int(design.strata.max()) + 1, counts.shape[1])), np.bincount(design.strata, totals)
    np.add.at(pooled, design.strata, counts)
    shares = pooled / np.maximum(sums, 1)[:, None]
    return np.asarray((counts - totals[:, None] * shares[design.strata]) / totals.mean())


class _Permuted:
    """Residuals are permuted, and their signs flipped, which keeps to each place its number of answers."""

    def __init__(self, tables: Sequence[Table], design: Design) -> None:
        self.design = design
        self.residuals: list[Residuals] = [residuals_of(table, design) for table in tables]
        self.variance = [one.value_scale() ** 2 for one in self.residuals]

    def tested(self, permutations: int, seed: int) -> list[Floats]:
        own = np.arange(self.design.groups.size)[None]
        observed = self._statistics([one.permuted_values(own) for one in self.residuals])[:, 0]
        permuted, flipped = StepDown(observed), StepDown(observed)
        size = max(ELEMENTS // observed.size, 1)
        for places, signs in self.design.shuffles(permutations, seed):
            for first in range(0, len(places), size):
                rows = slice(first, first + size)
                permuted.add(self._statistics([one.permuted_values(places[rows]) for one in self.residuals]))
                flipped.add(self._statistics([one.flipped_values(signs[rows]) for one in self.residuals]))
        found = np.maximum(permuted.p_values(complete=False), flipped.p_values(complete=False))
        ends = np.cumsum([one.size for one in self.variance])[:-1]
        return [part.reshape(one.shape) for part, one in zip(np.split(found, ends), self.variance, strict=True)]

    def _statistics(self, differences: Sequence[Floats]) -> Floats:
        """(M, B) of the differences (G, B, V) of every attribute."""
        found = [
            _ratio(own, variance[:, None]).transpose(0, 2, 1).reshape(variance.size, -1)
            for own, variance in zip(differences, self.variance, strict=True)
        ]
        return np.concatenate(found)


def _ratio(differences: Floats, variance: Floats) -> Floats:
    """|difference| over its error; infinite where nothing but the groups differs, 0 where nothing differs at all."""
    size = np.abs(differences)
    some = variance > NO_SPREAD
    nothing = np.where(size > np.sqrt(NO_SPREAD), np.inf, 0.0)
    return np.divide(size, np.sqrt(np.where(some, variance, 1.0)), out=nothing, where=some)
