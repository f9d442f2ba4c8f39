"""`vibe-harness models`: what models there are, and how one is run."""

from __future__ import annotations

from pathlib import Path

import click

from vibe_harness.cli.new import new_model
from vibe_harness.cli.output import echo
from vibe_harness.cli.tasks import INCLUDE_PATH, loaded


@click.group(name="models")
def command() -> None:
    """List and show models, or begin one."""


command.add_command(new_model)


@command.command(name="list")
@INCLUDE_PATH
def list_models(include_path: tuple[Path, ...]) -> None:
    """One line a model: name, back end, id on the hub, licence."""
    from vibe_harness.cards.loading import CardIndex
    from vibe_harness.cli.terminal import print_table

    index = CardIndex(include_path)
    cards, broken = loaded(index.model, index.model_names())
    rows = [[c.model, c.backend, c.id, "audio" if c.audio else "text", c.licence or ""] for c in cards]
    print_table(["model", "back end", "id", "takes", "licence"], rows)
    if broken:
        raise broken


@command.command(name="show")
@click.argument("name")
@INCLUDE_PATH
def show_model(name: str, include_path: tuple[Path, ...]) -> None:
    """The whole card of the model NAME."""
    import yaml

    from vibe_harness.cards.loading import CardIndex

    card = CardIndex(include_path).model(name)
    echo(yaml.safe_dump(card.model_dump(mode="json"), sort_keys=False, allow_unicode=True).rstrip())
