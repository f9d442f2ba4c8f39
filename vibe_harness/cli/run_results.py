"""The results of a run on the terminal: verdicts first, every figure where it is asked for, and where the rest is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vibe_harness.cli.closing import closing_lines, run_lines
from vibe_harness.cli.full_table import print_full
from vibe_harness.cli.output import echo
from vibe_harness.cli.summary import print_summary
from vibe_harness.store.results import Results
from vibe_harness.store.run_folder import RunFolder


def print_results(results: Results, folder: Path, *, full: bool = False) -> None:
    """Print what a run found; every figure too if `full`. The last lines say what failed, and where the rest is."""
    simulated = " (SIMULATED: not a real model)" if results.simulated else ""
    synthetic = " (synthetic speech)" if results.corpus_synthetic else ""
    changed = _changed(RunFolder(folder))
    arguments = f" ({', '.join(f'{name}={value}' for name, value in sorted(changed.items()))})" if changed else ""
    echo(f"{results.model}{arguments}{simulated} on {results.corpus}{synthetic}, read by {results.extractor}\n")
    print_summary(results)
    if full:
        print_full(results)
    for line in (*run_lines(results), *closing_lines(results, folder, full=full)):
        echo(line)


def _changed(folder: RunFolder) -> Mapping[str, Any]:
    """The model's arguments that the run set itself."""
    return folder.record().model_args if folder.run_json.is_file() else {}
