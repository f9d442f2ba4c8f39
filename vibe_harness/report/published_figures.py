"""Published figures, marked as such: they stand in blocks of their own, for other prompts and tests made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vibe_harness.metrics.registry import presentation_of
from vibe_harness.report.board import Block, Cell, Column, Row, mean_of
from vibe_harness.report.relations import Beside

FILE = Path(__file__).with_name("published.json")


def published_blocks() -> list[Block]:
    """A block for each published table: of shifts, and of a choice benchmark."""
    data = _data()
    open_ended = [
        _block(table, [_column(task, table["metric"], "open_ended", task) for task in table["tasks"]], "published")
        for table in data["shift"]
    ]
    choice = [
        _block(
            table,
            [
                _column(table["task"], metric, "choice", f"{table['task']}: {presentation_of(metric).title}")
                for metric in table["metrics"]
            ],
            f"published, {table['input']}",
        )
        for table in data["choice"]
    ]
    return open_ended + choice


def published_beside() -> list[Beside]:
    """The published tables that set open-ended scores beside a choice benchmark."""
    data = _data()
    found = []
    for table in data["beside_choice"]:
        [scores] = [one for one in data["shift"] if one["name"] == table["open_ended"]["table"]]
        column = scores["tasks"].index(table["open_ended"]["task"])
        rows = tuple(
            (model, (Cell(value=scores["models"][model][column]), Cell(value=value, stars=stars)))
            for model, (value, stars) in table["models"].items()
        )
        headings = (
            ("open-ended", f"{table['open_ended']['task']} on {scores['corpus']}"),
            ("choice", table["choice"]),
        )
        found.append(
            Beside(
                dimension=scores["dimension"], headings=headings, rows=rows, digits=(2, 2),
                source=f"{table['source']}; {table['test']}",
            )
        )  # fmt: skip
    return found


def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return data


def _column(task: str, metric: str, kind: str, label: str) -> Column:
    return Column(task=task, metric=metric, variant="default", digest=None, kind=kind, name=task, label=label, digits=2)


def _block(table: dict[str, Any], columns: list[Column], apart: str) -> Block:
    cells = [
        {model: Cell(value=values[index]) for model, values in table["models"].items()} for index in range(len(columns))
    ]
    rows = []
    for model in sorted(table["models"], key=str.casefold):
        own = tuple(by_model[model] for by_model in cells)
        mean = mean_of([cell for cell, column in zip(own, columns, strict=True) if column.is_shift])
        rows.append(Row(key=f"published {model}", model=model, simulated=False, cells=own, mean=mean))
    return Block(
        corpus=table["corpus"], synthetic=False, dimension=table["dimension"], settings={}, columns=tuple(columns),
        rows=tuple(rows), apart=apart, published=f"{table['source']}; {table['test']}",
    )  # fmt: skip
