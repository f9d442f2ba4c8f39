"""`vibe-harness report`: the page of one run."""

from __future__ import annotations

from pathlib import Path

import click

from vibe_harness.cli.output import echo


@click.command(name="report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="Default: report.html in the run folder.")
@click.option("--figures", type=click.Path(path_type=Path), help="Folder for a figure of each attribute, PDF and SVG.")
def command(run: Path, output: Path | None, figures: Path | None) -> None:
    """Write the report of the run folder RUN as one HTML file, and figures for a paper where asked for."""
    from vibe_harness.api import write_report
    from vibe_harness.cli.terminal import TerminalProgress

    echo(write_report(run, output, figures, TerminalProgress()))
    if figures:
        echo(figures)
