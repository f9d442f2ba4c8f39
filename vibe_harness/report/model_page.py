"""The page of one model in a leaderboard: what shifts, every score of every attribute. Aggregates only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vibe_harness.metrics.presentation import p_value_words
from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score
from vibe_harness.report.board import Block, Board, Cell, Column, Row
from vibe_harness.report.board_page import size_and_licence
from vibe_harness.report.board_runs import Entry
from vibe_harness.report.forest import Axis, Marks, axis_for, ends_of, marks_of
from vibe_harness.report.html import (
    counted,
    interval_words,
    no_intervals,
    number,
    p_words,
    percent,
    shift_words,
)
from vibe_harness.report.shifts import Shift, share_scale, shifts_of
from vibe_harness.report.trust import TrustColumn
from vibe_harness.report.verdict import ScoreVerdict, attribute_verdict, verdict
from vibe_harness.store.results import TaskResult

VALUES = 4  # of an attribute that are drawn; the page of a run draws more


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A score as a row of a forest plot. figures: in words, below the verdict. marks: None where none are drawn."""

    name: str
    verdict: ScoreVerdict
    marks: Marks | None
    figures: str


@dataclass(frozen=True, slots=True)
class AskedTask:
    """One task as a model was asked it in a block. cells: metric -> its figure for the task as a whole."""

    name: str
    result: TaskResult
    cells: dict[str, Cell]
    trust: tuple[TrustColumn, ...]
    leads: tuple[FigureRow, ...]  # of the task as a whole
    attributes: tuple[FigureRow, ...]  # of what shifts
    shifts: tuple[Shift, ...]  # of the attributes whose shift is shown: of others no value is a finding


def model_context(key: str, board: Board, entries: Sequence[Entry]) -> dict[str, Any]:
    """What the template of a model's page takes. entries: the runs of that model."""
    own = [(block, row) for block in board.blocks for row in block.rows if row.key == key and not block.published]
    axis = axis_for(ends_of([score for block, row in own for score in _shift_scores(block, row)]))
    parts = [_part(block, row, axis) for block, row in own]
    card = entries[0].record.model
    return {
        "label": own[0][1].model if own else "",
        "simulated": any(entry.results.simulated for entry in entries),
        "summary": size_and_licence(card),
        "facts": list(_facts(entries)),
        "parts": parts,
        "axis": axis,
        "top": share_scale([shift for part in parts for asked in part["tasks"] for shift in asked.shifts]),
    }


