"""`tasks new`, `models new`, `corpus new`: a skeleton to fill in, never over a file that is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from vibe_harness.cli.output import echo

FOLDER = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Your folder of cards, for --include-path. Default: where you are.",
)


@click.command(name="new")
@click.argument("name")
@FOLDER
def new_task(name: str, folder: Path) -> None:
    """Write a task to begin with: card NAME, its prompt, its extraction template and an alias file."""
    from vibe_harness.authoring import skeletons

    written = skeletons.new_task(name, folder)
    _tell(written, f"vibe-harness tasks check {written[0]}")


@click.command(name="new")
@click.argument("name")
@FOLDER
def new_model(name: str, folder: Path) -> None:
    """Write a model card to begin with, for a server that takes audio."""
    from vibe_harness.authoring import skeletons

    written = skeletons.new_model(name, folder)
    _tell(written, f"vibe-harness --model {written[0]} --tasks story --corpus demo --dry-run")


@click.command(name="new")
@click.argument("folder", type=click.Path(path_type=Path))
def new_corpus(folder: Path) -> None:
    """Write the manifest of a FOLDER of recordings (SPEAKER/CLIP.wav), its corpus card, and a data card to fill in."""
    from vibe_harness.authoring import skeletons

    written = skeletons.new_corpus(folder)
    _tell(written, f"vibe-harness corpus check {folder}{'' if '/' in str(folder) else '/'}")


def _tell(written: Sequence[Path], then: str) -> None:
    for path in written:
        echo(path)
    echo(f"Fill {'it' if len(written) == 1 else 'them'} in, then: {then}")
