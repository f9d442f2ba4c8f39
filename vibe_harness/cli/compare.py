"""`vibe-harness compare`: two runs over the same clips, and gates for a model team's own checks."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vibe_harness.cli.output import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vibe_harness.analysis.compare import Compared, RunComparison
    from vibe_harness.analysis.gates import Gate
    from vibe_harness.stats.comparison import Comparison


EVERY_TASK = ""  # as `analysis.gates` has it, which is imported where it is needed


def _limits(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, float]:
    """TASK=LIMIT, separated by commas, repeated, or both."""
    limits = _by_task(value)
    if EVERY_TASK in limits:
        raise click.BadParameter(f"'{limits[EVERY_TASK]:g}' is not of the form TASK=LIMIT, the limit from 0 to 100")
    return limits


def _margins(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, float]:
    """As `_limits`; a number alone is for all tasks that have none of their own."""
    return _by_task(value)


def _by_task(value: tuple[str, ...]) -> dict[str, float]:
    limits: dict[str, float] = {}
    for item in (item for part in value for item in part.split(",") if item.strip()):
        name, equals, text = item.rpartition("=")
        try:
            limit = float(text)
        except ValueError:
            limit = -1.0
        if (equals and not name.strip()) or not 0 <= limit <= 100:
            raise click.BadParameter(f"'{item}' is not of the form TASK=LIMIT, the limit from 0 to 100")
        if name.strip() in limits:
            raise click.BadParameter(f"two limits for {name.strip() or 'all tasks'}: give one")
        limits[name.strip()] = limit
    return limits


@click.command(name="compare")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="[BEFORE] AFTER")
@click.option(
    "--max-ntvd",
    "limits",
    multiple=True,
    callback=_limits,
    help="Gate: advisory=10. Held where the interval of the true shift ends there or under it.",
)
@click.option(
    "--no-worse-than", type=click.Path(path_type=Path), help="Gate: the run that AFTER may not be worse than."
)
@click.option(
    "--margin",
    "margins",
    multiple=True,
    callback=_margins,
    help="For --no-worse-than: 5, or story=5. Held where growth beyond it is excluded (one-sided, 95 %).",
)
@click.option("--allow-inconclusive", is_flag=True, help="Without --margin: pass where no growth is found.")
@click.option("--tau", type=click.IntRange(min=1), help="Of either run alone. Default: the runs' own.")
@click.option(
    "--summary-markdown", "summary", type=click.Path(path_type=Path), help="Write gates and comparison there (.md)."
)
@click.option("--junit", type=click.Path(path_type=Path), help="Write the gates there as JUnit XML (.xml).")
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(
    runs: tuple[Path, ...],
    limits: dict[str, float],
    no_worse_than: Path | None,
    margins: dict[str, float],
    allow_inconclusive: bool,
    tau: int | None,
    summary: Path | None,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Say where the run AFTER differs from BEFORE, by how much and how surely; or hold AFTER alone to a gate.

    Exit code 1 where a gate is not held, or where the runs cannot tell.
    """
    from vibe_harness.analysis.compare import compare_runs
    from vibe_harness.report.gate_files import passes, write_junit, write_markdown

    _check_margins(no_worse_than, margins, allow_inconclusive)
    before = _before(runs, no_worse_than, limits)
    if junit is not None and not limits and no_worse_than is None:
        raise click.UsageError("--junit writes gates: give --max-ntvd, --no-worse-than or both")
    comparison = None if before is None else compare_runs(before, runs[-1], tau=tau)
    gates = _gates(runs[-1], limits, no_worse_than, margins, comparison)
    if summary is not None:
        write_markdown(summary, gates, comparison, allow_inconclusive=allow_inconclusive)
    if junit is not None:
        write_junit(junit, gates, allow_inconclusive=allow_inconclusive)
    if as_json:
        _print_json(comparison, gates)
    else:
        if comparison is not None:
            _print_comparison(comparison, before, runs[-1])
        for gate in gates:
            _print_gate(gate)
    return 0 if all(passes(gate, allow_inconclusive) for gate in gates) else 1


