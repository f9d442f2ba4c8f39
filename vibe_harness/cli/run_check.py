"""`vibe-harness run-check`: prove a run folder whole."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from vibe_harness.cli.output import echo


@click.command(name="run-check")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--trust-remote-code", is_flag=True, help="Run Python code that a card names, as the run did.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def command(run: Path, trust_remote_code: bool, as_json: bool) -> int:
    """Check the run folder RUN: every planned request has one outcome, nothing was torn, edited or mixed up, and the
    scores, made anew, are those of the answers.

    Needs neither model nor corpus and writes nothing. Exits with 0 where the folder is whole, with 1 where it is not.
    """
    from vibe_harness.analysis.run_check import check_run
    from vibe_harness.cli.terminal import TerminalProgress, print_json
    from vibe_harness.store.run_folder import RunFolder

    checked = check_run(RunFolder(run), TerminalProgress(), trust_remote_code=trust_remote_code)
    if as_json:
        print_json([{"whole": checked.whole, **asdict(checked)}])
    else:
        for fault in checked.faults:
            echo(fault)
        if checked.whole:
            errors = f", {checked.errors} of them the error of a call that is made again on resume" * bool(
                checked.errors
            )
            echo(f"{run}: whole. {checked.planned:,} requests were planned; each has one outcome{errors}.")
    return 0 if checked.whole else 1
