"""The page of one model in a leaderboard: every score of every attribute, and what shifts. Aggregates only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vibe_harness.records import Score
from vibe_harness.report.board import MAIN, Block, Board, Cell, Row
from vibe_harness.report.board_runs import Entry
from vibe_harness.report.html import (
    counted,
    interval_words,
    no_intervals,
    number,
    p_words,
    percent,
    score_digits,
    shift_words,
    value_words,
)
from vibe_harness.store.results import TaskResult

SHIFTS = 3  # values told for each attribute


def model_context(key: str, board: Board, entries: Sequence[Entry]) -> dict[str, Any]:
    """What the template of a model's page takes. entries: the runs of that model."""
    parts, label = [], ""
    for block in board.blocks:
        for row in block.rows:
            if row.key == key and not block.published:
                label = row.model
                parts.append(_part(block, row))
    return {
        "label": label,
        "simulated": any(entry.results.simulated for entry in entries),
        "facts": list(_facts(entries)),
        "parts": parts,
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
    yield "hearing check", ", ".join(sorted({entry.results.hearing_check for entry in entries}))
    versions = sorted({entry.record.made_with for entry in entries})
    yield "measured with", f"vibe-harness {', '.join(versions)}"


@dataclass(frozen=True, slots=True)
class _Asked:
    """One task as a model was asked it in a block. cells: metric -> its figure for the task as a whole."""

    name: str
    result: TaskResult
    cells: dict[str, Cell]


def _part(block: Block, row: Row) -> dict[str, Any]:
    found: dict[tuple[str, str, str | None], _Asked] = {}
    for column, cell in zip(block.columns, row.cells, strict=True):
        if cell is not None and cell.result is not None and not column.common:
            key = (column.task, column.variant, column.digest)  # several columns where a task has several figures
            found.setdefault(key, _Asked(column.name, cell.result, {})).cells[column.metric] = cell
    asked = list(found.values())
    groups = sorted({group for one in asked for group in one.result.groups})
    return {
        "block": block.name,
        "groups": groups,
        "warnings": [f"{one.name}: {line}" for one in asked for line in one.result.warnings],
        "rows": [line for one in asked for line in _rows(one, groups)],
        "no_intervals": [f"{one.name}: {line}" for one in asked for line in no_intervals(one.result.scores)],
        "outcomes": [(one.name, _outcomes(one.result, groups)) for one in asked],
    }


def _rows(asked: _Asked, groups: Sequence[str]) -> Iterator[dict[str, Any]]:
    scores = asked.result.scores
    diversity = {score.attribute: score for score in scores if score.metric == "diversity"}
    for score in scores:
        if score.metric == "diversity":
            continue
        commonest = diversity[score.attribute].detail.get("commonest_share") if score.attribute in diversity else None
        cell = asked.cells.get(score.metric) if score.attribute is None else None
        yield {
            "name": _name(asked.name, score),
            "whole": cell is not None,
            "value": value_words(score) + (cell.stars if cell else ""),
            "bracket": shift_words(score),
            "interval": interval_words(score),
            "chance": number(score.null_p95, score_digits(score)),
            "p": p_words(cell.adjusted_p if cell and cell.adjusted_p is not None else score.p_value),
            "kept": percent(score.detail.get("kept_share")),
            "commonest": percent(commonest),
            "shifts": _shifts(score, groups),
        }


def _name(task: str, score: Score) -> str:
    """What a row is called: "story", "pay level", "biasinear: apes", "apes: CA", "refusing"."""
    if score.metric == "refusal_ntvd":
        return "refusing"
    if score.metric == MAIN:
        return task if score.attribute is None else score.attribute.replace("_", " ")
    metric = score.metric.replace("_", " ")
    return f"{task}: {metric}" if score.attribute is None else f"{metric}: {score.attribute}"


def _shifts(score: Score, groups: Sequence[str]) -> str:
    """The values that carry the shift, each with its share by group: "poor 60 % / 15 %"."""
    distribution = score.detail.get("distribution", {})
    told = []
    for part in score.detail.get("contributions", [])[:SHIFTS]:
        shares = [percent(distribution.get(group, {}).get(part["value"])) or "-" for group in groups]
        told.append(f"{part['value']} {' / '.join(shares)}")
    return "; ".join(told)


def _outcomes(result: TaskResult, groups: Sequence[str]) -> list[str]:
    """How the requests of each group ended: "1,000 requests, 45 speakers: ok 980, refused 20"."""
    told = []
    for name in groups:
        group = result.groups.get(name)
        if group is None:
            told.append("not asked")
            continue
        ends = ", ".join(f"{outcome} {count:,}" for outcome, count in group.outcomes.items() if count)
        told.append(f"{group.requests:,} requests, {counted(group.speakers, 'speaker')}: {ends}")
    return told
