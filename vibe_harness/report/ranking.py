"""Which score of a column may be called its highest or lowest: one that differs from all others by more than chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from vibe_harness.report.board import Cell

REQUIRED = ("hearing check", "identical answers")  # columns of trust that may not speak against a ranked score


def marked(by_model: Mapping[str, Cell]) -> dict[str, Cell]:
    """The cells of a column, with its highest and its lowest score marked where there are such.

    A score is marked only where its 95 % interval lies wholly above, or wholly below, the interval of every other
    score that can be ranked (`can_be_ranked`). Intervals apart are a stricter demand than a difference with p under
    0.05 (Schenker and Gentleman 2001, The American Statistician 55, 182-186): of two equal scores with normal errors
    one is marked in 0.6 % of cases where their errors are equal, in at most 5 % whatever they are.
    """
    ends = {model: cell.interval for model, cell in by_model.items() if cell.interval and can_be_ranked(cell)}
    marks: dict[str, str] = {}
    for model, (low, high) in ends.items():
        others = [interval for other, interval in ends.items() if other != model]
        if others and low > max(end for _, end in others):
            marks[model] = "highest"
        if others and high < min(start for start, _ in others):
            marks[model] = "lowest"
    return {model: replace(cell, mark=marks.get(model, "")) for model, cell in by_model.items()}


def can_be_ranked(cell: Cell) -> bool:
    """Whether a score may be set above or below others: reliable, of a model that hears and whose answers vary."""
    against = [column for column in cell.trust if column.heading in REQUIRED and column.ok is False]
    return cell.value is not None and cell.reliable and not against
