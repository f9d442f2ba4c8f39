"""`vibe-harness report`: the page of one run."""

from __future__ import annotations

from pathlib import Path

import click

from vibe_harness.cli.output import echo


@click.command(name="report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="Default: report.html in the run folder.")
@click.option("--figures", type=click.Path(path_type=Path), help="Folder for a figure of each attribute, SVG and PNG.")
def command(run: Path, output: Path | None, figures: Path | None) -> None:
    """Write the report of the run folder RUN as one HTML file, and figures for a paper where asked for."""
    from vibe_harness.cli.terminal import TerminalProgress
    from vibe_harness.pipeline.run_folder import RunFolder
    from vibe_harness.report.run_page import write_run_page

    path = output or RunFolder(run).page
    progress = TerminalProgress()
    write_run_page(RunFolder(run), path, progress)
    echo(path)
    if figures:
        from vibe_harness.report.run_figures import write_run_figures

        for drawn in write_run_figures(RunFolder(run), figures, progress):
            echo(drawn)
