"""`vibe-harness validate-extraction`: people judge what an extractor read in a sample of responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vibe_harness.cli.options import split_commas
from vibe_harness.cli.output import echo, tell
from vibe_harness.errors import write_failed

if TYPE_CHECKING:
    from vibe_harness.validation.results import AgreementRate, Validation
    from vibe_harness.validation.sample import Sample

_JUDGE = click.option("--judge", "name", required=True, help="Name of who judges; judgments are kept by it.")


@click.group(name="validate-extraction")
def command() -> None:
    """Have people judge what the extractor read, and see how often it is right."""


@command.command(name="sample")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--output", required=True, type=click.Path(path_type=Path), help="Folder of the sample.")
@click.option("--per-cell", type=click.IntRange(min=1), default=5, show_default=True,
              help="Responses for each model, task and dimension.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--extractor", "extractors", multiple=True, callback=split_commas,
              help="Have this one read the drawn responses too, to compare it: 'rules' or a model card.")  # fmt: skip
@click.option("--include-path", multiple=True, type=click.Path(path_type=Path),
              help="Folder with your own tasks/, models/ and templates/.")  # fmt: skip
def sample(
    runs: Sequence[Path], output: Path, per_cell: int, seed: int, extractors: list[str], include_path: Sequence[Path]
) -> None:
    """Draw responses of the finished run folders RUNS, to be judged on a page or in a spreadsheet."""
    from vibe_harness.api import sample_responses
    from vibe_harness.cli.terminal import TerminalProgress

    drawn, notes = sample_responses(
        runs, output, per_cell=per_cell, seed=seed, extractors=extractors, include_path=include_path,
        progress=TerminalProgress(),
    )  # fmt: skip
    sheet = output / "sheet.csv"
    readings = sum(1 for _ in drawn.items())
    echo(f"{len(drawn.responses)} responses with {readings} readings to judge, read by {', '.join(drawn.extractors)}")
    for note in notes:
        echo(f"  {note}")
    echo(f"Judge them: vibe-harness validate-extraction judge {output} --judge NAME")
    echo(f"Or fill in {sheet}, then: vibe-harness validate-extraction import {output} {sheet} --judge NAME")


@command.command(name="judge")
@click.argument("folder", type=click.Path(path_type=Path))
@_JUDGE
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: one that is free.")
@click.option("--no-open", "browse", is_flag=True, flag_value=False, default=True, help="Only print the address.")
def judge(folder: Path, name: str, port: int, browse: bool) -> None:
    """Open the page on which the sample in FOLDER is judged. Ctrl-C ends it; the same command goes on from there."""
    import webbrowser

    from vibe_harness.validation.judgments import Judge
    from vibe_harness.validation.sample import read_sample
    from vibe_harness.validation.server import JudgingServer

    drawn = read_sample(folder)
    with (
        JudgingServer(drawn, Judge(folder, drawn, name), port) as server,
        _doorway(folder / f"open-{name}.html", server.url) as door,
    ):
        _say_progress(server.judging.progress())
        echo(f"The page, for this machine alone: {server.url}")
        echo("Ctrl-C ends it: every judgment is stored as it is made")
        if browse:
            webbrowser.open(door.resolve().as_uri())
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            _say_progress(server.judging.progress())


@contextmanager
def _doorway(path: Path, url: str) -> Iterator[Path]:
    """A file that leads to the page, for this user alone: an address handed to a browser stands in the process list."""
    leads = f'<!doctype html><title>Right or wrong?</title><meta http-equiv="refresh" content="0;url={url}">'
    try:
        path.unlink(missing_ok=True)
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(leads, encoding="utf-8")
    except OSError as error:
        raise write_failed(f"{path}: cannot be written", error) from None
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _say_progress(progress: dict[str, object]) -> None:
    echo(f"{progress['judge']}: {progress['judged']} of {progress['total']} readings judged")


@command.command(name="import")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("sheet", type=click.Path(path_type=Path))
@_JUDGE
def import_sheet(folder: Path, sheet: Path, name: str) -> None:
    """Take the judgments from SHEET, a filled copy of the sheet.csv in FOLDER."""
    from vibe_harness.validation.judgments import Judge
    from vibe_harness.validation.sample import read_sample
    from vibe_harness.validation.sheet import read_sheet

    drawn = read_sample(folder)
    person = Judge(folder, drawn, name)
    filled = read_sheet(sheet, drawn)
    before = person.judgments()
    new = [one for one in filled.judgments if before.get(one.item) != one]
    person.add(new)
    changed = sum(one.item in before for one in new)
    echo(
        f"{len(filled.judgments)} judgments in {sheet}: {len(new) - changed} new, {changed} changed, "
        f"{len(filled.judgments) - len(new)} already stored"
    )
    echo(f"{filled.empty} rows without a judgment, {filled.missing} readings without a row")


@command.command(name="score")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--judge", "judges", multiple=True, callback=split_commas, help="Only these judges. Default: all.")
@click.option("--resamples", type=click.IntRange(min=100), default=10_000, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def score(folder: Path, judges: list[str], resamples: int, seed: int, as_json: bool) -> int:
    """Say how often judges agree with the extractor of the sample in FOLDER; kept there and beside every run in it.

    Ends with 1 where some of it is still to be judged.
    """
    from vibe_harness.api import score_judgments
    from vibe_harness.cli.terminal import print_json
    from vibe_harness.validation.results import to_json
    from vibe_harness.validation.sample import read_sample

    found, missing = score_judgments(folder, judges=judges, resamples=resamples, seed=seed)
    if as_json:
        print_json([to_json(found)])
    else:
        _print(read_sample(folder), found)
    for reason in missing:
        tell(f"vibe-harness: {reason}")
    return 0 if found.complete else 1


def _print(drawn: Sample, found: Validation) -> None:
    from vibe_harness.cli.terminal import print_table

    people = ", ".join(f"{judge} ({number})" for judge, number in found.judges.items())
    simulated = " (SIMULATED: not of a real model)" if found.simulated else ""
    echo(f"{len(drawn.responses)} responses{simulated}, {found.readings} readings to judge; judged by {people}")
    rows = []
    for one in found.extractors:
        rows.append(_row(one.extractor, "ALL", "", one.overall))
        for task, agreement in one.tasks.items():
            rows.append(_row(one.extractor, task, "ALL", agreement))
            rows += [_row(one.extractor, task, name, part) for name, part in one.attributes[task].items()]
    print_table(
        ["extractor", "task", "attribute", "agreement", "95 % interval", "judged", "responses", "waiting", "not read"],
        rows,
    )
    for one in found.extractors:
        if one.items:
            echo(f"{one.extractor}: {one.wrong_items} of {one.items} single items of lists were marked wrong")
    for pair in found.pairs:
        kappa = f"kappa undefined: {pair.undefined}" if pair.kappa is None else f"Cohen's kappa {pair.kappa:.2f}"
        same = "" if pair.same is None else f"{pair.same:.1%} the same, "
        echo(f"{' and '.join(pair.judges)}, on {pair.judged} readings: {same}{kappa}")
    for two in found.comparisons:
        what = f"{two.first} less {two.second}, on {two.judged} attributes of {two.responses} responses"
        if two.difference is None or two.p_value is None:
            echo(f"{what}: nothing was judged for both")
            continue
        interval = "" if two.interval is None else f" [{100 * two.interval[0]:+.1f}, {100 * two.interval[1]:+.1f}]"
        echo(
            f"{what}: {100 * two.difference:+.1f} points{interval}, p {two.p_value:.4f} "
            f"(could not be read: {two.first_not_read} and {two.second_not_read})"
        )
    if not found.complete:
        echo("NOT COMPLETE: some readings are still to be judged; the figures are of those that were")


def _row(extractor: str, task: str, attribute: str, found: AgreementRate) -> list[str]:
    interval = ""
    if found.interval is not None:
        interval = f"{100 * found.interval[0]:.1f} to {100 * found.interval[1]:.1f}" + (
            " (exact)" if found.exact else ""
        )
    share = "" if found.share is None else f"{found.share:.1%}"
    return [
        extractor, task, attribute, share, interval,
        *(str(number) for number in (found.judged, found.responses, found.waiting, found.not_read)),
    ]  # fmt: skip
