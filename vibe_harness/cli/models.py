"""`vibe-harness models`: what models there are, and how one is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vibe_harness.cli.completion import MODEL
from vibe_harness.cli.new import new_model
from vibe_harness.cli.options import parse_model_args
from vibe_harness.cli.output import echo
from vibe_harness.cli.tasks import CLIP_TEXT, INCLUDE_PATH, loaded


@click.group(name="models")
def command() -> None:
    """List and show models, check what one is going to be given, or begin one."""


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
@click.argument("name", shell_complete=MODEL)
@INCLUDE_PATH
def show_model(name: str, include_path: tuple[Path, ...]) -> None:
    """The whole card of the model NAME."""
    import yaml

    from vibe_harness.cards.loading import CardIndex

    card = CardIndex(include_path).model(name)
    echo(yaml.safe_dump(card.model_dump(mode="json"), sort_keys=False, allow_unicode=True).rstrip())


@command.command(name="check")
@click.argument("name", shell_complete=MODEL)
@click.option("--model-args", multiple=True, callback=parse_model_args, help="Overrides for the model: name=value,...")
@click.option("--task", default="advisory", show_default=True, help="The task whose prompt is shown.")
@INCLUDE_PATH
def check_model(name: str, model_args: dict[str, Any], task: str, include_path: tuple[Path, ...]) -> None:
    """What the model NAME is going to be given: the final prompt, and the clip in it.

    Loads the model's processor where transformers is installed, but no weights, and says what it could not look at.
    """
    from vibe_harness.backends.preview import preview
    from vibe_harness.backends.protocol import pinned, with_overrides
    from vibe_harness.cards.loading import CardIndex

    index = CardIndex(include_path)
    card = pinned(with_overrides(index.model(name), model_args))
    (asked,) = index.tasks([task])
    longest = (
        "any length" if card.max_seconds is None else f"up to {card.max_seconds:g} s, longer ones: {card.long_clips}"
    )
    echo(f"{card.model}: {card.id}, revision {card.revision or 'not pinned'}, back end {card.backend}")
    echo(f"takes: {f'mono clips at {card.sample_rate} Hz, {longest}' if card.audio else 'text'}")
    if card.args.get("ignores_temperature"):
        echo("decoding: never greedy, for it ignores temperature")
    if card.args.get("temperature") is not None:
        echo(f"decoding: temperature {card.args['temperature']:g}, whatever the task says")
    for heading, words in preview(card, asked.prompt(next(iter(asked.card.prompts)), CLIP_TEXT)):
        echo(f"\n{heading}:\n{words}" if "\n" in words else f"{heading}: {words}")
