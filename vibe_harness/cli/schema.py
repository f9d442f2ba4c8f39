"""`vibe-harness schema`: the JSON Schema of a card, or of the results, for editors and programs."""

from __future__ import annotations

import json

import click

from vibe_harness.cli.output import echo


@click.command(name="schema")
@click.argument("kind", type=click.Choice(["task", "model", "corpus", "results"]))
def command(kind: str) -> None:
    """Print the JSON Schema of task, model or corpus cards, or of results.json."""
    from vibe_harness.api import schema

    echo(json.dumps(schema(kind), indent=2, ensure_ascii=False, sort_keys=True))
