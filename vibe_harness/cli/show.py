"""`vibe-harness show`: everything that a finished run found."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="show")
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path) -> int:
    """Print every score of the run folder RUN, with its test, its values, and what speaks for and against it.

    Exit code 1 where a score is not reliable.
    """
    from vibe_harness.cli.run_results import print_results
    from vibe_harness.cli.terminal import exit_code
    from vibe_harness.store.results import read_verified_results
    from vibe_harness.store.run_folder import RunFolder

    folder = RunFolder(run)
    folder.record()  # a folder that is no run is told first
    results = read_verified_results(folder)
    print_results(results, run, full=True)
    return exit_code([results])
