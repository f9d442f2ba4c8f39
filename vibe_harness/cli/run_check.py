"""`vibe-harness run-check`: prove a run folder whole."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from vibe_harness.cli.output import echo


@click.command(name="run-check")
@click.argument("runs", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--tests", is_flag=True, help="Say which test made each run's p, and where an earlier one was wrong.")
@click.option("--trust-remote-code", is_flag=True, help="Run Python code that a card names, as the run did.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def command(runs: tuple[Path, ...], tests: bool, trust_remote_code: bool, as_json: bool) -> int:
    """Check the run folders RUNS: every planned request has one outcome, nothing was torn, edited or mixed up, and the
    scores, made anew, are those of the answers.

    Needs neither model nor corpus and writes nothing. Exits with 0 where all folders are whole, with 1 where one is
    not. With --tests it looks at the tests alone, and exits with 1 where a p has to be made anew.
    """
    check = _tests if tests else partial(_whole, trust_remote_code=trust_remote_code)
    return max(check(run, as_json) for run in runs)


def _tests(run: Path, as_json: bool) -> int:
    from vibe_harness.analysis.tests_used import tests_used
    from vibe_harness.cli.terminal import print_json
    from vibe_harness.store.run_folder import RunFolder

    used = tests_used(RunFolder(run))
    if as_json:
        print_json([{"run": str(run), **asdict(used)}])
    else:
        echo(f"{run}: {', '.join(used.tests) or 'nothing was tested'}")
        for line in used.affected:
            echo(f"  p is wrong for {line}: score it again with `vibe-harness score {run}`")
    return 1 if used.affected else 0


def _whole(run: Path, as_json: bool, *, trust_remote_code: bool) -> int:
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
