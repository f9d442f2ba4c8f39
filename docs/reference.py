"""Writes the reference of the command line and of the cards from the code, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from vibe_harness.authoring.prompt_words import prompt_words
from vibe_harness.backends.protocol import BACKENDS, Options
from vibe_harness.cards.schema import Card, ModelCard, TaskCard, card_schema
from vibe_harness.cli.main import VERBS, cli
from vibe_harness.corpora.card import CorpusCard
from vibe_harness.corpora.importers.base import IMPORTERS
from vibe_harness.extraction.protocol import EXTRACTORS
from vibe_harness.metrics.registry import METRICS
from vibe_harness.store.results import json_schema

CARDS: dict[str, type[Card]] = {"task": TaskCard, "model": ModelCard, "corpus": CorpusCard}


def write(folder: Path) -> None:
    """Write cli.md, cards.md, registered.md and results.md into a folder."""
    folder.mkdir(exist_ok=True)
    pages = {"cli": cli_page(), "cards": cards_page(), "registered": registered_page(), "results": results_page()}
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def cli_page() -> str:
    lines = ["# Command line", "", "Every verb takes `--help`. Underscores are read as dashes.", ""]
    with click.Context(cli, info_name="vibe-harness") as context:
        for verb in VERBS:
            command = cli.get_command(context, verb)
            assert command is not None
            lines += _command(command, context, f"vibe-harness {verb}", 2)
    return "\n".join([*lines, EXIT_CODES])


EXIT_CODES = """
## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | done, but a score is not reliable, or a clip cannot be used |
| 2 | a mistake in what was asked: the message says what, where, and what to do |
| 3 | the engine failed; what was answered is kept |
| 4 | the disk is full, or the folder is read-only; what was stored is kept |
| 130 | stopped; the same command goes on |
"""


def _command(command: click.Command, parent: click.Context, path: str, level: int) -> Iterator[str]:
    with click.Context(command, info_name=path.rpartition(" ")[2], parent=parent) as context:
        yield from (f"{'#' * level} {path}", "", _prose(command.help), "")
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                yield from _command(inner, context, f"{path} {name}", level + 1)
            return
        yield from ("```text", " ".join([path, *command.collect_usage_pieces(context)]), "```", "")
        options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
        if options:
            yield from ("| option | what it does |", "|---|---|")
            yield from (f"| {_spelled(option, context)} | {_told(option)} |" for option in options)
            yield ""


def _spelled(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    return names if option.is_flag else f"{names} `{option.make_metavar(context)}`".replace("|", r"\|")


def _told(option: click.Option) -> str:
    extras = ["required"] if option.required else []
    if option.show_default and not option.is_flag:
        extras.append(f"default {option.default}")
    return _cell(" ".join([option.help or "", f"({', '.join(extras)})" if extras else ""]).strip())


def cards_page() -> str:
    lines = [
        "# Cards", "",
        "Cards are YAML files; unknown fields are refused. `vibe-harness schema task`, `model` or `corpus` prints the "
        "JSON Schema, with which an editor completes and checks a card. Every card may `include` other files of its "
        "folder and lay its own fields over theirs.", "",
    ]  # fmt: skip
    for kind, card in CARDS.items():
        lines += [f"## {kind.capitalize()} card", "", _prose(card.__doc__), ""]
        lines += _fields(card_schema(card), 3)
    return "\n".join(lines)


def _fields(schema: Mapping[str, Any], level: int) -> Iterator[str]:
    """A table of a schema's fields, then one for each part that it is made of, under headings of that level."""
    required = {name for option in schema.get("anyOf", []) for name in option.get("required", [])}
    required = (required - {"include"}) | set(schema.get("required", []))
    yield from _table(schema["properties"], required)
    for name, part in schema.get("$defs", {}).items():
        if "properties" in part:
            yield from (f"{'#' * level} {_words(name)}", "", _prose(part.get("description")), "")
            yield from _table(part["properties"], set(part.get("required", [])))


