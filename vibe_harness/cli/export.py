"""`vibe-harness export`: a finished run in the formats of others."""

from __future__ import annotations

from pathlib import Path

import click

from vibe_harness.cli.output import echo


@click.command(name="export")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "form",
    required=True,
    type=click.Choice(["every-eval-ever", "eval-results", "dataset"]),
    help="A record for Every Eval Ever; a file of .eval_results/ for a model on the hub; a data set with its card.",
)
@click.option("--output-path", required=True, type=click.Path(path_type=Path), help="Folder to write into.")
@click.option("--organization", help="every-eval-ever: who ran it.")
@click.option("--benchmark", help="eval-results: the data set on the hub that has the leaderboard, ORG/NAME.")
def command(run: Path, form: str, output_path: Path, organization: str | None, benchmark: str | None) -> None:
    """Write the finished run in the folder RUN in a format that others read."""
    from vibe_harness.api import export_run

    path, left_out = export_run(run, form, output_path, organization=organization, benchmark=benchmark)
    echo(path)
    for line in left_out:
        echo(f"Left out: {line}")
