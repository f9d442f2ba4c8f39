"""What a person sees: progress on standard error, results as a table on standard output."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vibe_harness.cli.output import StandardError, echo, plain, write
from vibe_harness.progress import Progress

if TYPE_CHECKING:
    from rich.table import Table

    from vibe_harness.records import Score
    from vibe_harness.store.results import Results, TaskResult


MOST_VALUES = 3
"""Values told for an attribute, those that add most to its score."""


class TerminalProgress(Progress):
    """A bar for each stage with the time left, shown once a stage lasts longer than two seconds."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[int], None]]:
        from tqdm import tqdm

        with tqdm(total=total, desc=name, file=StandardError(), delay=2, dynamic_ncols=True, unit="") as bar:

            def tick(steps: int) -> None:
                bar.update(steps)

            yield tick

    def note(self, line: str) -> None:
        """Print a line to standard error, where it stands beside no result."""
        StandardError().write(plain(line) + "\n")


def print_json(data: Sequence[Mapping[str, Any]]) -> None:
    """Print what a program reads: one object, or an array of them where a run took several corpora."""
    echo(json.dumps(data[0] if len(data) == 1 else data, indent=2))  # ASCII: whole on any terminal


def exit_code(results: Sequence[Results]) -> int:
    """0, or 1 where a score is not reliable."""
    return 0 if all(one.reliable for one in results) else 1


def print_results(results: Results, folder: Path) -> None:
    """Print the scores of a run as a table, with null band, test and coverage, and every warning in words."""
    from vibe_harness.cli.choice_table import HEADINGS, choice_rows, is_choice
    from vibe_harness.report.html import counted, no_intervals

    choice = [task for task in results.tasks if is_choice(task)]
    _print_title(results)
    if len(choice) < len(results.tasks):
        _print_shifts(results)
    if choice:
        print_table(list(HEADINGS), choice_rows(choice))
    for task in results.tasks:
        counts = ", ".join(
            f"{group}: {counted(c.speakers, 'speaker')}, {counted(c.requests, 'request')}"
            + (f", {c.thoughts} with a thought" if c.thoughts else "")
            for group, c in task.groups.items()
        )
        mark = "" if task.reliable else "NOT RELIABLE: "
        echo(f"{task.task} by {task.dimension}: {mark}{counts}")
        for warning in task.warnings:
            echo(f"  {warning}")
        if not is_choice(task):
            if results.extractor == "rules" and task.without_value == 1:
                echo("  The extractor 'rules' reads labelled lines alone ('Occupation: nurse'); free text is read by a "
                     "text model: --extractor NAME")  # fmt: skip
            for line in (*no_intervals(task.scores), *(line for score in task.scores for line in _beside(score))):
                echo(f"  {line}")
    for summary in results.variants:
        values = ", ".join(f"{n} {'undefined' if v is None else format(v, '.1f')}" for n, v in summary.ntvd.items())
        mean = "undefined" if summary.mean is None else f"{summary.mean:.1f} (sd {summary.standard_deviation:.1f})"
        echo(f"{summary.task} by {summary.dimension} over its prompts: mean {mean}: {values}")
    if results.modality != "audio":
        echo(f"Modality {results.modality}: the model was given words in place of the clip")
    if results.answer_by != "generate":
        echo("Answered by likelihood: by the option whose letter the model gives the highest probability")
    if results.batch_check:
        echo(
            f"Batch invariance: {results.batch_check.different} of {results.batch_check.requests} answers differ when "
            "asked one by one"
        )
    if results.hearing_check == "left out":
        echo("The hearing check was left out: whether the model hears its clips was not asked")
    if results.long_clips:
        counts = ", ".join(f"{count} {done}" for done, count in results.long_clips.items())
        echo(f"Clips longer than the model takes: {counts}")
    if results.bad_clips:
        echo(f"{len(results.bad_clips)} clips were left out, since they cannot be used: see results.json")
    if len(choice) < len(results.tasks):
        left_out = f"values seen under {results.tau} times are left out" if results.tau > 1 else "every value counts"
        echo(
            f"nTVD: 0 no shift, 100 no value in common; {left_out}. "
            "true shift: at least, at most, on average; at least can fall under 0 by chance. "
            "null 95 %: what chance alone reaches once in twenty. "
            "Values: the group's share less the mean over groups."
        )
    if choice:
        echo("without effect: what the score comes to where nothing hangs on the groups; results.json names the tests")
    echo(f"Run folder: {folder}")


