"""`vibe-harness score`: score a finished run again, without a model."""

from __future__ import annotations

from pathlib import Path

import click

from vibe_harness.cli.options import run_option
from vibe_harness.cli.output import tell


@click.command(name="score")
@click.argument("run", type=click.Path(path_type=Path))
@run_option("dimensions", help="Default: those of the run. gender:accent crosses two.")
@run_option("seed", default=None, show_default=False, help="Default: the run's own.")
@run_option("tau", default=None, show_default=False, help="Default: the run's own.")
@run_option("also_test", help="Default: those of the run. Published tests: version-1, version-2.")
@run_option("permutations", default=None, show_default=False, help="Default: the run's own.")
@run_option("trust_remote_code")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option("--full", is_flag=True, help="Print every figure, as `vibe-harness show` does.")
def command(
    run: Path,
    dimensions: list[str],
    seed: int | None,
    tau: int | None,
    also_test: list[str],
    permutations: int | None,
    trust_remote_code: bool,
    as_json: bool,
    full: bool,
) -> int:
    """Score the run folder RUN again; the scores replace those in its results.json."""
    from vibe_harness import api
    from vibe_harness.cli.run_results import print_results
    from vibe_harness.cli.terminal import TerminalProgress, exit_code, print_json
    from vibe_harness.store.checksums import changed_files
    from vibe_harness.store.results import to_json
    from vibe_harness.store.run_folder import RunFolder

    folder = RunFolder(run)
    folder.record()  # a folder that is no run is told first
    changed = [name for name in changed_files(folder) if name != folder.results.name] if folder.sums.is_file() else []
    results = api.score(
        run, dimensions=dimensions, seed=seed, tau=tau, also_test=also_test or None, permutations=permutations,
        trust_remote_code=trust_remote_code, progress=TerminalProgress(),
    )  # fmt: skip
    if as_json:
        print_json([to_json(results)])
    else:
        print_results(results, run, full=full)
    if changed:
        tell(
            f"vibe-harness: changed since it was scored last: {', '.join(changed)}: see `vibe-harness run-check {run}`"
        )
    return exit_code([results])