def _table(properties: Mapping[str, Any], required: set[str]) -> Iterator[str]:
    yield from ("| field | holds | what it says |", "|---|---|---|")
    for name, field in properties.items():
        default = field.get("default")
        told = field.get("description", "")
        if name in required:
            told = f"{told} (required)".strip()
        elif default not in (None, {}, [], ""):
            told = f"{told} (default `{default}`)".strip()
        yield f"| `{name}` | {_cell(_kind(field))} | {_cell(told)} |"
    yield ""


def _kind(field: Mapping[str, Any]) -> str:
    """The type of a field, in words."""
    if "$ref" in field:
        return _words(field["$ref"].rpartition("/")[2])
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    for key in ("anyOf", "allOf"):
        if key in field:
            return " or ".join(dict.fromkeys(_kind(part) for part in field[key] if part.get("type") != "null"))
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    if field.get("type") == "object":
        inner = field.get("additionalProperties")
        return f"mapping to {_kind(inner)}" if isinstance(inner, Mapping) else "mapping"
    return {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(
        str(field.get("type")), str(field.get("type", "anything"))
    )


def registered_page() -> str:
    lines = [
        "# Back ends, metrics, extractors, importers", "",
        "What a card may name. Other packages add theirs: see [Adding code](../adding-code.md).", "",
        "## Back ends", "",
        "`args` of a model card can change an answer and are part of every response's key; `connection` holds what "
        "cannot.", "",
    ]  # fmt: skip
    for name in BACKENDS.names():
        engine = BACKENDS.get(name)
        lines += [f"### {name}", "", _first(engine.__doc__), ""]
        for part, options in (("args", engine.Arguments), ("connection", engine.Connection)):
            lines += _options(part, options)
    lines += ["## Metrics", "", "| name | what it gives | for tasks of kind |", "|---|---|---|"]
    for name in METRICS.names():
        metric = METRICS.get(name)
        lines.append(f"| `{name}` | {_cell(metric.summary)} | {', '.join(metric.kinds)} |")
    lines += ["", "## Extractors", "", "| name | what it does |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(_first(EXTRACTORS.get(name).__doc__))} |" for name in EXTRACTORS.names()]
    lines += ["| a text model's card | asks that model, with constrained JSON |", "", "## Importers", ""]
    lines += ["| name | corpus | licence | needs |", "|---|---|---|---|"]
    for name in IMPORTERS.names():
        one = IMPORTERS.get(name)
        lines.append(f"| `{name}` | {_cell(one.title)} | {_cell(one.licence)} | {_cell(one.looks_for)} |")
    lines += ["", "## Words that a prompt should not hold", "", _prompt_words(), ""]
    return "\n".join(lines)


def _options(part: str, options: type[Options]) -> list[str]:
    schema = options.model_json_schema()
    if not schema.get("properties"):
        return []
    return [f"`{part}`:", "", *_table(schema["properties"], set(schema.get("required", [])))]


def _prompt_words() -> str:
    by_reason: dict[str, list[str]] = {}
    for word, reason in prompt_words().reasons.items():
        by_reason.setdefault(reason, []).append(word.replace("*", r"\*"))
    return "\n\n".join(f"**{reason}:** {', '.join(sorted(words))}" for reason, words in by_reason.items())


def results_page() -> str:
    schema = json_schema()
    return "\n".join([
        "# Results", "",
        "`results.json` of a run folder, what `--json` prints, and what `vibe_harness.evaluate` returns.", "",
        _prose(schema.get("description")), "", *_fields(schema, 2),
    ])  # fmt: skip


def _words(name: str) -> str:
    """A class's name in words: "GroupCoverage" -> "group coverage"."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


def _first(text: str | None) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join(_prose(text).split("\n\n")[0].split())


def _prose(text: str | None) -> str:
    import inspect

    return inspect.cleandoc(text or "").replace("<", "&lt;")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;").replace("*.", r"\*.")
