"""Every figure of a run as tables, with the values that its tests name and what else is known of each score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vibe_harness.cli.output import echo
from vibe_harness.cli.score_words import (
    figure_words,
    is_beside,
    notes_of,
    number,
    range_words,
    title,
    value_words,
    words_of,
)
from vibe_harness.cli.summary import JudgedTask, judge, task_label
from vibe_harness.metrics.presentation import ExtraColumn, p_value_words
from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score
from vibe_harness.report.html import counted, no_intervals
from vibe_harness.report.trust import trust_columns
from vibe_harness.report.verdict import is_shift
from vibe_harness.stats.adjust import ALPHA
from vibe_harness.store.results import Results

SHIFT_HEADINGS = ("raw", "bracket", "95 %\ninterval", "chance\nreaches", "adjusted\np")
FIGURE_HEADINGS = ("", "value", "95 % interval", "by chance", "p", "adjusted p")


def print_full(results: Results) -> None:
    """Print all scores of each task, its attributes below it, and what is known of each besides."""
    judged, _ = judge(results)
    if any(is_shift(score) for one in judged for score in one.task.scores):
        _print_shifts(judged)
    if any(not (is_shift(score) or is_beside(score)) for one in judged for score in one.task.scores):
        _print_figures(judged)
    for one in judged:
        echo(f"\n{task_label(one.task)}")
        for line in _lines(results, one):
            echo(f"  {line}")


def _print_shifts(judged: Sequence[JudgedTask]) -> None:
    """The shift of each task, and below it those of its attributes. It fits 80 letters."""
    from rich.table import Table

    from vibe_harness.cli.terminal import add_row, print_rich

    shifts = [(one, score) for one in judged for score in one.task.scores if is_shift(score)]
    extra = {column.heading: column for _, score in shifts for column in presentation_of(score.metric).columns}
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column("", overflow="fold")
    for heading in (*SHIFT_HEADINGS, *extra):
        table.add_column(heading, justify="right")
    for one, score in shifts:
        whole = score.attribute is None
        p_value = one.adjusted_p if whole else score.p_within_task
        name = task_label(one.task) if whole else f"  {words_of(score.attribute)}"
        add_row(table, [name, *_shift_cells(score, p_value, extra)], bold=whole)
    echo("")
    print_rich(table)


def _shift_cells(score: Score, p_value: float | None, extra: Mapping[str, ExtraColumn]) -> list[str]:
    own = {column.heading: column.text(score) for column in presentation_of(score.metric).columns}
    return [
        value_words(score),
        range_words(score, score.bracket),
        range_words(score, score.interval) or ("none" if score.detail.get("no_interval") else ""),
        number(score, score.null_p95),
        "" if p_value is None else p_value_words(p_value),
        *(own.get(heading, "") for heading in extra),
    ]


def _print_figures(judged: Sequence[JudgedTask]) -> None:
    """The figures that stand for themselves."""
    from vibe_harness.cli.terminal import print_table

    rows = []
    for one in judged:
        figures = [score for score in one.task.scores if not (is_shift(score) or is_beside(score))]
        if figures:
            rows.append([task_label(one.task), *[""] * (len(FIGURE_HEADINGS) - 1)])
        for score in figures:
            stands = (score.metric, score.attribute) == (one.score.metric, one.score.attribute)
            p_values = score.p_value, one.adjusted_p if stands else None
            told = ["" if p_value is None else p_value_words(p_value) for p_value in p_values]
            interval = range_words(score, score.interval)
            rows.append([f"  {title(score)}", value_words(score), interval, number(score, score.null_mean), *told])
    echo("")
    print_table(list(FIGURE_HEADINGS), rows)


def _lines(results: Results, one: JudgedTask) -> Iterator[str]:
    """Everything that is known of a task's scores besides."""
    task = one.task
    yield f"{one.verdict.words}."
    for name, group in task.groups.items():
        thoughts = f", {group.thoughts:,} with a thought" if group.thoughts else ""
        yield f"{name}: {counted(group.speakers, 'speaker')}, {counted(group.requests, 'request')}{thoughts}"
    yield from task.warnings
    for column in trust_columns(results, task):
        yield f"{column.heading}: {column.words}"
    if any(map(is_shift, task.scores)):
        yield from no_intervals(task.scores)
    yield from _test_lines(one.score)
    for score in task.scores:
        yield from _score_lines(score)


def _test_lines(score: Score) -> Iterator[str]:
    """How the score that stands for a task was tested, and what its test can tell."""
    if score.p_value is not None:
        times = "" if score.permutations is None else f", {score.permutations:,} permutations"
        every = " (all there are)" if score.complete else ""
        permuted = f" of {score.permuted}" if score.permuted else ""
        yield f"p {p_value_words(score.p_value)} before it is adjusted{times}{permuted}{every}"
    if score.smallest_p is not None:
        cannot = ": no shift can be found" if score.smallest_p > ALPHA else ""
        yield f"p can come down to {p_value_words(score.smallest_p)} with so many speakers{cannot}"
    if is_shift(score) and score.no_more_than is not None:
        yield f"the true shift is no more than {max(score.no_more_than, 0.0):.1f} of 100, with 95 % confidence"
    sentences: Mapping[str, Any] = score.detail.get("over_sentences") or {}
    if sentences.get("at_least") is not None:
        yield (
            f"over the {counted(sentences['sentences'], 'sentence')} that were spoken, as a sample of all: at least "
            f"{max(sentences['at_least'], 0.0):.1f} of 100 on average"
        )


def _score_lines(score: Score) -> Iterator[str]:
    """What is known of one score: its test where it is a remark, what its metric says, and what the filter left out."""
    if (is_beside(score) and not score.attribute and score.value is not None) or (
        not is_shift(score) and presentation_of(score.metric).by_group(score)
    ):
        chance = "" if score.null_p95 is None else f"; chance reaches {number(score, score.null_p95)}"
        p_value = f", p {p_value_words(score.p_value)} (not adjusted)" if is_beside(score) and score.p_value else ""
        yield f"{figure_words(score)}{chance}{p_value}"
    yield from notes_of(score)
    left_out = (score.detail.get("filter") or {}).get("ntvd_with_other")
    if left_out is not None:
        yield f"{title(score)} {value_words(score, left_out)} with the values left out counted as one"
