"""The bracket of a shift between groups in which every speaker has clips: emotions, intensities.

Whoever is sampled is the speaker, with all of his groups; so halves are halves of the speakers, and errors come from
leaving out a speaker whole. Otherwise as in `stats.bracket`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.stats.assignments import Codes, Design
from vibe_harness.stats.bracket import (
    SPLITS,
    Statistic,
    TaskBracket,
    cross_product,
    differences_from_mean,
    group_shares,
    jackknife_error,
    task_bracket,
)
from vibe_harness.stats.ntvd import Floats, shift
from vibe_harness.stats.rng import random_words
from vibe_harness.stats.tables import Table


def within_bracket(
    tables: Sequence[ArrayLike],
    groups: ArrayLike,
    owners: ArrayLike,
    *,
    splits: int = SPLITS,
    seed: int = 0,
    level: float = 0.95,
) -> TaskBracket:
    """Brackets of one task. tables: (U, V) or (U, H, V) counts of unit u, the clips of one speaker in one group.

    groups, owners: (U,) codes of the unit's group and of its speaker. Raises UserError as `bracket` does.
    """
    design, owner = Design.of(groups), Design.of(owners).groups
    speakers = int(owner.max()) + 1
    checked = [Table.of(table, design.groups.size) for table in tables]
    counts = [_by_speaker(table, design, owner) for table in checked]
    raw = [_raw(one, table) for one, table in zip(counts, checked, strict=True)]
    defined = [index for index, statistic in enumerate(raw) if np.isfinite(statistic.value)]
    one_group = Design.of(np.zeros(speakers, dtype=np.int64))
    if speakers < 2:
        low: dict[int, Statistic] = {}
    else:
        low = {index: _cross_fitted(counts[index], checked[index], splits, seed) for index in defined}
    reasons = [table.why_undefined(design.group_count) for table in checked]
    return task_bracket(raw, low, reasons, one_group, level)


def _by_speaker(table: Table, design: Design, owner: Codes) -> Floats:
    """Counts (S, G, H, V) of each speaker in each group."""
    counts = np.zeros((int(owner.max()) + 1, design.group_count, *table.counts.shape[1:]))
    np.add.at(counts, (owner, design.groups), table.counts)
    return counts


def _raw(counts: Floats, table: Table) -> Statistic:
    if table.degenerate or counts.shape[1] < 2:
        return Statistic(np.nan, np.full(len(counts), np.nan))
    whole = counts.sum(axis=0)
    shares, left_out = group_shares(whole, table), group_shares(whole - counts, table)
    errors = jackknife_error(differences_from_mean(left_out), np.zeros(len(counts), dtype=np.int64))
    noise = float(errors.sum() * 50.0 / (counts.shape[1] - 1))
    free = (counts.shape[1] - 1) * (int((table.counts.sum(axis=(0, 1)) > 0).sum()) - 1)
    return Statistic(float(shift(shares)), shift(left_out), noise, noise / float(np.sqrt(free)))


def _cross_fitted(counts: Floats, table: Table, splits: int, seed: int) -> Statistic:
    """As `bracket.cross_fitted`, the halves being halves of the speakers."""
    words = random_words(seed)
    scores, left_out = np.empty(splits), np.empty((splits, len(counts)))
    for split in range(splits):
        order = words(len(counts)).argsort(kind="stable")
        half = np.empty(len(counts), dtype=np.int64)
        half[order] = np.arange(len(counts)) % 2
        both = np.stack([counts[half == 0].sum(axis=0), counts[half == 1].sum(axis=0)])
        differences = differences_from_mean(group_shares(both, table))
        scores[split] = cross_product(differences[0], differences[1])
        left_out[split] = cross_product(
            differences_from_mean(group_shares(both[half] - counts, table)), differences[1 - half]
        )
    defined = np.isfinite(scores)
    if not defined.any():
        return Statistic(np.nan, left_out[0])
    steady = defined & np.isfinite(left_out).all(axis=1)
    usable = steady if steady.any() else defined
    return Statistic(float(scores[usable].mean()), left_out[usable].mean(axis=0))
