"""The command line: one module a verb, imported when it is asked for."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vibe_harness.cli.output import begin, printed, tell, write
from vibe_harness.errors import HarnessError, StorageError, UserError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

UNFORESEEN = 70
"""Exit code of an error that nobody foresaw: EX_SOFTWARE of sysexits.h."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""Errors of a disk that takes no writes, whatever file they name."""

VERBS = {
    "run": ("vibe_harness.cli.run", "Ask a model, read its answers, score them (the default verb)."),
    "study": ("vibe_harness.cli.study", "Run many models, tasks and corpora from one file."),
    "score": ("vibe_harness.cli.score", "Score a finished run again, without a model."),
    "compare": ("vibe_harness.cli.compare", "Where two runs differ, and how surely; gates for a check."),
    "run-check": ("vibe_harness.cli.run_check", "Prove a run folder whole: every planned request has one outcome."),
    "power": ("vibe_harness.cli.power", "Before a run: the smallest shift that a corpus can show."),
    "show": ("vibe_harness.cli.show", "Print everything that a finished run found."),
    "report": ("vibe_harness.cli.report", "Write the page of a run."),
    "leaderboard": ("vibe_harness.cli.leaderboard", "Set many runs beside one another, as a folder of pages."),
    "export": ("vibe_harness.cli.export", "Write a run in the formats of others: Every Eval Ever, the hub, datasets."),
    "push": ("vibe_harness.cli.push", "Upload a run to the hub, as a data set with its card."),
    "cite": ("vibe_harness.cli.cite", "Print a Methods paragraph of a run, and the BibTeX of what it cites."),
    "values": ("vibe_harness.cli.values", "List a run's values, and accept aliases for them."),
    "validate-extraction": (
        "vibe_harness.cli.validate_extraction",
        "Have people judge what the extractor read, and see how often it is right.",
    ),
    "tasks": ("vibe_harness.cli.tasks", "List, show, begin and check tasks."),
    "models": ("vibe_harness.cli.models", "List, show, check and begin models."),
    "corpus": ("vibe_harness.cli.corpus", "Prepare, list, check, show and begin corpora."),
    "speech-set": ("vibe_harness.cli.speech_set", "Make a spoken question set from text."),
    "schema": ("vibe_harness.cli.schema", "Print the JSON Schema of cards and results."),
    "completion": ("vibe_harness.cli.completion", "Print the script that has bash, zsh or fish complete names."),
}


def _dashes(name: str) -> str:
    """Underscores are taken for dashes, as people type them for lm-eval."""
    return name.replace("_", "-")


class Verbs(click.Group):
    """The verbs, each loaded when it is run. Options without a verb are those of `run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help", "--version"):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, _ = VERBS[cmd_name]
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from vibe_harness.cli.help_page import write_help

        write_help(formatter, {name: summary for name, (_, summary) in VERBS.items()})

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):  # options without a verb are those of `run`
            run = self.get_command(ctx, "run")
            assert run is not None
            with run.make_context("run", [], parent=ctx, resilient_parsing=True) as context:
                return [*run.shell_complete(context, incomplete), *click.Command.shell_complete(self, ctx, incomplete)]
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=summary) for name, (_, summary) in VERBS.items() if name.startswith(incomplete)
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not ctx.resilient_parsing:
            from vibe_harness.cli.lm_eval_words import verb_hint
            from vibe_harness.registry import did_you_mean

            hint = verb_hint(args[0])
            raise click.UsageError(hint or f"there is no verb '{args[0]}'. {did_you_mean(args[0], VERBS)}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    context_settings={"token_normalize_func": _dashes, "help_option_names": ["-h", "--help"]},
    options_metavar="[OPTIONS]",
    subcommand_metavar="| VERB ...",
)
@click.version_option(package_name="vibe-harness")
@click.pass_context
def cli(context: click.Context) -> None:
    """Measures how far an audio-language model's answers shift with the voice that asks.

    Try it without a GPU, a network or a key:

    vibe-harness --model simulated --tasks story,advisory
    """
    if context.invoked_subcommand is None:
        write(context.get_help() + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point. Exits with 0 (done), 1 (done, not reliable), 2 (the user's mistake), 3 (the engine failed) or 4 (the
    disk is full or read-only)."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a letter that this terminal cannot show becomes a number
    if (status := _completion()) is not None:
        sys.exit(status)
    begin()
    sys.exit(_status(args))


def _completion() -> int | None:
    """The exit code of a shell's question for completions; None where no shell asks."""
    if "_VIBE_HARNESS_COMPLETE" not in os.environ:  # the module that answers is not imported for a run
        return None
    from vibe_harness.cli.completion import completed

    return completed(cli)


