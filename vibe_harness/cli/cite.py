"""`vibe-harness cite`: a Methods paragraph of a run, and what it cites."""

from __future__ import annotations

from pathlib import Path

import click

from vibe_harness.cli.output import echo


@click.command(name="cite")
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path) -> None:
    """Print a Methods paragraph of the run folder RUN in LaTeX, and the BibTeX of the papers and of the tool."""
    from vibe_harness.api import cite

    echo(cite(run))
