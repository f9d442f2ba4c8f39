"""A leaderboard's figures as CSV, JSON and Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from vibe_harness.csv_sheets import inert_row
from vibe_harness.metrics.presentation import p_value_words
from vibe_harness.report.attribute_rows import AttributeRow, attribute_rows, extra_headings
from vibe_harness.report.board import Block, Board, Cell, Column, Row
from vibe_harness.report.html import number, range_words
from vibe_harness.report.relations import Beside, CorpusAgreement, TaskCorrelations, TauRow
from vibe_harness.stats.agreement import TAUS

NO_SINGLE_SCORE = "A mean over tasks misleads: a model that is low in one task can be high in another."
CSV_COLUMNS = (
    "source", "corpus", "dimension", "apart", "model", "simulated", "task", "variant", "card", "metric",
    "mean_over", "over", "value", "undefined", "at_least", "at_most", "interval_low", "interval_high", "null_p95", "p",
    "adjusted_p", "permutations", "reliable", "with_value", "mark",
)  # fmt: skip
ATTRIBUTE_COLUMNS = (
    "corpus", "dimension", "apart", "model", "simulated", "task", "variant", "card", "metric", "attribute", "value",
    "undefined", "at_least", "at_most", "interval_low", "interval_high", "null_p95", "p", "p_within_task",
    "permutations", "reliable",
)  # fmt: skip


def as_csv(board: Board) -> str:
    """One line a model and column, with the columns of trust."""
    headings = _trust_headings(board)
    lines = []
    for block in board.blocks:
        for row in block.rows:
            for column, cell in zip(block.columns, row.cells, strict=True):
                if cell is None:
                    continue
                low, high = cell.interval or (None, None)
                lines.append([
                    block.published or "measured", block.corpus, block.dimension, block.apart, row.model,
                    row.simulated, column.task, column.variant, column.digest, column.metric,
                    column.mean_over,
                    " ".join(column.common or cell.attributes), cell.value, cell.why, cell.at_least, cell.at_most, low,
                    high, cell.null_p95, cell.p_value, cell.adjusted_p, cell.permutations, cell.reliable,
                    cell.with_value, cell.mark, *_trust_words(cell, headings),
                ])  # fmt: skip
    return _csv([*CSV_COLUMNS, *map(_plain, headings)], lines)


def attributes_csv(board: Board) -> str:
    """One line a model and attribute, with the columns of its metric and of trust."""
    headings = _trust_headings(board)
    rows = [(block, one) for block in board.blocks for one in attribute_rows(block)]
    extra = extra_headings([one for _, one in rows])
    lines = []
    for block, one in rows:
        low, high = one.score.interval or (None, None)
        lines.append([
            block.corpus, block.dimension, block.apart, one.row.model, one.row.simulated, one.column.task,
            one.column.variant, one.column.digest, one.score.metric, one.score.attribute, one.score.value,
            one.score.undefined, one.score.at_least, one.score.at_most, low, high, one.score.null_p95,
            one.score.p_value, one.score.p_within_task, one.score.permutations, one.cell.reliable,
            *(one.extra.get(heading) for heading in extra), *_trust_words(one.cell, headings),
        ])  # fmt: skip
    return _csv([*ATTRIBUTE_COLUMNS, *map(_plain, [*extra, *headings])], lines)


def _csv(heads: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(inert_row(line) for line in lines)
    return text.getvalue()


def _trust_headings(board: Board) -> list[str]:
    """The columns of trust, which are the same in all measured blocks."""
    return next((headings for block in board.blocks if (headings := block.trust_headings)), [])


def _trust_words(cell: Cell, headings: Sequence[str]) -> list[str | None]:
    words = {column.heading: column.words for column in cell.trust}
    return [words.get(heading) for heading in headings]


def _plain(heading: str) -> str:
    """A heading as the name of a column: "kept_by_group"."""
    return heading.replace(" ", "_")


def as_json(
    board: Board,
    correlations: Sequence[TaskCorrelations],
    tau: Sequence[TauRow],
    agreement: Sequence[CorpusAgreement],
    beside: Sequence[Beside],
) -> str:
    """All that the pages show, for programs."""
    data = {
        "blocks": [_block(block) for block in board.blocks],
        "stars": board.family.words,
        "left_out": [f"{one.path.name}: {one.why}" for one in board.left_out],
        "correlations_between_tasks": [asdict(one) for one in correlations],
        "taus": list(TAUS),
        "tau": [asdict(one) for one in tau],
        "agreement_of_corpora": [asdict(one) for one in agreement],
        "beside_choice": [
            {
                "dimension": table.dimension,
                "source": table.source,
                "headings": table.headings,
                "models": [
                    {"model": model, "cells": [cell and _cell(cell) for cell in cells]} for model, cells in table.rows
                ],
                "ranks": {free: {choice: asdict(one) for choice, one in found} for free, found in table.ranks},
            }
            for table in beside
        ],
        "no_single_score": NO_SINGLE_SCORE,
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"


def _block(block: Block) -> dict[str, Any]:
    return {
        "corpus": block.corpus,
        "corpus_synthetic": block.synthetic,
        "dimension": block.dimension,
        "published": block.published,
        "settings": dict(block.settings),
        "apart": block.apart,
        "columns": [{**asdict(column), "mean_over": column.mean_over} for column in block.columns],
        "models": [
            {
                "model": row.model,
                "simulated": row.simulated,
                "cells": [cell and _cell(cell) for cell in row.cells],
            }
            for row in block.rows
        ],
        "attributes": [_attribute(one) for one in attribute_rows(block)],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    """What is known of a cell: fields without a value are left out, but for the value itself."""
    known = {name: getattr(cell, name) for name in Cell.__dataclass_fields__ if name not in ("result", "trust")}
    found = {name: value for name, value in known.items() if name == "value" or value not in (None, "", ())}
    if cell.trust:
        found["trust"] = [column._asdict() for column in cell.trust]
    return found


def _attribute(one: AttributeRow) -> dict[str, Any]:
    """The score of an attribute, without what is not known of it."""
    named = ("value", "undefined", "at_least", "at_most", "interval", "null_p95", "p_value", "p_within_task")
    figures = {name: getattr(one.score, name) for name in named}
    return {
        "model": one.row.model, "task": one.column.task, "variant": one.column.variant, "metric": one.score.metric,
        "attribute": one.score.attribute, **{name: value for name, value in figures.items() if value is not None},
        **one.extra,
    }  # fmt: skip


def as_markdown(board: Board) -> str:
    """Tables for each block: scores, the highest in bold and the lowest in italics; trust; attributes."""
    parts = []
    for block in board.blocks:
        heads = ["model", *(column.heading for column in block.columns)]
        rows = [[_md(_named(row)), *map(_md_cell, row.cells, block.columns)] for row in block.rows]
        note = f"Published, not measured here: {block.published}." if block.published else board.family.words
        parts.append(f"### By {_md(block.name)}\n\n{_md_table(heads, rows, 1)}\n{_md(note)}\n")
        if not block.published:
            parts.append(f"Trust, by {_md(block.name)}\n\n{_md_trust(block)}")
            parts.append(f"Attributes, by {_md(block.name)}\n\n{_md_attributes(block)}")
    ending = (
        "Bold: highest; italic: lowest, where intervals lie apart. In brackets the 95 % interval, then what chance "
        "reaches once in twenty. "
    )
    return "\n".join(parts) + f"\n{ending}{NO_SINGLE_SCORE}\n"


def _md_table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> str:
    """A table whose first `words` columns are set to the left, the others to the right."""
    rule = ["---"] * words + ["---:"] * (len(heads) - words)
    return "".join(f"| {' | '.join(line)} |\n" for line in [[_md(head) for head in heads], rule, *rows])


def _md_trust(block: Block) -> str:
    headings = ["model", "task", *block.trust_headings]
    rows = []
    for row in block.rows:
        for index in block.task_columns():
            cell = row.cells[index]
            if cell is not None and cell.trust:
                told = (f"**{_md(one.words)}**" if one.ok is False else _md(one.words) for one in cell.trust)
                rows.append([_md(_named(row)), _md(block.columns[index].name), *told])
    return _md_table(headings, rows, len(headings)) + "\nBold: speaks against the score.\n"


def _md_attributes(block: Block) -> str:
    found = list(attribute_rows(block))
    extra = extra_headings(found)
    heads = ["attribute", "model", "score", "95 % interval", "chance", "p in the task", *extra]
    rows = [
        [
            _md(one.name), _md(_named(one.row)),
            "undefined" if one.score.value is None else number(one.score.value, one.digits),
            range_words(*one.score.interval, one.digits) if one.score.interval else "",
            number(one.score.null_p95, one.digits),
            "" if one.score.p_within_task is None else p_value_words(one.score.p_within_task),
            *(_md(one.extra.get(heading, "")) for heading in extra),
        ]
        for one in found
    ]  # fmt: skip
    return _md_table(heads, rows, 2)


def _named(row: Row) -> str:
    return row.model + (" (simulated)" if row.simulated else "")


def _md_cell(cell: Cell | None, column: Column) -> str:
    if cell is None:
        return ""
    figure = _md(_figure(cell, column))
    wrap = {"highest": "**", "lowest": "_"}.get(cell.mark, "")
    told = f" [{range_words(*cell.interval, column.digits)}]" if cell.interval else ""
    if cell.null_p95 is not None:
        told += f", chance {number(cell.null_p95, column.digits)}"
    return f"{wrap}{figure}{wrap}{_md(cell.stars)}{told}{'' if cell.reliable else ' (not reliable)'}"


def _figure(cell: Cell, column: Column) -> str:
    return "undefined" if cell.value is None else number(cell.value, column.digits)


def _md(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|" else letter for letter in " ".join(text.split()))
