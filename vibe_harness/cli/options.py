"""Options as the command line takes them; those of a run follow from `RunConfig`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from vibe_harness.cli.completion import COMPLETERS
from vibe_harness.errors import UserError
from vibe_harness.planning.config import GROUPS, RunOption, option_named, options

Function = TypeVar("Function", bound=Callable[..., Any])
MORE = "More"


def split_commas(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> list[str]:
    """An option that takes a list, separated by commas, repeated, or both."""
    return [item.strip() for part in value for item in part.split(",") if item.strip()]


class GroupedOption(click.Option):
    """An option that the help shows under a heading."""

    group = MORE


class GroupedCommand(click.Command):
    """A command whose help shows its options by group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group in (*GROUPS, MORE):
            shown = [option for option in self.get_params(ctx) if getattr(option, "group", MORE) == group]
            records = [record for option in shown if (record := option.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)


def run_option(name: str, **changes: Any) -> Callable[[Function], Function]:
    """The option of a run of that name, as a decorator. changes: what another verb says otherwise of it."""
    option = option_named(name)
    words: dict[str, Any] = {"help": option.help, "default": option.default, **_typed(option), **changes}
    if completer := COMPLETERS.get(name):
        words["shell_complete"] = completer
    names = [option.flag] if option.flag == f"--{name.replace('_', '-')}" else [option.flag, name]
    made = click.option(*names, cls=GroupedOption, **words)

    def decorate(function: Function) -> Function:
        decorated = made(function)
        decorated.__click_params__[-1].group = option.group  # type: ignore[attr-defined]
        return decorated

    return decorate


def run_options(function: Function) -> Function:
    """All options of a run, in their order."""
    for option in reversed(options()):
        function = run_option(option.name)(function)
    return function


def _typed(option: RunOption) -> dict[str, Any]:
    """What click has to know of an option besides its name, help and default."""
    match option.kind:
        case "flag":
            off = option.flag.startswith("--no-")
            return {"is_flag": True, "flag_value": not off, "default": off}
        case "texts":
            return {"multiple": True, "callback": split_commas, "required": option.required}
        case "paths":
            return {"multiple": True, "type": click.Path(path_type=Path)}
        case "mapping":
            return {"multiple": True, "callback": parse_model_args, "default": ()}
        case "path":
            return {"type": click.Path(path_type=Path)}
        case "choice":
            return {"type": click.Choice(option.choices), "show_default": True}
        case "integer":
            shown = option.default is not None and option.metavar is None
            return {"type": click.IntRange(min=option.least), "show_default": shown, "metavar": option.metavar}
        case "number":
            return {"type": click.FloatRange(min=option.above, min_open=True)}
        case "text":
            return {"required": option.required, "show_default": option.default is not None}


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
            raise UserError(f"{source.location([name])}: unknown option '{name}'. {did_you_mean(name, known)}")
        if isinstance(option, click.Option) and option.is_flag:
            if not isinstance(given, bool):
                raise UserError(f"{source.location([name])}: '{name}' is true or false")
            defaults[str(option.name)] = given == bool(option.flag_value)  # of --no-NAME the value is false
            continue
        if isinstance(given, Mapping):
            given = [f"{inner}={json.dumps(value, default=str)}" for inner, value in given.items()]
        several = isinstance(option, click.Option) and option.multiple
        words = given if isinstance(given, list) else [given]
        if not all(isinstance(word, str | int | float) for word in words) or (given is words and not several):
            what = "one or a list of them" if several else "one"
            raise UserError(f"{source.location([name])}: '{name}' takes a word or a number, {what}")
        if not all(str(word).strip() for word in words):
            raise UserError(f"{source.location([name])}: '{name}' is empty: leave it out, or fill it in")
        texts = [str(word) for word in words]  # checked as what is typed on the command line
        defaults[str(option.name)] = texts if several else texts[0]
    context.default_map = {**(context.default_map or {}), **defaults}


def _spoken(parameter: click.Parameter) -> str:
    """An option's name as people type it: "dimension", not "dimensions"."""
    return parameter.opts[0].lstrip("-")