def _before(runs: Sequence[Path], no_worse_than: Path | None, limits: dict[str, float]) -> Path | None:
    """The run that the last one is compared with; None where that one is held to limits alone."""
    if len(runs) > 2 or (len(runs) == 2 and no_worse_than):
        raise click.UsageError("two runs are compared: give BEFORE and AFTER, or AFTER and --no-worse-than BEFORE")
    before = runs[0] if len(runs) == 2 else no_worse_than
    if before is None and not limits:
        raise click.UsageError("one run alone is compared with nothing: give a second one, --max-ntvd or both")
    return before


def _gates(
    run: Path,
    limits: dict[str, float],
    no_worse_than: Path | None,
    margins: dict[str, float],
    comparison: RunComparison | None,
) -> list[Gate]:
    """The verdicts on a run: by limits, and beside an earlier run."""
    from vibe_harness.analysis.gates import limit_gates, no_worse_gates
    from vibe_harness.store.results import read_verified_results
    from vibe_harness.store.run_folder import RunFolder

    if not limits and no_worse_than is None:
        return []
    after = read_verified_results(RunFolder(run))
    gates = limit_gates(after, limits, run)
    if comparison is not None and no_worse_than is not None:
        scored = read_verified_results(RunFolder(no_worse_than)), after
        gates += no_worse_gates(comparison, scored, no_worse_than, run, margins)
    return gates


def _check_margins(no_worse_than: Path | None, margins: dict[str, float], allow_inconclusive: bool) -> None:
    if no_worse_than is None and (margins or allow_inconclusive):
        raise click.UsageError("--margin and --allow-inconclusive go with --no-worse-than")
    if EVERY_TASK in margins and allow_inconclusive:
        raise click.UsageError("--allow-inconclusive is for tasks without a margin: leave it or --margin out")


def _print_gate(gate: Gate) -> None:
    from vibe_harness.report.gate_files import place_of

    verdict = gate.verdict if gate.held else gate.verdict.upper()
    model = f"{gate.model}, not a real model" if gate.simulated else gate.model
    echo(f"{verdict}: {gate.gate}: {place_of(gate)} in {gate.run} ({model}): {gate.why}")


def _print_json(comparison: RunComparison | None, gates: Sequence[Gate]) -> None:
    from vibe_harness.cli.terminal import print_json

    print_json(
        [
            {
                "comparison": None if comparison is None else comparison.to_json(),
                "gates": [{**asdict(gate), "held": gate.held} for gate in gates],
            }
        ]
    )


def _print_comparison(comparison: RunComparison, before: Path | None, after: Path) -> None:
    from vibe_harness.cli.terminal import print_table

    echo(f"before: {comparison.before} ({before}); after: {comparison.after} ({after})")
    rows = []
    for one in comparison.compared:
        rows.append(_row(one, "ALL", one.whole, one.adjusted))
        rows += [_row(one, name, found, None) for name, found in one.attributes.items()]
    print_table(
        [
            "task",
            "dimension",
            "attribute",
            "before",
            "after",
            "difference",
            "95 % interval",
            "p",
            "adjusted p",
            "clips",
        ],
        rows,
    )
    if comparison.same_run:
        echo("  before and after are the same run")
    for line in (*comparison.not_compared, *comparison.warnings):
        echo(f"  {line}")
    echo(
        "before, after: raw nTVD, which also rises where answers only grow more varied from speaker to speaker. "
        "difference: of the cross-fitted scores, 0 on average without a shift; interval: of the true difference; over "
        f"the clips that both runs answered. Values seen under {comparison.tau} times in each of them are left out."
    )


def _row(one: Compared, name: str, found: Comparison, adjusted: float | None) -> list[str]:
    from vibe_harness.metrics.presentation import p_value_words

    return [
        one.task if one.variant == "default" else f"{one.task}/{one.variant}",
        one.dimension,
        name,
        _number(found.before),
        _number(found.after),
        "undefined" if found.difference is None else f"{found.difference:+.1f}",
        "" if found.interval is None else f"{found.interval[0]:+.1f} to {found.interval[1]:+.1f}",
        "" if found.p_value is None else p_value_words(found.p_value),
        "" if adjusted is None else p_value_words(adjusted),
        str(one.clips),
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
