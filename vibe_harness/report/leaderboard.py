"""From run folders to the pages of a leaderboard: what the command, a study and the Python interface all do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vibe_harness.errors import UserError
from vibe_harness.progress import Progress
from vibe_harness.report.board_building import build_board
from vibe_harness.report.board_runs import ExcludedRun, read_entries
from vibe_harness.report.published_figures import published_beside, published_blocks
from vibe_harness.report.site import write_site


def make_leaderboard(
    runs: Sequence[Path],
    output: Path,
    progress: Progress,
    *,
    include_simulated: bool = False,
    include_published: bool = False,
    figures: bool = False,
    include_answers: bool = False,
) -> tuple[Path, tuple[ExcludedRun, ...]]:
    """Set runs beside one another, as a folder of pages. Returns the first page, and what is not shown.

    The arguments are the options of `vibe-harness leaderboard`. Raises UserError, naming every run that was left out,
    where there is nothing to show.
    """
    entries, left_out = read_entries(runs, progress, simulated=include_simulated)
    board = build_board(entries, left_out, published_blocks() if include_published else ())
    if not board.blocks:
        lines = "".join(f"\n{one.path}: {one.why}" for one in board.left_out)
        raise UserError(f"nothing to show: name a run folder with scores, or ask for --include-published{lines}")
    beside = published_beside() if include_published else ()
    return write_site(
        output, board, entries, beside, progress, figures=figures, answers=include_answers
    ), board.left_out
