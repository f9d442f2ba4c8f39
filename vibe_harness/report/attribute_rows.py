"""The scores of single attributes of a leaderboard, a row each, for its exports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score
from vibe_harness.report.board import Block, Cell, Column, Row


@dataclass(frozen=True, slots=True)
class AttributeRow:
    """The score of one attribute of one model. extra: heading -> words of the columns that its metric adds."""

    name: str  # of task and attribute, and of the figure where it is no shift
    column: Column
    row: Row
    cell: Cell
    score: Score
    digits: int
    extra: Mapping[str, str]


def attribute_rows(block: Block) -> Iterator[AttributeRow]:
    """Task by task and attribute by attribute, its models in the order of the block."""
    for index, column in enumerate(block.columns):
        if column.common:
            continue  # the attributes stand in the column that it is a part of
        cells = [(row, cell) for row in block.rows if (cell := row.cells[index]) is not None and cell.result]
        for attribute in dict.fromkeys(score.attribute for _, cell in cells for score in _scores(cell, column)):
            for row, cell in cells:
                for score in _scores(cell, column):
                    if score.attribute == attribute:
                        yield _row(column, row, cell, score)


def extra_headings(rows: Sequence[AttributeRow]) -> list[str]:
    """Headings of the columns that the metrics of these rows add."""
    return list(dict.fromkeys(heading for row in rows for heading in row.extra))


def _scores(cell: Cell, column: Column) -> Iterator[Score]:
    assert cell.result is not None
    yield from (score for score in cell.result.scores if score.metric == column.metric and score.attribute is not None)


def _row(column: Column, row: Row, cell: Cell, score: Score) -> AttributeRow:
    shown = presentation_of(score.metric)
    name = f"{column.label}: {(score.attribute or '').replace('_', ' ')}"
    digits = shown.decimals_of(score)
    extra = {one.heading: one.text(score) for one in shown.columns}
    return AttributeRow(name, column, row, cell, score, digits, extra)
