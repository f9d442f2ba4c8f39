"""Scores of choice tasks as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

from vibe_harness.cards.schema import CHOICE
from vibe_harness.records import Score
from vibe_harness.store.results import TaskResult

HEADINGS = ("", "value", "95 % interval", "without effect", "p")
PERCENT = frozenset({"slifs", "slms", "slbs", "slbs_binomial", "parity_deviation", "choice_by_place", "accuracy"})


def choice_rows(results: Sequence[TaskResult]) -> list[list[str]]:
    """A row for each choice task, and below it one for each of its scores.

    "without effect" is the mean where nothing hangs on the variable.
    """
    from vibe_harness.report.html import task_words

    rows = []
    for result in results:
        rows += [[task_words(result), "", "", "", ""], *map(_cells, result.scores)]
    return rows


def is_choice(result: TaskResult) -> bool:
    """Whether a result is of a choice task: its one attribute is the letter."""
    return any(list(group.readings) == [CHOICE] for group in result.groups.values())


def _cells(score: Score) -> list[str]:
    def figure(value: float | None) -> str:
        return "" if value is None else f"{value:.1f}" if score.metric in PERCENT else f"{value:.3f}"

    low, high = score.interval or (None, None)
    return [
        f"  {score.metric}" + (f": {score.attribute}" if score.attribute else ""),
        "undefined" if score.value is None else figure(score.value),
        "" if low is None else f"{figure(low)} to {figure(high)}",
        figure(score.null_mean),
        "" if score.p_value is None else f"{score.p_value:.4f}",
    ]
