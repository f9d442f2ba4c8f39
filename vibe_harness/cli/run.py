"""`vibe-harness run`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vibe_harness.cli.options import GroupedCommand, read_config, run_options


@click.command(name="run", cls=GroupedCommand)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    callback=read_config,
    is_eager=True,
    expose_value=False,
    help="YAML file of these options; the command line wins.",
)
@run_options
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option("--full", is_flag=True, help="Print every figure, as `vibe-harness show` does.")
@click.option(
    "--dry-run", is_flag=True, help="Say what would be asked and what it may cost, and show the first prompt."
)
def command(as_json: bool, full: bool, dry_run: bool, **options: Any) -> int:
    """Ask a model with recordings, read its answers and score how far they shift between groups."""
    from vibe_harness.cli.dry_run import show_dry_run
    from vibe_harness.cli.run_results import print_results
    from vibe_harness.cli.stopping import UNASKED, kept_words, when_stopped
    from vibe_harness.cli.terminal import TerminalProgress, exit_code, print_json
    from vibe_harness.pipeline.run import run_all
    from vibe_harness.planning.config import RunConfig
    from vibe_harness.planning.prepare import prepare
    from vibe_harness.report.run_page import write_run_page
    from vibe_harness.store.results import to_json
    from vibe_harness.store.run_folder import RunFolder

    progress = TerminalProgress()
    with when_stopped(lambda: UNASKED):
        found = prepare(RunConfig(**options), progress, to_run=not dry_run)
    if dry_run:
        show_dry_run(found, as_json)
        return 0
    folders = [RunFolder(prepared.folder) for prepared in found]
    with when_stopped(lambda: kept_words([folder.path for folder in folders], ", ".join(str(f.path) for f in folders))):
        results = list(run_all(found, progress))
        for folder in folders:  # ahead of all printing, so that the work is done whoever reads it
            write_run_page(folder, folder.page, progress)
    if as_json:
        print_json([to_json(one) for one in results])
        return exit_code(results)
    for scored, folder in zip(results, folders, strict=True):
        print_results(scored, folder.path, full=full)
    return exit_code(results)
