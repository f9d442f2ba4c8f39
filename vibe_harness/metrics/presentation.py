"""How the figures of a metric are shown: declared beside the function that computes them.

The terminal, the pages, the leaderboard and the exports read nothing else, so a metric of another package is shown as
one of this package is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from vibe_harness.records import Score

Role = Literal["shift", "beside", "figure"]
Picture = Literal["none", "shares"]


def _by_group(score: Score) -> Mapping[str, float]:
    """The figures by group that stand in the detail of most metrics; those without a figure are left out."""
    found = score.detail.get("by_group")
    if not isinstance(found, Mapping):
        return {}
    numbers = {str(group): figure for group, figure in found.items() if isinstance(figure, int | float)}
    return {group: float(figure) for group, figure in numbers.items() if not isinstance(figure, bool)}


def _no_notes(_: Score) -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class ExtraColumn:
    """A column that a metric adds to the common ones. text: of a score; empty where the score has none."""

    heading: str
    text: Callable[[Score], str]


@dataclass(frozen=True, slots=True)
class Presentation:
    """How the scores of a metric are shown.

    title: its name in a table and in a sentence: "nTVD", "accuracy".
    role: "shift" for the main figure of open-ended tasks, by which models are compared; "beside" for what is shown as a
    remark on a task and enters no family of tests; "figure" for a figure that stands for itself, a line each.
    unit: follows a figure in a sentence. digits: decimals; None for one decimal, or three where figures stay under 2.
    scale: the lowest and highest figure possible; an axis is drawn over it. neutral: the figure without any effect.
    picture: what is drawn of an attribute's score: "shares" draws the distribution of its values by group.
    columns: added to value, interval, chance and p. notes: lines below the table, each a sentence or a phrase.
    by_group: the figures of single groups.
    """

    title: str
    role: Role = "figure"
    unit: str = ""
    digits: int | None = None
    scale: tuple[float, float] | None = None
    neutral: float | None = None
    picture: Picture = "none"
    columns: tuple[ExtraColumn, ...] = ()
    notes: Callable[[Score], list[str]] = _no_notes
    by_group: Callable[[Score], Mapping[str, float]] = _by_group

    def decimals(self, *figures: float | None) -> int:
        """How many decimals these figures are shown with."""
        if self.digits is not None:
            return self.digits
        return 3 if all(abs(figure) <= 2 for figure in figures if figure is not None) else 1

    def decimals_of(self, score: Score) -> int:
        """How many decimals a score and its interval are shown with."""
        return self.decimals(score.value, *(score.interval or ()))


def percentage(title: str, neutral: float | None = None) -> Presentation:
    """Of a metric whose figures are shares in per cent."""
    return Presentation(title, unit="%", digits=1, scale=(0, 100), neutral=neutral)


def p_value_words(p_value: float) -> str:
    """A p-value: "0.93", "0.0145", "under 0.0001"."""
    if p_value < 0.00005:
        return "under 0.0001"
    return f"{p_value:.4f}" if p_value < 0.1 else f"{p_value:.2f}"