def _facts(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """What is known of the model, once for all of its runs."""
    card = entries[0].record.model
    yield "weights", f"{card.id}, revision {card.revision}" if card.revision else card.id
    yield "back end", card.backend
    if card.args:
        yield "arguments", ", ".join(f"{name} = {value}" for name, value in card.args.items())
    if card.licence:
        yield "licence", card.licence
    yield "answers read by", ", ".join(sorted({entry.results.extractor for entry in entries}))
    versions = sorted({entry.record.made_with for entry in entries})
    yield "measured with", f"vibe-harness {', '.join(versions)}"


def _shift_scores(block: Block, row: Row) -> Iterator[Score]:
    """The scores of a row, of tasks and attributes, that measure a shift."""
    for column, cell in zip(block.columns, row.cells, strict=True):
        if cell is not None and cell.result is not None and column.is_shift and not column.common:
            yield from (score for score in cell.result.scores if score.metric == column.metric)


def _part(block: Block, row: Row, axis: Axis) -> dict[str, Any]:
    found: dict[tuple[str, str, str | None], list[tuple[Column, Cell]]] = {}
    for column, cell in zip(block.columns, row.cells, strict=True):
        if cell is not None and cell.result is not None and not column.common:
            # several columns where a task has several figures
            found.setdefault((column.task, column.variant, column.digest), []).append((column, cell))
    tasks = [_asked(figures, axis) for figures in found.values()]
    return {
        "block": block.name,
        "synthetic": block.synthetic,
        "tasks": tasks,
        "headings": [column.heading for column in tasks[0].trust] if tasks else [],
        "against": block.against(row),
        "warnings": [f"{one.name}: {line}" for one in tasks for line in one.result.warnings],
        "rows": [line for one in tasks for line in _rows(one)],
        "no_intervals": [f"{one.name}: {line}" for one in tasks for line in no_intervals(one.result.scores)],
        "outcomes": [(one.name, list(_outcomes(one.result))) for one in tasks],
    }


def _asked(figures: Sequence[tuple[Column, Cell]], axis: Axis) -> AskedTask:
    first, cell = figures[0]
    result = cell.result
    assert result is not None
    leads = [
        _lead(column, own, score, axis)
        for column, own in figures
        for score in result.scores
        if score.attribute is None and score.metric == column.metric
    ]
    attributes = _attribute_rows(result, {column.metric for column, _ in figures if column.is_shift}, axis)
    shown = {attribute for attribute, row in attributes.items() if row.verdict.kind == "shift"}
    shifts = [_most_telling(shift) for shift in shifts_of(result) if shift.attribute in shown]
    return AskedTask(
        first.name, result, {column.metric: own for column, own in figures}, cell.trust, tuple(leads),
        tuple(attributes.values()), tuple(shifts),
    )  # fmt: skip


def _attribute_rows(result: TaskResult, shifting: set[str], axis: Axis) -> dict[str, FigureRow]:
    """Attribute -> its row of the forest plot, by the metrics that measure a shift."""
    return {
        score.attribute: FigureRow(
            score.attribute.replace("_", " "), attribute_verdict(result, score), marks_of(score, axis),
            _figures(score, None),
        )
        for score in result.scores
        if score.attribute is not None and score.metric in shifting
    }  # fmt: skip


def _most_telling(shift: Shift) -> Shift:
    """The shift with fewer values: those that carry most."""
    left_out = max(len(shift.rows) - VALUES, 0)
    return replace(shift, rows=shift.rows[:VALUES], hidden=shift.hidden + left_out)


def _lead(column: Column, cell: Cell, score: Score, axis: Axis) -> FigureRow:
    assert cell.result is not None
    marks = marks_of(score, axis) if column.is_shift else None
    told = verdict(cell.result, score, cell.adjusted_p)
    return FigureRow(column.label, told, marks, _figures(score, cell.adjusted_p))


def _figures(score: Score, adjusted_p: float | None) -> str:
    shown = presentation_of(score.metric)
    digits = shown.decimals_of(score)
    told = [] if score.value is None else [f"{shown.title} {number(score.value, digits)}"]
    if score.null_p95 is not None:
        told.append(f"chance reaches {number(score.null_p95, digits)}")
    if adjusted_p is not None:
        told.append(f"adjusted p {p_value_words(adjusted_p)}")
    return ", ".join(told)


def _rows(asked: AskedTask) -> Iterator[dict[str, Any]]:
    """A row for each score, in figures."""
    for score in asked.result.scores:
        shown = presentation_of(score.metric)
        cell = asked.cells.get(score.metric) if score.attribute is None else None
        digits = shown.decimals_of(score)
        value = "undefined" if score.value is None else number(score.value, digits)
        yield {
            "name": _name(asked.name, score),
            "whole": cell is not None,
            "value": value + (cell.stars if cell else ""),
            "bracket": shift_words(score),
            "interval": interval_words(score),
            "chance": number(score.null_p95, digits),
            "p": p_words(cell.adjusted_p if cell and cell.adjusted_p is not None else score.p_value),
            "kept": percent(score.detail.get("kept_share")),
        }


def _name(task: str, score: Score) -> str:
    """What a row is called: "story", "pay level", "biasinear: APES", "APES: CA", "story: refusals"."""
    shown = presentation_of(score.metric)
    attribute = None if score.attribute is None else score.attribute.replace("_", " ")
    if shown.role == "shift":
        return task if attribute is None else attribute
    return f"{task}: {shown.title}" if attribute is None else f"{shown.title}: {attribute}"


def _outcomes(result: TaskResult) -> Iterator[tuple[str, str]]:
    """Group -> how its requests ended: "1,000 requests, 45 speakers: ok 980, refused 20"."""
    for name, group in result.groups.items():
        ends = ", ".join(f"{outcome} {count:,}" for outcome, count in group.outcomes.items() if count)
        yield name, f"{group.requests:,} requests, {counted(group.speakers, 'speaker')}: {ends}"
