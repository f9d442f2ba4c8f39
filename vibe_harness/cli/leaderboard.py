"""`vibe-harness leaderboard`: many runs as a folder of pages."""

from __future__ import annotations

from pathlib import Path

import click

from vibe_harness.cli.output import echo, plain
from vibe_harness.errors import UserError


@click.command(name="leaderboard")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--output", required=True, type=click.Path(path_type=Path), help="Folder of the pages and files.")
@click.option("--include-simulated", is_flag=True, help="Show runs of simulated models too.")
@click.option("--include-published", is_flag=True, help="Show the papers' figures beside, marked as published.")
@click.option("--include-answers", is_flag=True, help="Add the page of each run: single answers, not to be published.")
def command(
    runs: tuple[Path, ...], output: Path, include_simulated: bool, include_published: bool, include_answers: bool
) -> int:
    """Set the run folders RUNS beside one another: models against tasks, by corpus and dimension.

    Exit code 1 where something was left out; the rest is built.
    """
    from vibe_harness.cli.terminal import TerminalProgress
    from vibe_harness.report.board import build_board
    from vibe_harness.report.board_runs import read_entries
    from vibe_harness.report.published import published_beside, published_blocks
    from vibe_harness.report.site import write_site

    progress = TerminalProgress()
    entries, left_out = read_entries(runs, progress, simulated=include_simulated)
    board = build_board(entries, left_out, published_blocks() if include_published else ())
    for one in board.left_out:
        click.echo(f"vibe-harness: left out: {plain(f'{one.path}: {one.why}')}", err=True)
    if not board.blocks:
        raise UserError("nothing to show: name at least one run folder with scores, or ask for --include-published")
    beside = published_beside() if include_published else ()
    echo(write_site(output, board, entries, beside, progress, answers=include_answers))
    return 1 if board.left_out else 0
