"""`vibe-harness schema`: the JSON Schema of a card, or of the results, for editors and programs."""

from __future__ import annotations

import json

import click

from vibe_harness.cli.output import echo


@click.command(name="schema")
@click.argument("kind", type=click.Choice(["task", "model", "results"]))
def command(kind: str) -> None:
    """Print the JSON Schema of task cards, model cards or results.json."""
    from vibe_harness.cards.schema import ModelCard, TaskCard, card_schema
    from vibe_harness.pipeline.results import json_schema

    schemas = {"task": lambda: card_schema(TaskCard), "model": lambda: card_schema(ModelCard), "results": json_schema}
    echo(json.dumps(schemas[kind](), indent=2, ensure_ascii=False, sort_keys=True))
