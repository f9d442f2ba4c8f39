"""What a leaderboard says beyond its cells: between tasks, over tau, between corpora, beside choice benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from vibe_harness.report.board import Block, Cell, Column
from vibe_harness.stats.agreement import TAUS, Correlation, rank_agreement, task_correlations

REFERENCE = 10  # the tau that the others are held against (VIBE, version 2, section on the threshold)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCorrelations:
    """Pearson correlations over models between the tasks of a block: (T, T)."""

    block: str
    labels: tuple[str, ...]
    values: tuple[tuple[Correlation, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TauRow:
    """One task at every tau: mean score over the models, and the agreement of their ranks with those at REFERENCE."""

    block: str
    label: str
    models: int
    means: tuple[float | None, ...]
    agreement: tuple[Correlation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusAgreement:
    """Two corpora of one dimension: do they rank the models alike? One correlation for each task that both have."""

    dimension: str
    first: str
    second: str
    tasks: tuple[tuple[str, Correlation], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Open-ended tasks beside choice benchmarks: one row a model, one column a figure."""

    dimension: str
    headings: tuple[tuple[str, str], ...]  # kind of task, and what the figure is
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]
    digits: tuple[int, ...]  # decimals of each figure
    source: str | None = None  # of published figures

    @property
    def ranks(self) -> list[tuple[str, list[tuple[str, Correlation]]]]:
        """Open-ended column -> each choice column, with Spearman's correlation over the models that have both. Ranks
        alone: where the two come from different corpora, sizes do not compare."""
        values = [[cell.value if cell else None for cell in cells] for _, cells in self.rows]
        scores = np.array(values, dtype=np.float64).T
        columns = [(kind == "choice", label, own) for (kind, label), own in zip(self.headings, scores, strict=True)]
        choices = [(label, own) for choice, label, own in columns if choice]
        return [
            (label, [(other, rank_agreement(own, theirs)) for other, theirs in choices])
            for choice, label, own in columns
            if not choice
        ]


def task_relations(block: Block) -> TaskCorrelations | None:
    """None where the block has fewer than two tasks or three models."""
    indices = block.main_columns()
    if len(indices) < 2 or len(block.rows) < 3:
        return None
    values = task_correlations(np.array([block.values(index) for index in indices]).T)
    return TaskCorrelations(
        block=block.name,
        labels=tuple(block.columns[index].label for index in indices),
        values=tuple(map(tuple, values)),
    )


def tau_rows(block: Block) -> list[TauRow]:
    """A row for each nTVD column whose scores say what other tau would give."""
    rows = []
    for index, column in enumerate(block.columns):
        if not column.is_shift or column.common:
            continue
        cells = [row.cells[index] for row in block.rows]
        known = [scores for cell in cells if (scores := _by_tau(cell, column.metric))]
        if not known:
            continue
        table = np.array([[scores.get(str(tau)) for scores in known] for tau in TAUS], dtype=np.float64)
        base = table[TAUS.index(REFERENCE)]
        rows.append(
            TauRow(
                block=block.name,
                label=column.label,
                models=len(known),
                means=tuple(_mean(line) for line in table),
                agreement=tuple(rank_agreement(line, base) for line in table),
            )
        )
    return rows


def _by_tau(cell: Cell | None, metric: str) -> dict[str, float | None] | None:
    if cell is None or cell.result is None:
        return None
    found = next(
        (s.detail.get("by_tau") for s in cell.result.scores if s.metric == metric and s.attribute is None), None
    )
    return found if isinstance(found, dict) else None


def _mean(line: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
    values = [float(value) for value in line if np.isfinite(value)]
    return fmean(values) if values else None


def corpus_agreement(blocks: Sequence[Block]) -> list[CorpusAgreement]:
    """For each two measured corpora of one dimension that share a task card: Spearman over the models of both."""
    found = []
    for number, first in enumerate(blocks):
        for second in blocks[number + 1 :]:
            if first.dimension != second.dimension or first.corpus == second.corpus:
                continue
            if first.published or second.published or _elsewhere(first) != _elsewhere(second):
                continue
            tasks = [
                (first.columns[i].label, _ranked(first, i, second, j))
                for i in first.main_columns()
                for j in second.main_columns()
                if _same(first.columns[i], second.columns[j])
            ]
            if tasks:
                found.append(
                    CorpusAgreement(dimension=first.dimension, first=first.name, second=second.name, tasks=tuple(tasks))
                )
    return found


def _elsewhere(block: Block) -> dict[str, str]:
    """Settings that two corpora can share."""
    own = ("clips", "permuted within", "evened out over")
    return {name: value for name, value in block.settings.items() if name not in own}


def _same(first: Column, second: Column) -> bool:
    return (first.key, first.common, first.missing) == (second.key, second.common, second.missing)


def _ranked(first: Block, i: int, second: Block, j: int) -> Correlation:
    there = dict(zip([row.key for row in second.rows], second.values(j), strict=True))
    pairs = [(x, there[row.key]) for row, x in zip(first.rows, first.values(i), strict=True) if row.key in there]
    return rank_agreement([x for x, _ in pairs], [y for _, y in pairs])


def beside_choice(blocks: Sequence[Block]) -> list[Beside]:
    """For each dimension that has both open-ended and choice columns: their figures side by side."""
    found = []
    for dimension in sorted({block.dimension for block in blocks if not block.published}):
        columns = [
            (block, index, column)
            for block in blocks
            if block.dimension == dimension and not block.published
            for index, column in enumerate(block.columns)
            if column.compared
        ]
        columns.sort(key=lambda item: item[2].kind == "choice")
        if len({column.kind == "choice" for *_, column in columns}) < 2:
            continue
        names = {row.key: row.model for block, *_ in columns for row in block.rows}
        cells = [{row.key: row.cells[index] for row in block.rows} for block, index, _ in columns]
        rows = [(name, tuple(by.get(key) for by in cells)) for key, name in names.items()]
        found.append(
            Beside(
                dimension=dimension,
                headings=tuple(
                    (column.kind.replace("_", "-"), f"{column.label} on {block.place}") for block, _, column in columns
                ),
                rows=tuple(sorted(rows, key=lambda row: row[0].casefold())),
                digits=tuple(column.digits for *_, column in columns),
            )
        )
    return found