def _print_title(results: Results) -> None:
    simulated = " (SIMULATED: not a real model)" if results.simulated else ""
    synthetic = " (synthetic speech)" if results.corpus_synthetic else ""
    echo(f"{results.model}{simulated} on {results.corpus}{synthetic}, read by {results.extractor}")


def _print_shifts(results: Results) -> None:
    """The table of nTVD scores: a task's own, and below it those of its attributes. It fits 80 letters."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, collapse_padding=True)
    table.add_column("", overflow="fold")
    for heading in ("nTVD", "true shift", "95 %\ninterval", "null\n95 %", "p", "kept", "answers"):
        table.add_column(heading, justify="right")
    for task in results.tasks:
        for score in task.scores:
            if score.metric == "ntvd":
                _add_row(table, _cells(task, score), bold=score.attribute is None)
            elif score.metric == "refusal_ntvd":
                _add_row(table, _cells(task, score))
    _print(table, width=100)


def _beside(score: Score) -> list[str]:
    """What is told of a score below the table: what it was tested by besides, and which values carry the shift."""
    from vibe_harness.stats.adjust import ALPHA

    of = f" of {score.attribute}" if score.attribute else ""
    lines = []
    if score.smallest_p is not None and score.smallest_p > ALPHA and not score.attribute:
        lines.append(
            f"{score.metric}: no shift can be found: with so few speakers p is at least {score.smallest_p:.2g}"
        )
    if score.metric not in ("ntvd", "refusal_ntvd", "diversity") and score.value is not None:
        lines.append(f"{score.metric}{of}: {score.value:.4g}")
    if not score.attribute and score.detail.get("standardised_over"):
        lines.append(f"{score.metric}: evened out over {' and '.join(score.detail['standardised_over'])}")
    for name, found in score.detail.get("tests", {}).items():
        if score.attribute is None and found["p_value"] is not None:
            lines.append(f"test of {name} ({found['permuted']} exchanged): nTVD {found['value']:.1f}, "
                         f"null 95 % {found['null_p95']:.1f}, p {found['p_value']:.4f}")  # fmt: skip
    if share := score.detail.get("identical_share"):
        lines.append(f"{share:.0%} of the responses repeat another one word for word")
    if score.metric == "ntvd" and score.attribute:
        shown = [shift for shift in map(_shift, score.detail.get("contributions", [])) if shift][:MOST_VALUES]
        if shown:
            lines.append(f"{score.attribute}: {'; '.join(shown)}")
    return lines


def _shift(part: Mapping[str, Any]) -> str:
    """A named value with the group that turns to it or away from it most; empty for a value that is not named."""
    named = {group: one for group, one in part["by_group"].items() if one.get("named")}
    if not named:
        return ""
    group = max(sorted(named), key=lambda name: abs(named[name]["difference"]))
    ends = named[group]["named_interval"]
    interval = "" if ends is None else f" ({ends[0]:+.1f} to {ends[1]:+.1f})"
    return f"{part['value']}: {group} {named[group]['difference']:+.1f} points{interval}"


def _cells(task: TaskResult, score: Score) -> list[str]:
    from vibe_harness.report.html import interval_words, shift_words, task_words

    whole = score.metric == "ntvd" and score.attribute is None
    kept = score.detail.get("kept_share")
    with_value = None if task.without_value is None else f"{1 - task.without_value:.0%}"
    return [
        task_words(task) if whole else f"  {score.attribute or '(refusing)'}",
        "undefined" if score.value is None else f"{score.value:.1f}",
        shift_words(score),
        interval_words(score),
        "" if score.null_p95 is None else f"{score.null_p95:.1f}",
        "" if score.p_value is None else f"{score.p_value:.4f}",
        "" if kept is None else f"{kept:.0%}",
        (with_value or "") if whole else "",
    ]


def print_table(headings: list[str], rows: list[list[str]]) -> None:
    """Print a plain table that fits the terminal."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        _add_row(table, row)
    _print(table, width=140)


def _add_row(table: Table, cells: Sequence[str], bold: bool = False) -> None:
    """Add a row of words as they are: a group may be called "[/b]", and that is no markup."""
    from rich.text import Text

    table.add_row(*(Text(plain(cell)) for cell in cells), style="bold" if bold else None)


def _print(table: Table, width: int) -> None:
    """Print a table; `width` letters wide where the output is no terminal.

    Through click, as all the rest: rich would end the program itself where the reader goes away.
    """
    from rich.console import Console

    console = Console(
        file=io.StringIO(), width=shutil.get_terminal_size().columns if sys.stdout.isatty() else width,
        force_terminal=sys.stdout.isatty(), highlight=False,
    )  # fmt: skip
    with console.capture() as captured:
        console.print(table)
    write(captured.get())
