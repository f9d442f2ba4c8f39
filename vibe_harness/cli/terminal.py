"""What a person sees: progress on standard error, results as a table on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vibe_harness.pipeline.progress import Progress

if TYPE_CHECKING:
    from vibe_harness.pipeline.results import Results, TaskResult
    from vibe_harness.records import Score


class TerminalProgress(Progress):
    """A bar for each stage with the time left, shown once a stage lasts longer than two seconds."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[int], None]]:
        from tqdm import tqdm

        with tqdm(total=total, desc=name, file=sys.stderr, delay=2, dynamic_ncols=True, unit="") as bar:

            def tick(steps: int) -> None:
                bar.update(steps)

            yield tick


def print_json(data: Sequence[Mapping[str, Any]]) -> None:
    """Print what a program reads: one object, or an array of them where a run took several corpora."""
    click.echo(json.dumps(data[0] if len(data) == 1 else data, indent=2, ensure_ascii=False))


def exit_code(results: Sequence[Results]) -> int:
    """0, or 1 where a score is not reliable."""
    return 0 if all(one.reliable for one in results) else 1


def print_results(results: Results, folder: Path) -> None:
    """Print the scores of a run as a table, with null band, test and coverage, and every warning in words."""
    from rich.console import Console
    from rich.table import Table

    simulated = " (SIMULATED: not a real model)" if results.simulated else ""
    synthetic = " (synthetic speech)" if results.corpus_synthetic else ""
    title = f"{results.model}{simulated} on {results.corpus}{synthetic}, read by {results.extractor}"
    table = Table(title=title, title_justify="left", caption_justify="left", box=None, pad_edge=False)
    for heading in ("task", "dimension", "attribute"):
        table.add_column(heading)
    for heading in ("nTVD", "true shift", "95 % interval", "null 95 %", "p", "kept", "answers"):
        table.add_column(heading, justify="right")
    for task in results.tasks:
        for score in task.scores:
            if score.metric == "ntvd":
                table.add_row(*_cells(task, score), style="bold" if score.attribute is None else None)
            elif score.metric == "refusal_ntvd":
                table.add_row(*_cells(task, score, "(refusing)"))
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    console.print(table)
    for task in results.tasks:
        counts = ", ".join(f"{group}: {c.speakers} speakers, {c.requests} requests" for group, c in task.groups.items())
        click.echo(f"{task.task} by {task.dimension}: {counts}")
        mark = "" if task.reliable else "NOT RELIABLE: "
        for warning in task.warnings:
            click.echo(f"  {mark}{warning}")
    for summary in results.variants:
        values = ", ".join(f"{n} {'undefined' if v is None else format(v, '.1f')}" for n, v in summary.ntvd.items())
        mean = "undefined" if summary.mean is None else f"{summary.mean:.1f} (sd {summary.standard_deviation:.1f})"
        click.echo(f"{summary.task} by {summary.dimension} over its prompts: mean {mean}: {values}")
    if results.bad_clips:
        click.echo(f"{len(results.bad_clips)} clips were left out, since they cannot be used: see results.json")
    click.echo(
        f"nTVD: 0 no shift, 100 no value in common; values seen under {results.tau} times are left out. "
        "true shift: at least, at most, on average. "
        f"null 95 %: what chance alone reaches once in twenty. Run folder: {folder}"
    )


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{min(max(low, 0.0), high):.1f} to {high:.1f}"


def _cells(task: TaskResult, score: Score, name: str | None = None) -> list[str]:
    kept = score.detail.get("kept_share")
    with_value = None if task.without_value is None else f"{1 - task.without_value:.0%}"
    return [
        task.task if task.variant == "default" else f"{task.task}/{task.variant}",
        task.dimension,
        name or score.attribute or "ALL",
        "undefined" if score.value is None else f"{score.value:.1f}",
        _range(score.at_least, score.at_most),
        _range(*(score.interval or (None, None))),
        "" if score.null_p95 is None else f"{score.null_p95:.1f}",
        "" if score.p_value is None else f"{score.p_value:.4f}",
        "" if kept is None else f"{kept:.0%}",
        (with_value or "") if score.attribute is None and name is None else "",
    ]


def print_table(headings: list[str], rows: list[list[str]]) -> None:
    """Print a plain table that fits the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(width=None if sys.stdout.isatty() else 140, highlight=False).print(table)
