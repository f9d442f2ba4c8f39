"""`vibe-harness report`: the page of one run."""

from __future__ import annotations

from pathlib import Path

import click

from vibe_harness.cli.output import echo


@click.command(name="report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="Default: report.html in the run folder.")
def command(run: Path, output: Path | None) -> None:
    """Write the report of the run folder RUN as one HTML file."""
    from vibe_harness.pipeline.run_folder import RunFolder
    from vibe_harness.report.run_page import write_run_page

    folder = RunFolder(run)
    folder.record()  # before a lock is laid into what is no run folder
    path = output or run / "report.html"
    with folder.locked():
        write_run_page(folder, path)
    echo(path)
