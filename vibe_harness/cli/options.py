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


also_test = click.option(
    "--also-test",
    multiple=True,
    callback=split_commas,
    help="Published tests to show beside the default: version-1 (utterances), version-2 (speakers, no strata).",
)


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
            except (yaml.YAMLError, ValueError, RecursionError) as error:
                said = error.problem if isinstance(error, yaml.MarkedYAMLError) else error
                raise click.BadParameter(f"'{text[:100]}' is not a value: {said}") from None
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
    known = {_spoken(p): p for p in context.command.params if p.name != "config"}
    defaults: dict[str, Any] = {}
    for name, given in source.data.items():
        option = known.get(name.replace("_", "-"))
        if option is None:
            raise UserError(f"{source.place([name])}: unknown option '{name}'. {did_you_mean(name, known)}")
        if isinstance(option, click.Option) and option.is_flag:
            if not isinstance(given, bool):
                raise UserError(f"{source.place([name])}: '{name}' is true or false")
            defaults[str(option.name)] = given == bool(option.flag_value)  # of --no-NAME the value is false
            continue
        if isinstance(given, Mapping):
            given = [f"{inner}={json.dumps(value, default=str)}" for inner, value in given.items()]
        several = isinstance(option, click.Option) and option.multiple
        words = given if isinstance(given, list) else [given]
        if not all(isinstance(word, str | int | float) for word in words) or (given is words and not several):
            what = "one or a list of them" if several else "one"
            raise UserError(f"{source.place([name])}: '{name}' takes a word or a number, {what}")
        if not all(str(word).strip() for word in words):
            raise UserError(f"{source.place([name])}: '{name}' is empty: leave it out, or fill it in")
        texts = [str(word) for word in words]  # checked as what is typed on the command line
        defaults[str(option.name)] = texts if several else texts[0]
    context.default_map = {**(context.default_map or {}), **defaults}


def _spoken(parameter: click.Parameter) -> str:
    """An option's name as people type it: "dimension", not "dimensions"."""
    return parameter.opts[0].lstrip("-")
