"""The user's own corpora: a manifest, optionally with a corpus card beside it.

The card of FILE.csv is FILE.yaml, or any corpus card that names it in `manifest`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vibe_harness.cards.faults import Faults
from vibe_harness.cards.paths import find_file
from vibe_harness.cards.validating import validated
from vibe_harness.cards.yaml_file import CardSource, read_card
from vibe_harness.corpora.card import CARD_SUFFIXES, CorpusCard
from vibe_harness.corpora.importers.base import LeftOut
from vibe_harness.corpora.manifest import Corpus, load_manifest
from vibe_harness.corpora.select import add_bands, keep_where, select
from vibe_harness.errors import UserError
from vibe_harness.registry import did_you_mean

_TABLES = (".csv", ".jsonl", ".ndjson", ".parquet")
_OTHER_CARDS = ("study", "task", "model", "speech_set")  # other kinds of card that may have the manifest's name


def load_with_card(manifest: Path) -> Corpus:
    """Load a manifest and apply the card beside it, if there is one. Raises UserError."""
    source = card_beside(manifest)
    return load_manifest(manifest) if source is None else _carded(source, validated(source, CorpusCard), manifest)


def load_by_card(path: Path) -> Corpus:
    """Load the manifest that a card names, or that has the card's name, and apply the card. Raises UserError."""
    source = read_card(path)
    card = validated(source, CorpusCard)
    return _carded(source, card, _manifest(card, path))


def manifest_of(path: Path) -> Path:
    """The manifest that a card names, or that has the card's name. Raises UserError if there is none."""
    return _manifest(validated(read_card(path), CorpusCard), path)


def card_beside(manifest: Path) -> CardSource | None:
    """The corpus card with the manifest's name; None if there is no such file, or it is another kind of card."""
    if manifest.stem and (
        found := [manifest.with_suffix(s) for s in CARD_SUFFIXES if manifest.with_suffix(s).is_file()]
    ):
        source = read_card(found[0])
        if "corpus" in source.data or not any(kind in source.data for kind in _OTHER_CARDS):
            return source
    return None


def without_sound(card: CorpusCard, corpus: Corpus, folder: Path) -> tuple[Corpus, list[LeftOut]]:
    """Apply what a card selects from the table alone: bands, where, lexicon, sentences, balance. Also returns what was
    left out.

    folder: of the card; a word list is found below it.
    """
    clips = add_bands(corpus.clips, card.bands)
    clips, left_out = keep_where(clips, card.select.where)
    clips, fallen = select(clips, card.select, folder)
    if not clips:
        raise UserError(f"corpus '{corpus.name}': its card leaves no clip: ask for less in 'select'")
    declared = replace(
        corpus, clips=tuple(clips), speaker_strata=card.speaker_strata, strata=card.strata, named_groups=card.groups,
        min_speakers=card.select.min_speakers,
    )  # fmt: skip
    return declared, [*left_out, *fallen]


def check_columns(source: CardSource, card: CorpusCard, corpus: Corpus) -> None:
    """Raise CardError listing every column that the card names and the manifest lacks."""
    have = {column for clip in corpus.clips for column in clip.groups} | {f"{column}_group" for column in card.bands}
    faults = Faults()
    for keys, column in card.columns:
        if column not in have:
            with faults.at(source.location(keys)):
                raise UserError(
                    f"{'.'.join(keys)}: the manifest has no column '{column}', or it is empty. "
                    f"{did_you_mean(column, have)}"
                )
    faults.raise_if_any()


def _carded(source: CardSource, card: CorpusCard, manifest: Path) -> Corpus:
    if card.perturb:
        raise UserError(
            f"{source.path}: the card changes the audio: make the corpus with `vibe-harness corpus prepare "
            f"{source.path}`, then name it with --corpus {card.corpus}"
        )
    corpus = load_manifest(manifest, card.corpus, card.distinct_speakers)
    check_columns(source, card, corpus)
    try:
        declared, fallen = without_sound(card, corpus, source.path.parent)
    except UserError as error:
        raise UserError(f"{source.path}: {error}") from None
    return replace(declared, left_out=tuple((one.file, one.why) for one in fallen))


def _manifest(card: CorpusCard, path: Path) -> Path:
    if not card.of_own:
        raise UserError(
            f"{path}: the card of a corpus that is prepared first: run `vibe-harness corpus prepare {path}`, then name "
            f"it with --corpus {card.corpus}"
        )
    if card.manifest:
        return find_file([path.parent], card.manifest)
    beside = [path.with_suffix(suffix) for suffix in _TABLES if path.with_suffix(suffix).is_file()]
    if not beside:
        raise UserError(f"{path}: no manifest {path.stem}.csv beside it: name one in the field 'manifest'")
    return beside[0]
