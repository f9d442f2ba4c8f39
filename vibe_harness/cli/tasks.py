"""`vibe-harness tasks`: what tasks there are, and what one asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import click

from vibe_harness.cli.output import echo
from vibe_harness.errors import UserError

INCLUDE_PATH = click.option(
    "--include-path", multiple=True, type=click.Path(path_type=Path), help="Folder with your own cards."
)
K = TypeVar("K")
T = TypeVar("T")
CLIP_TEXT = "[what the clip says]"  # for prompts that quote it


@click.group(name="tasks")
def command() -> None:
    """List the tasks, or show one."""


@command.command(name="list")
@INCLUDE_PATH
@click.option("--dimension", help="Only tasks that compare this dimension.")
@click.option("--corpus", help="Only tasks that are meant for this corpus.")
@click.option("--kind", help="Only tasks of this kind.")
def list_tasks(include_path: tuple[Path, ...], dimension: str | None, corpus: str | None, kind: str | None) -> None:
    """One line a task: name, kind, dimensions with their corpora, attributes."""
    from vibe_harness.cards.loading import CardIndex
    from vibe_harness.cli.terminal import print_table

    index = CardIndex(include_path)
    rows = []
    tasks, broken = loaded(index.load_task, index.task_files().values())
    for task in tasks:
        card = task.card
        corpora = {name for names in card.dimensions.values() for name in names}
        if (dimension and dimension not in card.dimensions) or (corpus and corpus not in corpora):
            continue
        if kind and kind != card.kind:
            continue
        dimensions = "\n".join(f"{name}: {', '.join(names)}" for name, names in card.dimensions.items())
        rows.append([card.task, card.kind, card.description, dimensions, ", ".join(card.extraction.attributes)])
    print_table(["task", "kind", "what", "dimensions", "attributes"], rows)
    if broken:
        raise broken


@command.command(name="show")
@click.argument("name")
@INCLUDE_PATH
def show_task(name: str, include_path: tuple[Path, ...]) -> None:
    """The whole task NAME: its prompts rendered, and what each attribute may hold."""
    from vibe_harness.cards.loading import CardIndex

    for task in CardIndex(include_path).tasks([name]):
        card = task.card
        echo(f"{card.task} (version {card.version}, {card.kind}, digest {task.digest})\n{card.description}")
        echo(f"card: {task.path}")
        if card.notes:
            echo(card.notes)
        for variant in card.prompts:
            echo(f"\nprompt '{variant}':\n{task.prompt(variant, CLIP_TEXT)}")
        echo("\nattributes:")
        for attribute, spec in card.extraction.attributes.items():
            values = "open" if spec.values == "open" else ", ".join(spec.values)
            several = f", up to {spec.up_to}" if spec.up_to > 1 else ""
            aliases = f"; {len(task.aliases[attribute])} aliases in {spec.aliases}" if spec.aliases else ""
            echo(f"  {attribute}: {values}{several}{aliases}")
        for dimension, names in card.dimensions.items():
            echo(f"compared by {dimension}: {', '.join(names)}")
        echo(f"up to {card.generation.max_tokens} tokens, temperature {card.generation.temperature:g}")
        echo(f"metrics: {', '.join(card.metrics)}")


def loaded(load: Callable[[K], T], keys: Iterable[K]) -> tuple[list[T], UserError | None]:
    """What loads, and one error that tells of all that does not: a broken card hides no other, and is not hidden."""
    found, faults = [], []
    for key in keys:
        try:
            found.append(load(key))
        except UserError as error:
            faults.append(str(error))
    return found, UserError("broken cards are not listed:\n" + "\n".join(faults)) if faults else None
