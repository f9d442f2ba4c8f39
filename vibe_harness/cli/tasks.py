"""`vibe-harness tasks`: what tasks there are, what one asks, a new one, and what a run would trip over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from vibe_harness.cli.completion import TASK
from vibe_harness.cli.new import new_task
from vibe_harness.cli.output import echo
from vibe_harness.errors import UserError

if TYPE_CHECKING:
    from vibe_harness.authoring.checking import CheckedTask
    from vibe_harness.cards.schema import TaskCard

INCLUDE_PATH = click.option(
    "--include-path", multiple=True, type=click.Path(path_type=Path), help="Folder with your own cards."
)
K = TypeVar("K")
T = TypeVar("T")
CLIP_TEXT = "[what the clip says]"  # for prompts that quote it


@click.group(name="tasks")
def command() -> None:
    """List, show, begin and check tasks."""


command.add_command(new_task)


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
    tasks, broken = loaded(index.load_task, index.task_files().values())
    cards = [task.card for task in tasks]
    corpora = {name for card in cards for names in card.dimensions.values() for name in names}
    _check_filter("--dimension", dimension, {name for card in cards for name in card.dimensions})
    _check_filter("--corpus", corpus, corpora)
    _check_filter("--kind", kind, {card.kind for card in cards})
    rows = []
    for card in cards:
        if _is_meant(card, dimension, corpus) and kind in (None, card.kind):
            dimensions = "\n".join(f"{name}: {', '.join(names)}" for name, names in card.dimensions.items())
            rows.append([card.task, card.kind, card.description, dimensions, ", ".join(card.extraction.attributes)])
    print_table(["task", "kind", "what", "dimensions", "attributes"], rows)
    if broken:
        raise broken


@command.command(name="show")
@click.argument("name", shell_complete=TASK)
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


@command.command(name="check")
@click.argument("cards", nargs=-1, required=True, metavar="TASK...", shell_complete=TASK)
@INCLUDE_PATH
@click.option("--trust-remote-code", is_flag=True, help="Run the Python code of a metric that a card names.")
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def check_tasks(cards: tuple[str, ...], include_path: tuple[Path, ...], trust_remote_code: bool, as_json: bool) -> None:
    """Find everything that a run with a TASK (a card's file or name, or a folder of cards) would trip over.

    Reads the card, its templates and its aliases, looks at every prompt, and tries the whole way on three clips with
    the simulated model. Exits with 2 where there is something to mend.
    """
    import json

    from vibe_harness.authoring import checking

    checked = checking.check_tasks(cards, include_path, trust_remote_code=trust_remote_code)
    if as_json:
        echo(json.dumps([one.as_json() for one in checked], indent=2))
    else:
        for one in checked:
            _show_checked(one)
    if any(one.findings for one in checked):
        raise click.exceptions.Exit(2)


def _show_checked(checked: CheckedTask) -> None:
    if checked.findings:
        echo(f"{checked.card}: {len(checked.findings)} to mend")
        for finding in checked.findings:
            echo(f"  {finding}")
        return
    echo(f"{checked.card}: nothing to mend. Tried:")
    for what in checked.tried:
        echo(f"  {what}")
    for variant, prompt in checked.prompts.items():
        echo(f"\nprompt '{variant}':\n{prompt}\n")


def _check_filter(option: str, wanted: str | None, known: set[str]) -> None:
    """Raise UserError for a filter that no task answers to."""
    if wanted is not None and wanted not in known:
        from vibe_harness.registry import did_you_mean

        raise UserError(f"{option} {wanted}: no task has it. {did_you_mean(wanted, known)}")


def _is_meant(card: TaskCard, dimension: str | None, corpus: str | None) -> bool:
    """Whether a task compares that dimension, over that corpus; None for any."""
    return any(
        dimension in (None, name) and (corpus is None or corpus in names) for name, names in card.dimensions.items()
    )


def loaded(load: Callable[[K], T], keys: Iterable[K]) -> tuple[list[T], UserError | None]:
    """What loads, and one error that tells of all that does not: a broken card hides no other, and is not hidden."""
    found, faults = [], []
    for key in keys:
        try:
            found.append(load(key))
        except UserError as error:
            faults.append(str(error))
    return found, UserError("broken cards are not listed:\n" + "\n".join(faults)) if faults else None
