"""`vibe-harness study`: many models, tasks and corpora from one file."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vibe_harness.cli.options import parse_model_args, run_option
from vibe_harness.cli.output import echo

if TYPE_CHECKING:
    from vibe_harness.studies.study import CellProgress


def _shard(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d{0,3})/([1-9]\d{0,3})", value or "1/1")
    if not found or int(found[1]) > int(found[2]):
        raise click.BadParameter(f"'{value}' is not of the form 3/8: the third of eight")
    return int(found[1]), int(found[2])


@click.command(name="study")
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--shard", callback=_shard, help="Run this part only: 3/8 is the third of eight.")
@click.option("--status", is_flag=True, help="Show what is done, running, failed and left; run nothing.")
@click.option("--dry-run", is_flag=True, help="Show what would be asked, what it may cost and how long it takes.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="With --dry-run: answers a second, for the minutes.",
)
@click.option(
    "--merge",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Copy over what another machine did: its output folder. Runs nothing.",
)
@click.option("--executor", default="local", show_default=True, help="Where engines run: local or ray.")
@click.option(
    "--executor-args", multiple=True, callback=parse_model_args, help="For ray: workers=8,gpus=1,address=auto"
)
@click.option("--trust-remote-code", is_flag=True, help="Run Python code that a card names: a metric's, a model's.")
@run_option("same_model")
@click.option("--allow-serve", is_flag=True, help="Run the command by which a card starts its own server.")
@click.option("--include-simulated", is_flag=True, help="Show simulated models on the leaderboard too.")
@click.option("--output-path", type=click.Path(path_type=Path), help="Default: runs/NAME, NAME being the study's.")
@click.option("--json", "as_json", is_flag=True, help="Print the state of each cell as JSON.")
def command(
    study: Path,
    shard: tuple[int, int],
    status: bool,
    dry_run: bool,
    speed: float,
    merge: tuple[Path, ...],
    executor: str,
    executor_args: Mapping[str, Any],
    trust_remote_code: bool,
    same_model: bool,
    allow_serve: bool,
    include_simulated: bool,
    output_path: Path | None,
    as_json: bool,
) -> int:
    """Run what is missing of the study in the file STUDY: every model, task and corpus that it names.

    What is done is set beside one another in the folder leaderboard, but for a single shard of several.

    Exits with 0 where all of it (or of the shard) is done and reliable, else with 1.
    """
    from vibe_harness.cli.stopping import kept_words, when_stopped
    from vibe_harness.cli.study_dry_run import show_study_estimate
    from vibe_harness.cli.terminal import TerminalProgress, print_json
    from vibe_harness.studies.estimating import estimate_study
    from vibe_harness.studies.study import cells_of, progress_of, read_study, shard_of
    from vibe_harness.studies.study_folder import StudyFolder, run_cells

    asked = read_study(study)
    output = output_path or Path("runs") / asked.study
    kept = StudyFolder(output, asked)
    cells = cells_of(asked, output)
    own = shard_of(cells, *shard) if shard != (1, 1) else cells
    if dry_run:
        estimates = estimate_study(own, TerminalProgress(), trust_remote_code=trust_remote_code)
        show_study_estimate(estimates, speed, as_json)
        return 0
    for other in merge:
        copied, here = kept.merge(other)
        if not as_json:
            echo(f"{other}: {copied} run folders copied, {here} were here already")
    if not (status or merge):
        with when_stopped(lambda: kept_words([cell.folder for cell in own], output)):
            run_cells(
                own, kept, TerminalProgress(),
                executor=executor, executor_args=executor_args, trust_remote_code=trust_remote_code,
                same_model=same_model,
                allow_serve=allow_serve,
            )  # fmt: skip
    failures = kept.failures()
    found = [progress_of(cell, failures) for cell in own]
    if as_json:
        print_json([{"study": asked.study, "folder": str(output), "cells": [_plain(one) for one in found]}])
    else:
        _show(found, output)
    if own is cells and not status:
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            _leaderboard(found, output, include_simulated)
    return 0 if all(one.state == "done" and one.reliable for one in found) else 1


def _leaderboard(found: Sequence[CellProgress], output: Path, include_simulated: bool) -> None:
    """Set the runs that are done beside one another."""
    from vibe_harness.cli.terminal import TerminalProgress
    from vibe_harness.report.leaderboard import make_leaderboard
    from vibe_harness.store.run_folder import RunFolder

    done = [one.cell.folder for one in found if one.state == "done"]
    runs = [folder for folder in done if include_simulated or not RunFolder(folder).record().model.simulated]
    if not runs:
        if done:
            echo("No leaderboard: all these models are simulated, and shown only with --include-simulated")
        return
    page, _ = make_leaderboard(runs, output / "leaderboard", TerminalProgress(), include_simulated=include_simulated)
    echo(page)


def _plain(one: CellProgress) -> dict[str, object]:
    return {
        "cell": one.cell.name, "state": one.state, "answered": one.answered, "planned": one.planned, "why": one.why,
        "reliable": one.reliable,
    }  # fmt: skip


def _show(found: Sequence[CellProgress], output: Path) -> None:
    for one in found:
        if one.state != "done":
            of = "not begun" if one.planned is None else f"{one.answered:,} of {one.planned:,} answered"
            echo(f"{one.state:8} {one.cell.name}: {of}{f': {one.why}' if one.why else ''}")
        elif not one.reliable:
            echo(f"done     {one.cell.name}: not reliable: see {one.cell.folder / 'results.json'}")
    counts = Counter(str(one.state) for one in found)
    echo(", ".join(f"{counts[state]} {state}" for state in ("done", "running", "failed", "left")) + f" in {output}")
