"""`vibe-harness speech-set`: make a spoken question set from text, by a card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vibe_harness.cli.output import echo

if TYPE_CHECKING:
    from vibe_harness.speech_sets.building import BuiltSpeechSet


@click.command(name="speech-set")
@click.argument("card", type=click.Path(path_type=Path))
@click.option("--output", required=True, type=click.Path(path_type=Path), help="Folder to build in, and to go on in.")
@click.option("--include-path", "include_paths", multiple=True, type=click.Path(path_type=Path),
              help="Folder of model cards of your own; may be given often.")  # fmt: skip
def command(card: Path, output: Path, include_paths: tuple[Path, ...]) -> None:
    """Rewrite the texts of CARD for the ear, speak them, transcribe, screen, and draw a sample for people to rate.

    Every step goes on from what the folder holds. --corpus OUTPUT/manifest.csv plays the speech to a model.
    """
    from vibe_harness.api import make_speech_set
    from vibe_harness.cli.terminal import TerminalProgress

    _print(make_speech_set(card, output, include_paths, TerminalProgress()), output)


def _print(built: BuiltSpeechSet, output: Path) -> None:
    from vibe_harness.cli.terminal import print_table
    from vibe_harness.speech_sets.rating import RATINGS
    from vibe_harness.speech_sets.screening import BINS

    if built.flagged is None:
        echo(f"{built.texts:,} texts, spoken as they are written (the card names no model that rewrites)")
    else:
        echo(
            f"{built.texts:,} texts: {built.flagged:,} rewritten in more than space and case, listed in "
            f"{output / 'review.csv'} for a person to read; {built.mended:,} mended"
        )
    echo(f"{built.clips:,} clips, {built.hours:.2f} hours of synthetic speech: {output / 'manifest.csv'}")
    if built.bins is None:
        echo("not screened: the card names no recogniser")
        return
    rows = [[language, *(f"{100 * share[name]:.1f} %" for name in BINS)] for language, share in built.bins.items()]
    print_table(["error rate", *BINS], rows)
    echo(f"{built.sample:,} clips to rate: fill in the column 'rating' of {output / 'rating.csv'}")
    if built.ratings:
        rows = [
            [language, name, *(str(counts[rating]) for rating in RATINGS)]
            for (language, name), counts in sorted(built.ratings.items())
        ]
        print_table(["language", "error rate", *RATINGS], rows)
