"""The short form of a run's results: a line for each task and dimension, its verdict first, and what qualifies it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from vibe_harness.cli.output import echo, plain
from vibe_harness.cli.score_words import figure_words, is_beside, notes_of, number, title, value_words
from vibe_harness.metrics.presentation import p_value_words
from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score
from vibe_harness.report.stars import Family, family_of, tested
from vibe_harness.report.trust import trust_columns
from vibe_harness.report.verdict import ScoreVerdict, dimension_name, is_shift, range_of_shift, task_name, verdict
from vibe_harness.stats.adjust import ALPHA
from vibe_harness.store.results import Results, TaskResult

if TYPE_CHECKING:
    from rich.table import Table

MOST_ATTRIBUTES = 2
"""Attributes of a task whose values are told, those that shift most clearly."""
MOST_WARNINGS = 3
"""Warnings told of a task; `show` has all."""
MOST_GROUPS = 6
"""Groups whose speakers are told one by one."""
NO_SCORE = Score(metric="score", undefined="its card names no metric that has a score of the task as a whole")
STYLES = {"shift": "bold", "not reliable": "bold red", "cannot tell": "yellow", "no score": "red"}
"""Kind of a verdict -> how its first words look where the terminal has colour. One that found no shift has no colour of
its own: it is no proof of fairness."""


@dataclass(frozen=True, slots=True)
class JudgedTask:
    """A task by one dimension, the score that stands for it (the one that was tested, else the first), its verdict, and
    its p adjusted over the tests of the run."""

    task: TaskResult
    score: Score
    verdict: ScoreVerdict
    adjusted_p: float | None


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One task and dimension in words. kind: that of its verdict; p_value: adjusted, or empty."""

    kind: str
    verdict: str
    task: str
    size: str
    raw: str
    p_value: str

    def cells(self, wide: bool) -> tuple[str, ...]:
        """The columns; shortened unless wide."""
        raw = self.raw if wide else self.raw.replace("chance reaches", "chance")
        p_value = f"{'adjusted p' if wide else 'p'} {self.p_value}" if self.p_value else ""
        return self.verdict, self.task, self.size, raw, p_value


def print_summary(results: Results) -> None:
    """Print a line for each task and dimension, and below them what qualifies these lines."""
    judged, family = judge(results)
    _print_rows([_row(one) for one in judged])
    echo("")
    _print_details({task_label(one.task): list(_details(results, one)) for one in judged})
    echo(f"Speakers: {'; '.join(_speakers(results))}")
    if family.refused:
        echo(f"p is not adjusted: {family.refused}")
    elif family.tests:
        tests = f"the {family.tests} tests of this run" if family.tests > 1 else "this run, which makes one test"
        echo(f"p is adjusted over {tests} (Benjamini and Hochberg)")


def _print_details(details: Mapping[str, Sequence[str]]) -> None:
    """Print what qualifies the rows, by task; what is said of every task once. details: label of a task -> lines."""
    everywhere = set.intersection(*map(set, details.values())) if len(details) > 1 else set()
    for line in dict.fromkeys(line for lines in details.values() for line in lines if line in everywhere):
        echo(line)
    for label, lines in details.items():
        own = [line for line in dict.fromkeys(lines) if line not in everywhere]
        if len(own) == 1:
            echo(f"{label}: {own[0]}")
        elif own:
            echo(f"{label}:")
            for line in own:
                echo(f"  {line}")


def task_label(task: TaskResult) -> str:
    """ "story by gender"."""
    return f"{task_name(task)} by {dimension_name(task)}"


def judge(results: Results) -> tuple[list[JudgedTask], Family]:
    """Each task with the score that stands for it, its verdict and its p, adjusted over the run."""
    of_tasks = [tested(task) for task in results.tasks]
    family = family_of([score for scores in of_tasks for score in scores])
    p_values = iter(family.p_values)
    judged = []
    for task, scores in zip(results.tasks, of_tasks, strict=True):
        own = [(score, next(p_values)) for score in scores]
        score, p_value = next(
            (pair for pair in own if pair[0].p_value is not None), own[0] if own else (NO_SCORE, None)
        )
        judged.append(JudgedTask(task, score, verdict(task, score, p_value), p_value))
    return judged, family


def _row(one: JudgedTask) -> SummaryRow:
    kind, shift = one.verdict.kind, is_shift(one.score)
    return SummaryRow(
        kind=kind,
        verdict=_verdict_of_shift(kind, dimension_name(one.task)) if shift else _verdict_of_figure(kind),
        task=task_name(one.task) if shift else task_label(one.task),
        size=_size(one.score, kind) if shift else f"{title(one.score)} {value_words(one.score)}",
        raw=_raw(one.score),
        p_value="" if one.adjusted_p is None else p_value_words(one.adjusted_p),
    )


def _verdict_of_shift(kind: str, dimension: str) -> str:
    if kind == "shift":
        return f"Shift with {dimension}"
    return f"{'NOT RELIABLE' if kind == 'not reliable' else kind.capitalize()}: {dimension}"


def _verdict_of_figure(kind: str) -> str:
    words = {"shift": "More than chance", "none shown": "Like chance", "not reliable": "NOT RELIABLE"}
    return words.get(kind, kind.capitalize())


