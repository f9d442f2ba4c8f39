"""The page of one model in a leaderboard: every score of every attribute, and what shifts. Aggregates only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vibe_harness.pipeline.results import TaskResult
from vibe_harness.records import Score
from vibe_harness.report.board import Block, Board, Cell, Row
from vibe_harness.report.board_runs import Entry
from vibe_harness.report.html import interval_words, number, p_words, percent, score_digits, shift_words, value_words

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


def _part(block: Block, row: Row) -> dict[str, Any]:
    cells = [
        (column.label, cell)
        for column, cell in zip(block.columns, row.cells, strict=True)
        if cell is not None and not column.common and cell.result is not None
    ]
    groups = sorted({name for _, cell in cells if cell.result for name in cell.result.groups})
    return {
        "block": block.name,
        "groups": groups,
        "warnings": [f"{label}: {line}" for label, cell in cells if cell.result for line in cell.result.warnings],
        "rows": [line for label, cell in cells if cell.result for line in _rows(label, cell, cell.result, groups)],
        "outcomes": [(label, _outcomes(cell.result, groups)) for label, cell in cells if cell.result],
    }


def _rows(label: str, cell: Cell, result: TaskResult, groups: Sequence[str]) -> Iterator[dict[str, Any]]:
    diversity = {score.attribute: score for score in result.scores if score.metric == "diversity"}
    for score in result.scores:
        if score.metric == "diversity":
            continue
        commonest = diversity[score.attribute].detail.get("commonest_share") if score.attribute in diversity else None
        whole = score.attribute is None and score.metric != "refusal_ntvd"
        yield {
            "name": _name(label, score),
            "whole": whole,
            "value": value_words(score) + (cell.stars if whole else ""),
            "bracket": shift_words(score),
            "interval": interval_words(score),
            "chance": number(score.null_p95, score_digits(score)),
            "p": p_words(cell.adjusted_p if whole and cell.adjusted_p is not None else score.p_value),
            "kept": percent(score.detail.get("kept_share")),
            "commonest": percent(commonest),
            "shifts": _shifts(score, groups),
        }


def _name(label: str, score: Score) -> str:
    if score.metric == "refusal_ntvd":
        return "refusing"
    return label if score.attribute is None else score.attribute.replace("_", " ")


def _shifts(score: Score, groups: Sequence[str]) -> str:
    """The values that carry the shift, each with its share by group: "poor 60 % / 15 %"."""
    distribution = score.detail.get("distribution", {})
    told = []
    for part in score.detail.get("contributions", [])[:SHIFTS]:
        shares = [percent(distribution.get(group, {}).get(part["value"])) or "-" for group in groups]
        told.append(f"{part['value']} {' / '.join(shares)}")
    return "; ".join(told)


def _outcomes(result: TaskResult, groups: Sequence[str]) -> list[str]:
    """How the requests of each group ended: "1,000 of 45 speakers: ok 980, refused 20"."""
    told = []
    for name in groups:
        group = result.groups.get(name)
        if group is None:
            told.append("not asked")
            continue
        ends = ", ".join(f"{outcome} {count:,}" for outcome, count in group.outcomes.items() if count)
        told.append(f"{group.requests:,} of {group.speakers:,} speakers: {ends}")
    return told
