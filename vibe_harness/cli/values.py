"""`vibe-harness values`: what a run's answers say of an attribute, and aliases that they suggest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vibe_harness.cli.output import echo, tell

if TYPE_CHECKING:
    from vibe_harness.authoring.values import Proposal, RunValues

SHOWN = 4  # spellings of a value


def parse_aliases(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    """`SPELLING=VALUE`, repeated."""
    found: dict[str, str] = {}
    for item in value:
        spelling, equals, canonical = (part.strip() for part in item.partition("="))
        if not spelling or not equals or not canonical:
            raise click.BadParameter(f"'{item}' is not of the form SPELLING=VALUE")
        if found.setdefault(spelling, canonical) != canonical:
            raise click.BadParameter(f"'{spelling}' is given two values: '{found[spelling]}' and '{canonical}'")
    return found


@click.command(name="values")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--attribute", required=True, help="The attribute whose values are listed.")
@click.option("--task", help="Where several tasks of the run have that attribute.")
@click.option("--dimension", help="Count by its groups. Default: the first of the run.")
@click.option(
    "--accept",
    multiple=True,
    callback=parse_aliases,
    help="Write SPELLING=VALUE into the card's alias file; repeatable.",
)
@click.option("--review", is_flag=True, help="Ask about each proposed alias, and write those that you accept.")
@click.option("--include-path", multiple=True, type=click.Path(path_type=Path), help="Folder with your own cards.")
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(
    run: Path,
    attribute: str,
    task: str | None,
    dimension: str | None,
    accept: dict[str, str],
    review: bool,
    include_path: tuple[Path, ...],
    as_json: bool,
) -> None:
    """List the values of an attribute in the run folder RUN, raw and canonical, with counts by group.

    Near-duplicates are proposed as aliases; a person decides. Accepted ones go into the alias file that the task's card
    names. Then the command that made the run, given again, reads the answers anew; no model that hears is asked again.
    """
    import json
    from dataclasses import asdict

    from vibe_harness.authoring.alias_file import add_aliases
    from vibe_harness.authoring.values import run_values
    from vibe_harness.cards.loading import CardIndex
    from vibe_harness.cards.spelling import fold

    found = run_values(run, attribute, task, dimension)
    if as_json:
        echo(json.dumps(asdict(found), indent=2))
    elif not accept or review:
        _show(found)
    accepted = {**(_reviewed(found.proposals) if review else {}), **accept}
    if accepted:
        [card] = CardIndex(include_path).tasks([found.task])
        path = add_aliases(card, attribute, accepted)
        say = tell if as_json else echo
        said = {fold(word) for one in found.values for word in (one.value, *one.raw)}
        for spelling in accepted:
            if fold(spelling) not in said:
                say(f"No answer of this run says '{spelling}'")
        say(f"{len(accepted)} written to {path}. Give the command that made the run again: its answers are read anew")


def _show(found: RunValues) -> None:
    from vibe_harness.cli.terminal import print_table

    file = found.alias_file or "none"
    echo(f"{found.attribute} of {found.task}, answers by {found.dimension}; alias file: {file}")
    rows = []
    for one in found.values:
        spelled = [f"{raw} ({count})" if count > 1 else raw for raw, count in list(one.raw.items())[:SHOWN]]
        more = [f"and {len(one.raw) - SHOWN} more"] if len(one.raw) > SHOWN else []
        counts = [str(one.by_group.get(group, 0)) for group in found.groups]
        rows.append([one.value, *counts, str(one.total), "yes" if one.in_card else "", ", ".join([*spelled, *more])])
    print_table(["value", *found.groups, "all", "in card", "as written"], rows)
    if found.proposals:
        echo("Perhaps the same, for you to decide (--review asks about each):")
    for proposal in found.proposals:
        echo(f"  --accept '{proposal.spelling}={proposal.value}'  ({proposal.likeness:.0f} of 100 alike)")


def _reviewed(proposals: Sequence[Proposal]) -> dict[str, str]:
    """The proposals that the person says yes to."""
    return {
        proposal.spelling: proposal.value
        for proposal in proposals
        if click.confirm(f"'{proposal.spelling}' is another spelling of '{proposal.value}'", default=False, err=True)
    }
