"""What shifts: the values of each attribute with their shares by group, for pages and figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score
from vibe_harness.store.results import TaskResult

MAX_VALUES = 12  # values of an attribute that are drawn
MAX_BARS = 6  # groups that have a bar each; more are drawn as points on a line
TOLD_GROUPS = 3  # groups of a named value that are told in words


@dataclass(frozen=True, slots=True)
class ValueShares:
    """One value of an attribute. shares: of each group's kept values, 0 to 1. named: the groups for which the test
    shows that their share differs from the mean of the groups, in a task whose score is reliable; of others nothing
    may be said."""

    value: str
    shares: tuple[float, ...]
    named: tuple[bool, ...] = ()

    @property
    def is_named(self) -> bool:
        return any(self.named)


@dataclass(frozen=True, slots=True)
class Shift:
    """The distribution of one attribute by group, the values that carry the shift first."""

    attribute: str
    title: str
    groups: tuple[str, ...]
    counts: tuple[str, ...]  # by group, in words: responses that gave a value, and how much of them the filter keeps
    rows: tuple[ValueShares, ...]
    hidden: int  # values that are not drawn

    @property
    def as_bars(self) -> bool:
        """Whether each group has a bar of its own."""
        return len(self.groups) <= MAX_BARS

    def words(self, row: ValueShares) -> str:
        """ "nurse: women 40 %, men 6 %"; of many groups those that are named beside the mean."""
        groups = [
            index for index in range(len(self.groups)) if len(self.groups) <= TOLD_GROUPS or _is(row.named, index)
        ]
        mean = sum(row.shares) / len(row.shares)
        groups = sorted(groups, key=lambda index: -abs(row.shares[index] - mean))[:TOLD_GROUPS]
        told = [f"{self.groups[index]} {100 * row.shares[index]:.0f} %" for index in sorted(groups)]
        rest = [f"mean of the groups {100 * mean:.0f} %"] if len(groups) < len(self.groups) else []
        return f"{row.value}: {', '.join([*told, *rest])}"

    @property
    def named(self) -> list[ValueShares]:
        """The values that the test names, those that carry most first."""
        return [row for row in self.rows if row.is_named]


def _is(named: Sequence[bool], index: int) -> bool:
    return index < len(named) and named[index]


def shifts_of(task: TaskResult) -> Iterator[Shift]:
    """What is drawn of a task: each attribute that has a score and a distribution."""
    for score in task.scores:
        if score.attribute is None or score.value is None:
            continue
        if presentation_of(score.metric).picture == "shares":
            groups = [group for group in task.groups if score.detail.get("distribution", {}).get(group)]
            if groups:
                yield _shift(task, score, score.attribute, groups)


def _shift(task: TaskResult, score: Score, attribute: str, groups: Sequence[str]) -> Shift:
    distribution = score.detail["distribution"]
    named = {
        part["value"]: tuple(task.reliable and bool(part["by_group"].get(group, {}).get("named")) for group in groups)
        for part in score.detail.get("contributions", [])
    }
    rest = sorted({value for group in groups for value in distribution[group]} - set(named))
    values = [*sorted(named, key=lambda value: not any(named[value])), *rest]  # stable: named ones first
    kept = score.detail.get("kept_share_by_group", {})
    answers = {group: task.groups[group].readings[attribute]["value"] for group in groups}
    return Shift(
        attribute=attribute,
        title=f"{attribute.replace('_', ' ')}: {presentation_of(score.metric).title} {score.value:.1f}",
        groups=tuple(groups),
        counts=tuple(_counted(answers[group], kept.get(group)) for group in groups),
        rows=tuple(
            ValueShares(value, tuple(float(distribution[group].get(value, 0.0)) for group in groups),
                        named.get(value, ()))
            for value in values[:MAX_VALUES]
        ),
        hidden=max(len(values) - MAX_VALUES, 0),
    )  # fmt: skip


def figures_by_group(task: TaskResult) -> Shift | None:
    """Figures of a task as a whole that are in per cent and known for each group, such as its accuracy, as shares."""
    rows = []
    for score in task.scores:
        shown = presentation_of(score.metric)
        found = (
            shown.by_group(score) if score.attribute is None and shown.role == "figure" and shown.unit == "%" else {}
        )
        if found and all(group in found for group in task.groups):
            rows.append(ValueShares(shown.title, tuple(found[group] / 100 for group in task.groups)))
    if not rows:
        return None
    counts = tuple(f"n = {group.requests:,}" for group in task.groups.values())
    return Shift("", "by group", tuple(task.groups), counts, tuple(rows), 0)


def share_scale(shifts: Sequence[Shift]) -> float:
    """The one scale on which all shares are drawn: the largest of them (0 to 1), rounded up to a tenth."""
    largest = max((share for shift in shifts for row in shift.rows for share in row.shares), default=1.0)
    return min(max(ceil(10 * largest - 1e-9), 1) / 10, 1.0)


def _counted(answers: int, kept: float | None) -> str:
    """How many answers a group gave, and the share of them (0 to 1) that its bars are drawn from, where it is known."""
    return f"n = {answers:,}" if kept is None else f"n = {answers:,}, {kept:.0%} kept"
