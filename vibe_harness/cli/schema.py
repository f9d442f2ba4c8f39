"""`vibe-harness schema`: the JSON Schema of a card, or of the results, for editors and programs."""

from __future__ import annotations

import json

import click

from vibe_harness.cli.output import echo


@click.command(name="schema")
@click.argument("kind", type=click.Choice(["task", "model", "corpus", "results"]))
def command(kind: str) -> None:
    """Print the JSON Schema of task, model or corpus cards, or of results.json."""
    from vibe_harness.cards.schema import Card, ModelCard, TaskCard, card_schema
    from vibe_harness.corpora.card import CorpusCard
    from vibe_harness.pipeline.results import json_schema

    cards: dict[str, type[Card]] = {"task": TaskCard, "model": ModelCard, "corpus": CorpusCard}
    schema = card_schema(cards[kind]) if kind in cards else json_schema()
    echo(json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True))
