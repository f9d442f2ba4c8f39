"""The figures of one run, for a paper: a distribution by group for each attribute that has a score."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from vibe_harness.cards.digest import digest
from vibe_harness.progress import Progress
from vibe_harness.report.figures import distribution_figure, save_figures
from vibe_harness.report.shifts import shifts_of
from vibe_harness.store.results import read_verified_results
from vibe_harness.store.run_folder import RunFolder


def write_run_figures(folder: RunFolder, output: Path, progress: Progress) -> list[Path]:
    """Write each figure as PDF and SVG for one and two columns of a paper; returns the files.

    They are named after task, prompt, dimension and attribute.

    Raises UserError where the run has no scores, or a file cannot be written.
    """
    results = read_verified_results(folder)
    drawn = [(task, shift) for task in results.tasks for shift in shifts_of(task)]
    files: list[Path] = []
    with progress.stage("drawing figures", len(drawn)) as tick:
        for task, shift in drawn:
            name = f"{task.task}-{task.variant}-{task.dimension}-{shift.attribute}"
            title = f"{results.model} on {results.corpus}: {task.task} by {task.dimension}"
            plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
            plain += "" if plain == name else f"-{digest(name, 6)}"  # two columns in other letters stay two files
            files += save_figures(partial(distribution_figure, title, shift), output / plain)
            tick(1)
    return files
