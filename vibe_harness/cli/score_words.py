"""Scores in words, by how their metrics present them."""

from __future__ import annotations

from collections.abc import Sequence

from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score

MOST_GROUPS = 6
"""Groups whose figures are told one by one; of more the lowest and the highest."""


def is_beside(score: Score) -> bool:
    """Whether a score is a remark on a task."""
    return presentation_of(score.metric).role == "beside"


def title(score: Score) -> str:
    """What a score is called, with what it was read of: "nTVD: occupation"."""
    name = presentation_of(score.metric).title
    return f"{name}: {words_of(score.attribute)}" if score.attribute else name


def words_of(attribute: str | None) -> str:
    """An attribute in words: "field of study"."""
    return (attribute or "").replace("_", " ")


def number(score: Score, value: float | None) -> str:
    """One of a score's figures, with as many decimals as they all have; empty for None."""
    if value is None:
        return ""
    decimals = presentation_of(score.metric).decimals_of(score)
    return f"{value:.{decimals}f}"


def value_words(score: Score, value: float | None = None) -> str:
    """A figure in its unit, "65.6 %"; the score's own, or "undefined", unless one is given."""
    shown, unit = score.value if value is None else value, presentation_of(score.metric).unit
    if shown is None:
        return "undefined"
    return f"{number(score, shown)} {unit}" if unit else number(score, shown)


def range_words(score: Score, ends: Sequence[float] | None) -> str:
    """A range of a score's figures, no end outside of its scale: "36.1 to 57.0"; empty for None."""
    if ends is None:
        return ""
    low, high = presentation_of(score.metric).scale or (float("-inf"), float("inf"))
    return " to ".join(number(score, min(max(end, low), high)) for end in ends)


def figure_words(score: Score) -> str:
    """A score's name, value and interval, and its figures by group: "accuracy 65.6 %: female 62.5 %, male 68.8 %"."""
    interval = f" ({range_words(score, score.interval)})" if score.interval else ""
    groups = f": {told}" if (told := _by_group(score)) else ""
    return f"{title(score)} {value_words(score)}{interval}{groups}"


def notes_of(score: Score) -> list[str]:
    """What a metric says of a score below its figures; of an attribute's, behind its name."""
    name = f"{words_of(score.attribute)}: " if score.attribute else ""
    return [f"{name}{note}" for note in presentation_of(score.metric).notes(score)]


def _by_group(score: Score) -> str:
    groups = presentation_of(score.metric).by_group(score)
    if len(groups) <= MOST_GROUPS:
        return ", ".join(f"{group} {value_words(score, value)}" for group, value in groups.items())
    low, high = (pick(groups, key=groups.__getitem__) for pick in (min, max))
    ends = f"{low} {value_words(score, groups[low])} to {high} {value_words(score, groups[high])}"
    return f"from {ends} in {len(groups)} groups"
