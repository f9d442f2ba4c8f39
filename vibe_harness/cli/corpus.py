"""`vibe-harness corpus`: prepare, list, check and show corpora, and see what the word list takes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vibe_harness.cli.completion import CORPUS
from vibe_harness.cli.new import new_corpus
from vibe_harness.cli.output import echo
from vibe_harness.errors import UserError

if TYPE_CHECKING:
    from vibe_harness.corpora.audio.check import Checked
    from vibe_harness.corpora.confounds import Confound
    from vibe_harness.corpora.importers.base import LeftOut
    from vibe_harness.corpora.manifest import Corpus
    from vibe_harness.records import CheckedAudio


@click.group(name="corpus")
def command() -> None:
    """Prepare, list, check and show corpora, or begin one."""


command.add_command(new_corpus)


@command.command(name="prepare")
@click.argument("name")
@click.option("--source", help="Folder or zip of the published corpus, or its id on the hub.")
@click.option("--output", type=click.Path(path_type=Path), help="Folder to write; the user's data folder by default.")
def prepare_corpus(name: str, source: str | None, output: Path | None) -> None:
    """Import the corpus of card NAME (or of a YAML file), so that --corpus NAME finds it."""
    from vibe_harness.cli.terminal import TerminalProgress
    from vibe_harness.corpora.card import load_corpus_card
    from vibe_harness.corpora.folders import own_corpora
    from vibe_harness.corpora.prepare.prepare import prepare

    card, path = load_corpus_card(name)
    folder = output or own_corpora() / card.corpus
    prepared = prepare(card, path, source, folder, TerminalProgress().stage)
    _print_corpus(prepared.corpus, prepared.audio, prepared.left_out)
    echo(f"Written to {folder}: README.md is its data card. Use it: --corpus {output or card.corpus}")


@command.command(name="list")
def list_corpora() -> None:
    """The corpora at hand, and those that can be prepared."""
    from vibe_harness.cli.terminal import print_table
    from vibe_harness.corpora.card import corpus_cards, load_corpus_card
    from vibe_harness.corpora.folders import own_corpora
    from vibe_harness.corpora.registry import corpus_manifests

    manifests, cards = corpus_manifests(), corpus_cards()
    rows = []
    for name in sorted({*manifests, *cards}):
        what = load_corpus_card(str(cards[name]))[0].description if name in cards else _told(manifests[name])
        mine = name in manifests and manifests[name].is_relative_to(own_corpora())
        state = "prepared" if mine else "comes along" if name in manifests else "not prepared"
        rows.append([name, state, what])
    print_table(["corpus", "state", "what"], rows)
    echo(f"Prepared corpora lie in {own_corpora()}")


@command.command(name="show")
@click.argument("name", shell_complete=CORPUS)
@click.option(
    "--figure", type=click.Path(path_type=Path, dir_okay=False), help="Draw the groups into this file, NAME.svg."
)
def show_corpus(name: str, figure: Path | None) -> None:
    """Clips, speakers, hours and groups of corpus NAME (or of a manifest), and what was left out and why."""
    from vibe_harness.corpora.prepare.folder import read_left_out
    from vibe_harness.corpora.registry import find_manifest
    from vibe_harness.store.atomic_files import check_replaced

    if figure:
        check_replaced(figure, ".svg")
    corpus, checked = _checked(name)
    if figure:
        _draw(corpus, _good(checked), figure)
    _print_corpus(corpus, _good(checked), read_left_out(find_manifest(name).parent))
    _print_faults(corpus, checked)
    if figure:
        echo(f"Figure: {figure}")


@command.command(name="check")
@click.argument("name", shell_complete=CORPUS)
@click.option("--dimension", "dimensions", multiple=True, help="Compare the recordings of these groups only.")
def check_corpus(name: str, dimensions: tuple[str, ...]) -> None:
    """Decode every clip of corpus NAME, a manifest, or a folder of audio: faults, and differences between groups.

    Exits with 1 where a clip cannot be used.
    """
    from vibe_harness.corpora.confounds import confounds
    from vibe_harness.corpora.prepare.data_card import MOST_GROUPS, speaker_dimensions, why_not_compared

    corpus, checked = _checked(name, dimensions)
    good = _good(checked)
    faults = _print_faults(corpus, checked)
    echo(f"{len(checked) - faults:,} of {len(checked):,} clips can be used")
    _print_repeats(corpus, checked)
    _print_kinds(good.values())
    usable = [clip for clip, _ in checked if clip.file in good]
    columns = (dimensions or speaker_dimensions(corpus)) if usable else ()
    compared = [one for column in columns for one in confounds(usable, good, column)]
    _print_confounds(compared)
    if usable and not compared and not dimensions:
        echo(f"Nothing was compared: no column of names puts each speaker into one of 2 to {MOST_GROUPS} groups")
        for column, why in why_not_compared(corpus).items() or [("every column for groups", "empty")]:
            echo(f"  {column}: {why}")
    if faults:
        raise click.exceptions.Exit(1)


@command.command(name="lexicon")
@click.argument("name", shell_complete=CORPUS)
@click.option("--lexicon", type=click.Path(path_type=Path), help="Another word list than the one that comes along.")
def show_lexicon(name: str, lexicon: Path | None) -> None:
    """Which sentences of corpus NAME (or of a manifest) hold a word on gender, age or race, and which word."""
    from vibe_harness.cli.terminal import print_table
    from vibe_harness.corpora.lexicon import load_lexicon, words_found
    from vibe_harness.corpora.registry import find_corpus
    from vibe_harness.library import library_root

    words = load_lexicon(lexicon or library_root() / "corpora" / "lexicons" / "demographic.txt")
    corpus = find_corpus(name)
    texts = {clip.text: clip.sentence_id or "" for clip in corpus.clips if clip.text}
    rows = []
    for text, sentence in texts.items():
        found = words_found(text, words)
        if found:
            rows.append([sentence, ", ".join(f"{word} ({words[word]})" for word in found), text])
    if rows:
        print_table(["sentence", "words", "text"], rows)
    without = sum(clip.text is None for clip in corpus.clips)
    echo(
        f"{len(rows)} of {len(texts)} sentences hold one of {len(words)} words"
        + (f"; {without} clips have no text" if without else "")
    )


def _told(manifest: Path) -> str:
    """A corpus without a card, in words; why it cannot be read, so that the others are listed all the same."""
    from vibe_harness.corpora.manifest import load_manifest

    try:
        corpus = load_manifest(manifest)
    except UserError as error:
        return str(error)
    return "; ".join(
        [f"{len(corpus.clips):,} clips of {len({c.speaker for c in corpus.clips}):,} speakers", *corpus.notes]
    )


def _checked(name: str, dimensions: Sequence[str] = ()) -> tuple[Corpus, Sequence[Checked]]:
    """The corpus of that name, manifest or folder of audio files, with a check of each clip.

    Raises UserError before any clip is decoded where there is no such corpus, or it lacks one of the dimensions.
    """
    from vibe_harness.cli.terminal import TerminalProgress
    from vibe_harness.corpora.audio.check import check_clips
    from vibe_harness.corpora.group_names import check_group_names
    from vibe_harness.corpora.registry import find_audio
    from vibe_harness.corpora.sampling import groups_of, words_of

    corpus = find_audio(name)
    for dimension in dimensions:
        groups_of(corpus.clips, dimension)
        check_group_names(dimension, words_of(corpus.clips, dimension), corpus.named_groups)
    with TerminalProgress().stage("checking clips", len(corpus.clips)) as tick:
        return corpus, check_clips(corpus, corpus.clips, tick)


def _good(checked: Sequence[Checked]) -> dict[str, CheckedAudio]:
    from vibe_harness.records import CheckedAudio

    return {clip.file: result for clip, result in checked if isinstance(result, CheckedAudio)}


def _print_faults(corpus: Corpus, checked: Sequence[Checked]) -> int:
    """Print the clips that cannot be used; returns their number."""
    from vibe_harness.corpora.audio.check import describe_faults
    from vibe_harness.records import CheckedAudio

    told = describe_faults(corpus, checked, most=len(checked))
    if told:
        echo(told)
    return sum(not isinstance(result, CheckedAudio) for _, result in checked)


def _print_repeats(corpus: Corpus, checked: Sequence[Checked]) -> None:
    """Name the recordings that one speaker has twice."""
    from vibe_harness.corpora.audio.check import without_repeats
    from vibe_harness.corpora.audio.decode import BadAudio, Fault

    twice = [] if corpus.silence else [
        (clip, result) for clip, result in without_repeats(checked)
        if isinstance(result, BadAudio) and result.fault is Fault.REPEATED
    ]  # fmt: skip
    if twice:
        echo(f"{len(twice):,} recordings stand twice under one speaker, which tasks of free answers refuse:")
    for clip, result in twice:
        echo(f"  {clip.file}: {result.reason}")
    again = len(checked) - len({(clip.file, clip.speaker) for clip, _ in checked})
    if again:
        echo(f"{again:,} rows name a file that another row of the same speaker names: in free answers it counts twice")


def _print_corpus(corpus: Corpus, audio: Mapping[str, CheckedAudio], left_out: Sequence[LeftOut]) -> None:
    from vibe_harness.cli.terminal import print_table
    from vibe_harness.corpora.importers.base import counted
    from vibe_harness.corpora.prepare.data_card import all_confounds, group_rows

    known = [audio[clip.file].duration_s for clip in corpus.clips if clip.file in audio]
    echo(
        f"{corpus.name}: {len(corpus.clips):,} clips, {len({clip.speaker for clip in corpus.clips}):,} speakers, "
        f"{sum(known) / 3600:.2f} hours; licence: {corpus.licence or 'not stated'}"
    )
    for note in corpus.notes:
        echo(f"  {note}")
    table = [
        [row.column, row.group, str(row.speakers), str(row.clips), "" if row.hours is None else f"{row.hours:.2f}"]
        for row in group_rows(corpus, audio)
    ]
    if table:
        print_table(["column", "group", "speakers", "clips", "hours"], table)
    for why, count in counted(left_out).items():
        echo(f"left out: {count:,}, {why}")
    usable = corpus if len(known) == len(corpus.clips) else None
    _print_warnings(all_confounds(usable, audio) if usable else [])


def _draw(corpus: Corpus, audio: Mapping[str, CheckedAudio], path: Path) -> None:
    """Draw the groups into an SVG. Raises UserError where it cannot be written."""
    from vibe_harness.corpora.prepare.data_card import group_rows
    from vibe_harness.report.figures import figure_svg, groups_figure
    from vibe_harness.store.atomic_files import atomic_write

    figure = groups_figure(f"{corpus.name}: clips by group", group_rows(corpus, audio))
    with atomic_write(path) as aside:
        aside.write_text(figure_svg(figure), encoding="utf-8", errors="replace")


def _print_kinds(audio: Iterable[CheckedAudio]) -> None:
    """What kinds of files the usable clips are."""
    from vibe_harness.cli.terminal import print_table

    kinds = Counter((f"{one.format}/{one.subtype}", f"{one.rate:,} Hz", str(one.channels)) for one in audio)
    if kinds:
        print_table(["files", "rate", "channels", "clips"], [[*kind, f"{n:,}"] for kind, n in sorted(kinds.items())])


def _print_confounds(compared: Sequence[Confound]) -> None:
    from vibe_harness.cli.terminal import print_table

    table = []
    for one in compared:
        warned = "differs" if one.warned else ""
        table.append([one.dimension, one.feature, one.groups(), one.size(), one.chance(), warned])
    if table:
        print_table(["dimension", "recordings", "by group", "effect", "p", ""], table)
    _print_warnings(compared)


def _print_warnings(compared: Sequence[Confound]) -> None:
    for one in compared:
        if one.warned:
            echo(f"warning: {one.sentence}")
