"""`vibe-harness push`: a finished run on the hub."""

from __future__ import annotations

from pathlib import Path

import click

from vibe_harness.cli.output import echo


@click.command(name="push")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("target", metavar="hub:ORG/NAME")
@click.option("--public", is_flag=True, help="Make a new data set public; it is private otherwise.")
def command(run: Path, target: str, public: bool) -> None:
    """Upload the finished run in the folder RUN to the hub, as a data set with its card."""
    from vibe_harness.api import push_run

    echo(push_run(run, target, public=public))
