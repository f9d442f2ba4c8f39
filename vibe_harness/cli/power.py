"""`vibe-harness power`: before a run, the smallest shift that a corpus can show."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from vibe_harness.cli.completion import CORPUS
from vibe_harness.cli.options import run_option
from vibe_harness.cli.output import echo


@click.command(name="power")
@run_option("tasks", help="Tasks, separated by commas.")
@click.option("--corpus", required=True, help="Corpus: a name, or a manifest.", shell_complete=CORPUS)
@click.option("--dimension", required=True, help="The column whose groups are to be compared.")
@click.option("--pilot", type=click.Path(path_type=Path), help="A finished run whose speakers stand for the corpus's.")
@click.option(
    "--habit",
    type=click.FloatRange(0, 0.99),
    default=0.1,
    show_default=True,
    help="Without a pilot: the share of the variance of answers that lies between speakers.",
)
@run_option("tau")
@click.option("--target", type=click.FloatRange(0.05, 0.99), default=0.8, show_default=True, help="The power wanted.")
@click.option("--simulations", type=click.IntRange(min=20), default=400, show_default=True)
@run_option("seed")
@run_option("include_path")
@click.option("--figure", type=click.Path(path_type=Path), help="Write the power curves there, as SVG.")
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(
    tasks: list[str],
    corpus: str,
    dimension: str,
    pilot: Path | None,
    habit: float,
    tau: int,
    target: float,
    simulations: int,
    seed: int,
    include_path: tuple[Path, ...],
    figure: Path | None,
    as_json: bool,
) -> None:
    """Say which nTVD a corpus can show for a task, and how surely, before any model is asked."""
    from vibe_harness import api
    from vibe_harness.report.figures import power_svg
    from vibe_harness.store.atomic_files import atomic_write, check_replaced

    if figure:
        check_replaced(figure, ".svg")
    opened = api.load_corpus(corpus)
    powers = api.power(
        tasks, opened, dimension, pilot=pilot, habit=habit, tau=tau, target=target, simulations=simulations, seed=seed,
        include_path=include_path,
    )  # fmt: skip
    if figure:
        with atomic_write(figure) as aside:
            title = f"Power of {opened.name} by {dimension}"
            aside.write_text(power_svg(title, powers), encoding="utf-8")
    if as_json:
        echo(json.dumps({name: asdict(power) for name, power in powers.items()}, indent=2))
        return
    for name, power in powers.items():
        if power.detectable is None:
            shown = power.reason
        else:
            shown = f"found with {target:.0%} power from a true nTVD of {power.detectable:.0f}"
        smallest = (
            "" if power.detectable is None or power.smallest_p is None else f"; p can reach {power.smallest_p:.2g}"
        )
        echo(f"{name} by {dimension} on {opened.name}: {shown}{smallest}")
    source = f"the pilot {pilot}" if pilot else f"the design, with speakers' habits of {habit:g}"
    number = "as many answers a speaker as in the pilot" if pilot else "one value a clip and attribute"
    echo(f"By {simulations} simulations a point from {source}; {number}, tau {tau}, level 0.05.")
    if not pilot:
        echo(
            "Where an answer gives several values (a list of hobbies), smaller shifts are found: a pilot run has "
            "them (--pilot RUN)."
        )
    else:
        echo(
            f"The clips of {opened.name} do not enter: with more clips a speaker than the pilot has, smaller shifts "
            "are found; with fewer, only larger ones."
        )
