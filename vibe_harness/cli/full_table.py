"""Every figure of a run as tables, with the values that its tests name and what else is known of each score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vibe_harness.cli.figures import (
    figure_words,
    interval_words,
    is_beside,
    is_shift,
    named_values,
    published_tests,
    range_words,
    title,
    value_words,
    words_of,
)
from vibe_harness.cli.output import echo
from vibe_harness.cli.summary import JudgedTask, judge, task_label
from vibe_harness.records import Score
from vibe_harness.report.html import counted, no_intervals
from vibe_harness.report.trust import trust_columns
from vibe_harness.report.verdict import p_value_words
from vibe_harness.stats.adjust import ALPHA
from vibe_harness.store.results import Results

SHIFT_HEADINGS = ("raw", "true shift", "95 %\ninterval", "chance\nreaches", "adjusted\np", "values\nkept")
FIGURE_HEADINGS = ("", "value", "95 % interval", "by chance", "p", "adjusted p")


def print_full(results: Results) -> None:
    """Print all scores of each task, its attributes below it, and what is known of each besides."""
    judged, _ = judge(results)
    shifts = [one for one in judged if is_shift(one.score)]
    figures = [one for one in judged if not is_shift(one.score)]
    if shifts:
        _print_shifts(shifts)
    if figures:
        _print_figures(figures)
    for one in judged:
        echo(f"\n{task_label(one.task)}")
        for line in _lines(results, one):
            echo(f"  {line}")


def _print_shifts(judged: Sequence[JudgedTask]) -> None:
    """The shift of each task, and below it those of its attributes. It fits 80 letters."""
    from rich.table import Table

    from vibe_harness.cli.terminal import add_row, print_rich

    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column("", overflow="fold")
    for heading in SHIFT_HEADINGS:
        table.add_column(heading, justify="right")
    for one in judged:
        for score in one.task.scores:
            if is_shift(score) and not is_beside(score):
                whole = score.attribute is None
                p_value = one.adjusted_p if whole else score.p_within_task
                name = task_label(one.task) if whole else f"  {words_of(score.attribute)}"
                add_row(table, [name, *_shift_cells(score, p_value)], bold=whole)
    echo("")
    print_rich(table)


def _shift_cells(score: Score, p_value: float | None) -> list[str]:
    kept = score.detail.get("kept_share")
    return [
        value_words(score),
        range_words(score, *score.bracket) if score.bracket else "",
        interval_words(score) or ("none" if score.detail.get("no_interval") else ""),
        "" if score.null_p95 is None else value_words(score, score.null_p95),
        "" if p_value is None else p_value_words(p_value),
        "" if kept is None else f"{kept:.0%}",
    ]


def _print_figures(judged: Sequence[JudgedTask]) -> None:
    """All figures of tasks that are measured by no shift."""
    from vibe_harness.cli.terminal import print_table

    rows = []
    for one in judged:
        rows.append([task_label(one.task), *[""] * (len(FIGURE_HEADINGS) - 1)])
        for score in one.task.scores:
            stands = (score.metric, score.attribute) == (one.score.metric, one.score.attribute)
            p_value = one.adjusted_p if stands else None
            rows.append([
                f"  {title(score)}" + (f": {score.attribute}" if score.attribute else ""),
                value_words(score),
                interval_words(score),
                "" if score.null_mean is None else value_words(score, score.null_mean),
                "" if score.p_value is None else p_value_words(score.p_value),
                "" if p_value is None else p_value_words(p_value),
            ])  # fmt: skip
    echo("")
    print_table(list(FIGURE_HEADINGS), rows)


def _lines(results: Results, one: JudgedTask) -> Iterator[str]:
    """Everything that is known of a task's scores besides."""
    task, whole = one.task, one.score
    yield f"{one.verdict.words}."
    yield from one.verdict.notes
    for name, group in task.groups.items():
        thoughts = f", {group.thoughts:,} with a thought" if group.thoughts else ""
        yield f"{name}: {counted(group.speakers, 'speaker')}, {counted(group.requests, 'request')}{thoughts}"
    yield from task.warnings
    for column in trust_columns(results, task):
        yield f"{column.heading}: {column.words}"
    if any(map(is_shift, task.scores)):
        yield from no_intervals(task.scores)
    yield from _test_lines(whole)
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
    if sentences := score.detail.get("over_sentences"):
        yield _over_sentences(sentences)
    if columns := score.detail.get("standardised_over"):
        yield f"evened out over {' and '.join(columns)}"
    yield from published_tests(score)


def _over_sentences(found: Mapping[str, Any]) -> str:
    """What holds for other sentences than those of the corpus."""
    count = counted(found["sentences"], "sentence")
    if found.get("low") is None:
        return f"for other sentences than the corpus has ({count}): {found.get('reason') or 'not known'}"
    return (
        f"for other sentences than the corpus has ({count}): true shift at least {max(found['low'], 0.0):.1f} of 100, "
        "with 95 % confidence"
    )


def _score_lines(score: Score) -> Iterator[str]:
    """What is known of one score: by group, of an attribute's values, of what the filter left out."""
    name = words_of(score.attribute)
    if is_beside(score):
        p_value = "" if score.p_value is None else f", p {p_value_words(score.p_value)} (not adjusted)"
        chance = "" if score.null_p95 is None else f", chance reaches {value_words(score, score.null_p95)}"
        yield f"{figure_words(score)}{chance}{p_value}"
    elif not is_shift(score) and score.detail.get("by_group"):
        yield figure_words(score, by_group=True)
    if share := score.detail.get("identical_share"):
        yield f"{share:.0%} of the responses repeat another one word for word"
    if values := named_values([score]):
        yield f"{name}: {'; '.join(values)}"
    left_out = (score.detail.get("filter") or {}).get("ntvd_with_other")
    if left_out is not None:
        yield f"{name}: {value_words(score, left_out)} with the values left out counted as one"
