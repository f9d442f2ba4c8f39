"""Options that several verbs share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from vibe_harness.errors import UserError


def split_commas(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> list[str]:
    """An option that takes a list, separated by commas, repeated, or both."""
    return [item.strip() for part in value for item in part.split(",") if item.strip()]


def parse_model_args(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, Any]:
    """`name=value,name=value`, values read as YAML scalars; a value that holds commas is given in brackets."""
    import yaml

    found: dict[str, Any] = {}
    for part in value:
        for item in _split_outside_brackets(part):
            name, equals, text = item.partition("=")
            if not equals or not name.strip():
                raise click.BadParameter(f"'{item}' is not of the form name=value")
            try:
                found[name.strip()] = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise click.BadParameter(f"'{text}' is not a value: {error}") from None
    return found


def _split_outside_brackets(text: str) -> list[str]:
    items, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            items.append(text[start:index])
            start = index + 1
    return [item for item in [*items, text[start:]] if item.strip()]


def read_config(context: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    """Options from a YAML file; what is typed on the command line wins. Unknown names are refused."""
    if value is None:
        return
    from vibe_harness.cards.yaml_file import read_yaml
    from vibe_harness.registry import did_you_mean

    source = read_yaml(value)
    known = {p.name: p for p in context.command.params if p.name and p.name != "config"}
    defaults: dict[str, Any] = {}
    for name, given in source.data.items():
        key = name.replace("-", "_")
        if key not in known:
            raise UserError(f"{source.place([name])}: unknown option '{name}'. {did_you_mean(key, known)}")
        if isinstance(given, Mapping):
            given = ",".join(f"{inner}={json.dumps(value)}" for inner, value in given.items())
        defaults[key] = [given] if getattr(known[key], "multiple", False) and not isinstance(given, list) else given
    context.default_map = {**(context.default_map or {}), **defaults}
