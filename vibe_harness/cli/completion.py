"""`vibe-harness completion`: the script that has a shell complete verbs, options and names."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from vibe_harness.cli.output import write
from vibe_harness.errors import UserError

PROGRAM = "vibe-harness"
VARIABLE = "_VIBE_HARNESS_COMPLETE"
"""The environment variable with which a shell's script asks for completions, by click's custom."""

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@click.command(name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that completes verbs, options and the names of models, tasks and corpora.

    \b
    bash:  echo 'eval "$(vibe-harness completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(vibe-harness completion zsh)"' >> ~/.zshrc
    fish:  vibe-harness completion fish > ~/.config/fish/completions/vibe-harness.fish
    """
    made = get_completion_class(shell)
    assert made is not None  # of each of the choices
    script = made(context.find_root().command, {}, PROGRAM, VARIABLE).source()
    # fish splits "plain,story,advisory" at every comma by click's script, and so completes no name behind one
    write(script.replace('string split "," $completion', 'string split --max 1 "," $completion'))


def completed(cli: click.Command) -> int | None:
    """Answer a shell that asks for completions, and return the exit code; None where no shell asks."""
    instruction = os.environ.get(VARIABLE)
    return None if not instruction else shell_complete(cli, {}, PROGRAM, VARIABLE, instruction)


def _included(context: click.Context) -> list[Path]:
    """Folders of own cards that are typed before the word to complete."""
    return [path for path in map(Path, context.params.get("include_path") or ()) if path.is_dir()]


def _models(context: click.Context) -> Sequence[str]:
    from vibe_harness.cards.loading import CardIndex

    return CardIndex(_included(context)).model_names()


def _tasks(context: click.Context) -> Sequence[str]:
    from vibe_harness.cards.loading import CardIndex

    return list(CardIndex(_included(context)).task_files())


def _extractors(context: click.Context) -> Sequence[str]:
    return ["rules", *_models(context)]


def _corpora(context: click.Context) -> Sequence[str]:
    from vibe_harness.corpora.registry import corpus_manifests

    return sorted(corpus_manifests())


def names_of(known: Callable[[click.Context], Sequence[str]], *, several: bool = False) -> Completer:
    """A completer of names, or of a file for what looks like a path.

    several: names are separated by commas, and the last one is completed; names given before it are not offered again.
    """

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, word = incomplete.rpartition(",") if several else ("", "", incomplete)
        if "/" in word or word.startswith("."):
            return [CompletionItem(incomplete, type="file")]
        given = {name.strip() for name in before.split(",")}
        try:
            names = known(context)
        except UserError:  # two cards of one name, say: the command itself tells
            return []
        return [
            CompletionItem(f"{before}{comma}{name}") for name in names if name.startswith(word) and name not in given
        ]

    return complete


COMPLETERS: dict[str, Completer] = {
    "model": names_of(_models),
    "tasks": names_of(_tasks, several=True),
    "corpus": names_of(_corpora),
    "extractor": names_of(_extractors),
}
"""Option of a run -> what completes its value."""

MODEL, TASK, CORPUS = COMPLETERS["model"], names_of(_tasks), COMPLETERS["corpus"]
"""Completers of a single name, for the arguments of other verbs."""
