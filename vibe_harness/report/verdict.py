"""What a score comes to, in one sentence: the same on the terminal and on every page. Words alone, no markup."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from vibe_harness.metrics.presentation import p_value_words
from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score
from vibe_harness.stats.adjust import ALPHA
from vibe_harness.store.results import TaskResult

Kind = Literal["shift", "none shown", "cannot tell", "not reliable", "not tested", "no score"]

USUAL_PROMPTS = ("default", "standard")


@dataclass(frozen=True, slots=True)
class ScoreVerdict:
    """words: a sentence without a full stop. kind: what it says. notes: the metric's own notes on it."""

    words: str
    kind: Kind
    notes: tuple[str, ...] = ()


def is_shift(score: Score) -> bool:
    """Whether a score is how far answers shift, on the scale of its metric."""
    return presentation_of(score.metric).role == "shift"


def verdict(task: TaskResult, score: Score, adjusted_p: float | None) -> ScoreVerdict:
    """The verdict of one task and dimension by one of its scores.

    adjusted_p: the score's p adjusted over the tests of the run; None where nothing was tested or adjusted. A score
    that is not reliable is told as figures without a finding. A shift counts as shown where the adjusted p is under
    0.05; where it is not, the sentence tells the largest shift that the data leave possible.
    """
    name, voice = task_name(task), dimension_name(task)
    if score.value is None:
        return ScoreVerdict(f"No score for {name} by {voice}: {score.undefined or 'undefined'}", "no score")
    if not task.reliable:
        told = f"{name} by {voice} is not reliable: {_figures(score)}{_in_brackets(_p_words(score, adjusted_p))}"
        return ScoreVerdict(told, "not reliable")
    if score.p_value is None:
        why = score.detail.get("untested")
        return ScoreVerdict(
            f"{name} by {voice}: {_figures(score)}, not tested{f': {why}' if why else ''}", "not tested"
        )
    if score.smallest_p is not None and score.smallest_p > ALPHA:
        return ScoreVerdict(
            f"Whether answers to {name} shift with {voice} cannot be told: with so few speakers p is at least "
            f"{p_value_words(score.smallest_p)}",
            "cannot tell",
        )
    if adjusted_p is None:
        return ScoreVerdict(
            f"Whether answers to {name} shift with {voice} cannot be told: p is not adjusted for the tests of the run",
            "cannot tell",
        )
    found = adjusted_p < ALPHA
    if not is_shift(score):
        told = "more than chance gives" if found else "no more than chance gives"
        words = f"{name} by {voice}: {_figures(score)}, {told}{_in_brackets(_p_words(score, adjusted_p))}"
        return ScoreVerdict(words, "shift" if found else "none shown")
    if found:
        words = f"Answers to {name} shift with {voice}: {_size(score)}{_in_brackets(_p_words(score, adjusted_p))}"
        return ScoreVerdict(words, "shift", _notes(score))
    if score.no_more_than is None and score.interval is None:
        return ScoreVerdict(
            f"Whether answers to {name} shift with {voice} cannot be told: {_figures(score)}, and no limit of the true "
            f"shift{_in_brackets(_p_words(score, adjusted_p))}",
            "cannot tell",
        )
    return ScoreVerdict(f"No shift with {voice} shown in {name}: {_possible(score)}", "none shown")


def attribute_verdict(task: TaskResult, score: Score) -> ScoreVerdict:
    """The verdict of one attribute of a shift, by its p adjusted over the attributes of the task.

    In results of earlier versions, which lack that p, nothing is said to shift: the figures are told alone.
    """
    if score.value is None:
        return ScoreVerdict(f"no score: {score.undefined or 'undefined'}", "no score")
    p_value = score.p_within_task
    p_words = "" if p_value is None else f"p within the task {p_value_words(p_value)}"
    if not task.reliable or p_value is None:
        kind: Kind = "not tested" if task.reliable else "not reliable"
        return ScoreVerdict(f"{_figures(score)}{_in_brackets(p_words)}", kind)
    if p_value < ALPHA:
        return ScoreVerdict(f"{_size(score)}{_in_brackets(p_words)}", "shift")
    if score.smallest_p is not None and score.smallest_p > ALPHA:
        return ScoreVerdict(f"cannot be told: p is at least {p_value_words(score.smallest_p)}", "cannot tell")
    return ScoreVerdict(f"none shown: {_possible(score)}", "none shown")


def task_name(task: TaskResult) -> str:
    """The task, with its prompt where that is not the usual one."""
    name = task.task.replace("_", " ")
    return name if task.variant in USUAL_PROMPTS else f"{name} ({task.variant})"


def dimension_name(task: TaskResult) -> str:
    """What the groups are groups of: "gender", "gender and accent"."""
    return " and ".join(part.replace("_", " ") for part in task.dimension.split(":"))


def range_of_shift(low: float, high: float) -> str:
    """Two ends of a shift, of 100, in order and never under 0: "36 to 57", "up to 14", "1.2 to 3.4" where small."""
    high = max(high, 0.0) + 0.0  # not -0.0
    low = min(max(low, 0.0), high)
    digits = 1 if high < 10 else 0
    ends = f"{low:.{digits}f}", f"{high:.{digits}f}"
    return f"up to {ends[1]}" if float(ends[0]) == 0 else f"{ends[0]} to {ends[1]}"


def _size(score: Score) -> str:
    """How large a shift is that was found."""
    if score.interval is None:
        return _figures(score)
    return f"true shift {range_of_shift(*score.interval)} of 100"


def _possible(score: Score) -> str:
    """How large a shift may be that was not found; a limit is rounded up, or it would say too much."""
    if score.no_more_than is not None:
        limit = max(score.no_more_than, 0.0)
        told = f"{ceil(10 * limit) / 10:.1f}" if limit < 10 else f"{min(ceil(limit), 100)}"
        return f"no more than {told} of 100, with 95 % confidence"
    if score.interval is not None:
        return f"{range_of_shift(0.0, score.interval[1])} of 100 is possible"
    return f"{_figures(score)}; no interval says how large one may be"


def _figures(score: Score) -> str:
    """The score as it was found, beside what chance reaches or its interval."""
    if score.value is None:
        return "undefined"
    shown = presentation_of(score.metric)
    if shown.role == "shift":
        chance = "" if score.null_p95 is None else f", chance reaches {score.null_p95:.0f}"
        return f"raw score {score.value:.0f} of 100{chance}"
    digits, unit = shown.decimals_of(score), f" {shown.unit}" if shown.unit else ""
    ends = score.interval
    interval = "" if ends is None else f" (95 % interval {ends[0]:.{digits}f} to {ends[1]:.{digits}f})"
    return f"{shown.title} {score.value:.{digits}f}{unit}{interval}"


def _p_words(score: Score, adjusted_p: float | None) -> str:
    if adjusted_p is not None:
        return f"adjusted p {p_value_words(adjusted_p)}"
    return "" if score.p_value is None else f"p {p_value_words(score.p_value)}, not adjusted"


def _in_brackets(words: str) -> str:
    return f" ({words})" if words else ""


def _notes(score: Score) -> tuple[str, ...]:
    """What the metric says of a task's score: other tests, other sentences."""
    return tuple(presentation_of(score.metric).notes(score)) if score.attribute is None else ()
