"""`vibe-harness leaderboard`: many runs as a folder of pages."""

from __future__ import annotations

from pathlib import Path

import click

from vibe_harness.cli.output import echo, tell


@click.command(name="leaderboard")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--output", required=True, type=click.Path(path_type=Path), help="Folder of the pages and files.")
@click.option("--include-simulated", is_flag=True, help="Show runs of simulated models too.")
@click.option("--include-published", is_flag=True, help="Show the papers' figures beside, marked as published.")
@click.option("--figures", is_flag=True, help="Draw each table too, as PDF and SVG for one and two columns.")
@click.option("--include-answers", is_flag=True, help="Add the page of each run: single answers, not to be published.")
def command(runs: tuple[Path, ...], output: Path, **options: bool) -> int:
    """Set the run folders RUNS beside one another: models against tasks, by corpus and dimension.

    Exit code 1 where something was left out; the rest is built.
    """
    from vibe_harness.cli.terminal import TerminalProgress
    from vibe_harness.report.leaderboard import make_leaderboard

    page, left_out = make_leaderboard(runs, output, TerminalProgress(), **options)
    for one in left_out:
        tell(f"vibe-harness: left out: {one.path}: {one.why}")
    echo(page)
    return 1 if left_out else 0
