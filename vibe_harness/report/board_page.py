"""The first page of a leaderboard: what its template takes, and the words of its filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from vibe_harness.cards.schema import ModelCard
from vibe_harness.metrics.presentation import Presentation
from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score
from vibe_harness.report.board import Block, Board, Cell
from vibe_harness.report.board_runs import Entry
from vibe_harness.report.html import environment, number
from vibe_harness.report.relations import REFERENCE, Beside, CorpusAgreement, TaskCorrelations, TauRow
from vibe_harness.stats.agreement import TAUS
from vibe_harness.store.results import TaskResult

NOT_STATED = "not stated"
SIZES = ((4, "up to 4 billion parameters"), (10, "4 to 10 billion"), (float("inf"), "over 10 billion"))
"""Largest size of each class, in billions of parameters, and its words."""


def board_environment() -> jinja2.Environment:
    """The templates of a leaderboard's pages."""
    found = environment()
    found.filters.update(
        span=span_style, size_class=size_class, weights=weights, licence=licence, size_and_licence=size_and_licence,
        beside=beside_words,
    )  # fmt: skip
    return found


def board_context(
    board: Board,
    entries: Sequence[Entry],
    correlations: Sequence[TaskCorrelations],
    tau: Sequence[TauRow],
    agreement: Sequence[CorpusAgreement],
    beside: Sequence[Beside],
) -> dict[str, Any]:
    """What leaderboard.html.j2 takes, but for the names of files."""
    measured = [block for block in board.blocks if not block.published]
    published = [block for block in board.blocks if block.published]
    panels = [
        *([("scores", "Scores"), ("trust", "Trust")] if measured else []),
        *([("published", "Published")] if published else []),
        ("relations", "Tasks and corpora"),
        ("about", f"Prompts and files{f' ({len(board.left_out)} not shown)' if board.left_out else ''}"),
    ]
    return {
        "board": board, "measured": measured, "published": published, "panels": panels,
        "filters": [(name, options) for name, options in _filters(measured) if len(options) > 1],
        "correlations": correlations, "tau": tau, "taus": TAUS, "reference": REFERENCE, "agreement": agreement,
        "beside": beside, "prompts": _prompts(entries),
    }  # fmt: skip


def _filters(blocks: Sequence[Block]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Name -> value and words of each choice, of what occurs."""
    cards = [row.card for block in blocks for row in block.rows]
    order = [words for _, words in SIZES]
    sizes = sorted({size_class(card) for card in cards}, key=lambda one: order.index(one) if one in order else 9)
    return [
        ("corpus", _alike(block.corpus for block in blocks)),
        ("dimension", _alike(block.dimension for block in blocks)),
        ("size", [(size, size) for size in sizes]),
        ("licence", _alike(licence(card) for card in cards)),
        ("weights", _alike(weights(card) for card in cards)),
    ]


def _alike(values: Iterable[str]) -> list[tuple[str, str]]:
    return [(value, value) for value in sorted(set(values), key=str.casefold)]


def size_class(card: ModelCard | None) -> str:
    """The size of a model in words of `SIZES`."""
    if card is None or card.parameters is None:
        return NOT_STATED
    return next(words for most, words in SIZES if card.parameters <= most)


def licence(card: ModelCard | None) -> str:
    """The licence on a model's card."""
    return (card.licence if card else None) or NOT_STATED


def weights(card: ModelCard | None) -> str:
    """Whether a model's weights are "open" or "closed"."""
    return {True: "open", False: "closed", None: NOT_STATED}[card.open_weights if card else None]


def size_and_licence(card: ModelCard) -> str:
    """What a card says of both: "7 B, open weights, Apache-2.0"; nothing where it says nothing."""
    size = "" if card.parameters is None else f"{card.parameters:g} B"
    known = {True: "open weights", False: "closed", None: ""}[card.open_weights]
    return ", ".join(part for part in (size, known, card.licence or "") if part)


def beside_words(task: TaskResult) -> str:
    """The figures of the task as a whole that are told beside its own: "refusals 3.2 (chance reaches 6.1)"."""
    return "; ".join(
        _beside(presentation_of(score.metric), score)
        for score in task.scores
        if score.attribute is None and score.value is not None and presentation_of(score.metric).role == "beside"
    )


def _beside(shown: Presentation, score: Score) -> str:
    digits = shown.decimals(score.value, score.null_p95)
    chance = "" if score.null_p95 is None else f" (chance reaches {number(score.null_p95, digits)})"
    return f"{shown.title} {number(score.value, digits)}{f' {shown.unit}' if shown.unit else ''}{chance}"


def span_style(figure: Cell | Score, axis: tuple[float, float]) -> Markup:
    """Where the interval, the value and the chance mark of a figure lie on an axis with these ends."""
    start, end = axis
    low, high = figure.interval or (start, start)
    ends = {"l": low, "r": high, "v": figure.value, "c": figure.null_p95}
    places = {name: 100 * (value - start) / (end - start) for name, value in ends.items() if value is not None}
    return Markup(";".join(f"--{name}:{min(max(place, 0), 100):.1f}%" for name, place in places.items()))  # numbers


def _prompts(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Each prompt once: of a task card and a variant."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in entries:
        for task in entry.record.tasks:
            for variant in task.variants:
                found.setdefault((task.digest, variant), {
                    "task": task.card.task, "variant": variant, "version": task.card.version, "digest": task.digest,
                    "text": task.prompts[variant],
                })  # fmt: skip
    return sorted(found.values(), key=lambda one: (one["task"], one["variant"], one["digest"]))