def _size(score: Score, kind: str) -> str:
    """How large the true shift is, or may be, of 100."""
    if kind == "shift" and score.interval is not None:
        return f"{range_of_shift(*score.interval)} of 100"
    if kind == "none shown" and score.no_more_than is not None:
        return f"no more than {min(ceil(max(score.no_more_than, 0.0)), 100)}"  # rounded up, or it would say too much
    if kind == "none shown" and score.interval is not None:
        return f"{range_of_shift(0.0, score.interval[1])} possible"
    if kind == "cannot tell":
        few = score.smallest_p is not None and score.smallest_p > ALPHA
        return "too few speakers" if few else "p is not adjusted"
    return ""


def _raw(score: Score) -> str:
    """The raw score and what chance reaches; of a figure that is no shift, what it comes to by chance alone."""
    if not is_shift(score):
        return _chance(score)
    raw = "" if score.value is None else f"raw {score.value:.0f}"
    chance = "" if score.null_p95 is None else f"chance reaches {score.null_p95:.0f}"
    return ", ".join(filter(None, (raw, chance)))


def _chance(score: Score) -> str:
    return "" if score.null_p95 is None else f"chance reaches {number(score, score.null_p95)}"


def _details(results: Results, one: JudgedTask) -> Iterator[str]:
    """What qualifies the line of a task: values named, what speaks against its score, and its other figures."""
    task = one.task
    if one.verdict.kind == "shift" and is_shift(one.score):
        yield from _values(task)
    if one.verdict.kind == "shift" or results.also_test:
        yield from notes_of(one.score)
    yield from _doubts(results, task)
    for score in task.scores:
        if is_beside(score) and score.p_value is not None and score.p_value <= ALPHA:
            yield f"{figure_words(score)}; {_chance(score)}, p {p_value_words(score.p_value)} (not adjusted)"
        elif _is_told(score, beside_a_shift=is_shift(one.score)):
            yield figure_words(score)


def _doubts(results: Results, task: TaskResult) -> Iterator[str]:
    """Warnings, and what else speaks against the scores of a task."""
    yield from task.warnings[:MOST_WARNINGS]
    if (more := len(task.warnings) - MOST_WARNINGS) > 0:
        yield f"{more} more warning{'s' if more > 1 else ''}"
    for column in trust_columns(results, task):
        if column.ok is False and column.words not in task.warnings:
            yield f"{column.heading}: {column.words}"
    if results.extractor == "rules" and task.without_value == 1 and any(map(is_shift, task.scores)):
        yield (
            "the extractor 'rules' reads labelled lines alone ('Occupation: nurse'); free text is read by a text "
            "model: --extractor NAME"
        )


def _is_told(score: Score, *, beside_a_shift: bool) -> bool:
    """Whether a figure is told below the rows: of a task measured by figures, those that are known by group."""
    if is_shift(score) or is_beside(score) or score.attribute or score.value is None:
        return False
    return beside_a_shift or bool(presentation_of(score.metric).by_group(score))


def _values(task: TaskResult) -> list[str]:
    """The values that the test names, of the attributes that shift most clearly."""
    named = [(score, note) for score in task.scores if score.attribute and is_shift(score) for note in notes_of(score)]
    clearest = sorted(named, key=lambda pair: (_p_within_task(pair[0]), -(pair[0].value or 0.0)))
    notes = [note for _, note in clearest[:MOST_ATTRIBUTES]]
    more = [score.attribute.replace("_", " ") for score, _ in clearest[MOST_ATTRIBUTES:] if score.attribute]
    return [*notes, *([f"so do values of {', '.join(more)}: see vibe-harness show"] if more else [])]


def _p_within_task(score: Score) -> float:
    return 1.0 if score.p_within_task is None else score.p_within_task


def _speakers(results: Results) -> Iterator[str]:
    """How many speakers each group has, by dimension: "female 12, male 12"."""
    for dimension, task in {task.dimension: task for task in results.tasks}.items():
        counts = {group: one.speakers for group, one in task.groups.items()}
        if len(counts) <= MOST_GROUPS:
            yield ", ".join(f"{group} {count:,}" for group, count in counts.items())
        else:
            least, most = min(counts.values()), max(counts.values())
            each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
            yield f"{each} in each of {len(counts)} groups of {dimension}"


def _print_rows(rows: Sequence[SummaryRow]) -> None:
    """Print the rows as a table where the terminal is wide enough, else one below the other."""
    from vibe_harness.cli.terminal import fits, print_rich

    for wide in (True, False):
        table = _table(rows, wide)
        if fits(table):
            print_rich(table)
            return
    for row in rows:
        print_rich(_stacked(row))


def _table(rows: Sequence[SummaryRow], wide: bool) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for _ in range(5):
        table.add_column(no_wrap=True)
    for row in rows:
        first, *rest = map(plain, row.cells(wide))
        table.add_row(Text(first, style=STYLES.get(row.kind, "")), *map(Text, rest))
    return table


def _stacked(row: SummaryRow) -> Table:
    """A row as lines that break where the terminal ends."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    first, task, *rest = map(plain, row.cells(wide=False))
    table = Table.grid()
    table.add_row(Text.assemble((first, STYLES.get(row.kind, "")), f"  {task}", overflow="fold"))
    table.add_row(Padding(Text(", ".join(filter(None, rest)), overflow="fold"), (0, 0, 0, 2)))
    return table
