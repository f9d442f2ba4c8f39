"""A leaderboard's figures as CSV, JSON, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from vibe_harness.csv_sheets import inert_row
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


def as_csv(board: Board) -> str:
    """One line a model and column."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for block in board.blocks:
        for row in block.rows:
            for column, cell in zip(block.columns, row.cells, strict=True):
                if cell is None:
                    continue
                low, high = cell.interval or (None, None)
                writer.writerow(inert_row([
                    block.published or "measured", block.corpus, block.dimension, block.apart, row.model,
                    row.simulated, column.task, column.variant, column.digest, column.metric,
                    column.mean_over,
                    " ".join(column.common or cell.attributes), cell.value, cell.why, cell.at_least, cell.at_most, low,
                    high, cell.null_p95, cell.p_value, cell.adjusted_p, cell.permutations, cell.reliable,
                    cell.with_value, cell.mark,
                ]))  # fmt: skip
    return text.getvalue()


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
    }


def _cell(cell: Cell) -> dict[str, Any]:
    """What is known of a cell: fields without a value are left out, but for the value itself."""
    known = {name: getattr(cell, name) for name in Cell.__dataclass_fields__ if name != "result"}
    return {name: value for name, value in known.items() if name == "value" or value not in (None, "", ())}


def as_markdown(board: Board) -> str:
    """A table for each block; the highest in bold, the lowest in italics."""
    parts = []
    for block in board.blocks:
        heads = ["model", *(column.heading for column in block.columns)]
        lines = [_md_row(heads), _md_row(["---", *["---:"] * len(block.columns)])]
        lines += [_md_row([_md(_named(row)), *map(_md_cell, row.cells, block.columns)]) for row in block.rows]
        note = f"Published, not measured here: {block.published}." if block.published else board.family.words
        parts.append(f"### By {_md(block.name)}\n\n" + "\n".join(lines) + f"\n\n{_md(note)}\n")
    ending = "Bold: highest; italic: lowest. In brackets the 95 % interval. "
    return "\n".join(parts) + f"\n{ending}{NO_SINGLE_SCORE}\n"


def _named(row: Row) -> str:
    return row.model + (" (simulated)" if row.simulated else "")


def _md_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _md_cell(cell: Cell | None, column: Column) -> str:
    if cell is None:
        return ""
    figure = _md(_figure(cell, column))
    wrap = {"highest": "**", "lowest": "_"}.get(cell.mark, "")
    low_high = f" [{range_words(*cell.interval, column.digits)}]" if cell.interval else ""
    return f"{wrap}{figure}{wrap}{_md(cell.stars)}{low_high}{'' if cell.reliable else ' (not reliable)'}"


def _figure(cell: Cell, column: Column) -> str:
    return "undefined" if cell.value is None else number(cell.value, column.digits)


def _md(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|" else letter for letter in " ".join(text.split()))


LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def as_latex(board: Board) -> str:
    """A tabular (booktabs) for each block; the highest in bold, the lowest underlined."""
    parts = ["% needs \\usepackage{booktabs}"]
    for block in board.blocks:
        heads = " & ".join(["model", *(_tex(column.heading) for column in block.columns)])
        rows = [" & ".join([_tex(_named(row)), *map(_tex_cell, row.cells, block.columns)]) for row in block.rows]
        note = f"published: {block.published}" if block.published else board.family.words
        parts.append(
            f"\n% by {_tex(block.name)}; bold: highest, underlined: lowest; {_tex(note)}\n"
            f"\\begin{{tabular}}{{l{'r' * len(block.columns)}}}\n\\toprule\n{heads} \\\\\n\\midrule\n"
            + "".join(f"{row} \\\\\n" for row in rows)
            + "\\bottomrule\n\\end{tabular}"
        )
    return "\n".join(parts) + f"\n% {NO_SINGLE_SCORE}\n"


def _tex_cell(cell: Cell | None, column: Column) -> str:
    if cell is None:
        return "--"
    figure = _figure(cell, column)
    wrapped = {"highest": rf"\textbf{{{figure}}}", "lowest": rf"\underline{{{figure}}}"}.get(cell.mark, figure)
    return wrapped + (f"$^{{{cell.stars}}}$" if cell.stars else "") + ("" if cell.reliable else r"$^\dagger$")


def _tex(text: str) -> str:
    """Text that LaTeX sets as it is, on one line."""
    return "".join(LATEX.get(letter, letter) for letter in " ".join(text.split()))