def _open_what_is_closed() -> None:
    """Give a program that was started with a standard stream closed (`>&-`) an empty one.

    Else the next file that is opened gets its number, and what anything prints goes into that file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def _check_words(args: Sequence[str]) -> None:
    """Raise UserError for an argument that is not UTF-8, since Linux takes any bytes for a name and no table does; and
    for one that is empty: a variable of the shell that is not set would have something else be measured."""
    for place, arg in enumerate(args):
        option, equals, value = arg.partition("=") if arg.startswith("--") else ("", "=", arg)
        if equals and not value.strip():
            before = option or (args[place - 1] if place else "")
            after = f" after {before}" if before else ""
            raise UserError(f"an argument is empty{after} (a variable that is not set?): leave it out, or fill it in")
        try:
            arg.encode("utf-8")
        except UnicodeEncodeError:
            raise UserError(f"{arg}: not UTF-8: rename the file or folder") from None


def _status(args: list[str]) -> int:
    """Run the command; its exit code, once all was printed that could be."""
    try:
        _check_words(args)
        with cli.make_context("vibe-harness", args) as context:  # not cli.main, which turns a closed pipe into exit 1
            found: Any = cli.invoke(context)
            status = found if isinstance(found, int) else 0
    except click.exceptions.Exit as done:
        status = done.exit_code
    except HarnessError as error:
        status = _told(str(error), error.exit_code)
    except click.NoSuchOption as error:
        from vibe_harness.cli.lm_eval_words import option_hint

        status = _told(option_hint(error.option_name) or error.format_message(), 2)
    except click.ClickException as error:
        status = _told(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        status = _told("stopped", 130)
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.ENOSPC):  # of help or a question, which click prints by itself
            code = StorageError.exit_code if error.errno == errno.ENOSPC else 2
            status = _told(f"not all could be printed or written: {error.strerror}", code)
        elif error.filename is not None:  # a path too long, a folder that nobody may look into or that vanished
            status = _told(f"{error.filename}: {error.strerror}", StorageError.exit_code if error.errno in FULL else 2)
        else:
            status = _unforeseen()
    except Exception:  # noqa: BLE001 - a fault of vibe-harness or of a package it uses: it is told, and kept in a file
        status = _unforeseen()
    if why := printed():  # results are stored: nothing but their printing failed
        status = _told(f"standard output: {why}", StorageError.exit_code)
    return status


def _unforeseen() -> int:
    """Keep the traceback of the error at hand in a file that its owner alone can read, and say where."""
    trace = traceback.format_exc()
    try:
        file, path = tempfile.mkstemp(prefix="vibe-harness-", suffix=".txt")
        os.close(file)
        Path(path).write_text(trace, encoding="utf-8", errors="backslashreplace")
    except OSError:
        tell(trace)
        path = "above"
    said = " ".join(trace.strip().rpartition("\n")[2].split())[:300]
    return _told(f"an error that was not foreseen: {said}. Please report it. The traceback: {path}", UNFORESEEN)


def _told(message: str, exit_code: int) -> int:
    tell(f"vibe-harness: {message}")
    return exit_code
