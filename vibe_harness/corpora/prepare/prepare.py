"""`corpus prepare`: turn a published corpus on disk into a manifest, a list of what was left out, and a data card.

`folder` describes the files that it writes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from vibe_harness.cards.digest import digest
from vibe_harness.cards.yaml_file import read_card
from vibe_harness.corpora.audio.check import describe_faults
from vibe_harness.corpora.audio.check_cache import CachedCheck, check_cached, load_checks
from vibe_harness.corpora.audio.decode import BadAudio, Fault
from vibe_harness.corpora.card import CorpusCard, Perturbation
from vibe_harness.corpora.importers.base import IMPORTERS, LeftOut, Listing, counted
from vibe_harness.corpora.importers.hub import stream
from vibe_harness.corpora.importers.sources import disk_error, open_source
from vibe_harness.corpora.manifest import Corpus, Links, load_manifest
from vibe_harness.corpora.own_card import check_columns, manifest_of
from vibe_harness.corpora.prepare.folder import AUDIO, CHECKS, PreparedCorpus, locked, write_folder
from vibe_harness.corpora.prepare.perturb import swap_speakers
from vibe_harness.corpora.prepare.perturbed_files import perturb_files
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.corpora.select import add_bands, keep_where, select, without_duplicates
from vibe_harness.errors import UserError
from vibe_harness.records import CheckedAudio, Clip

Stage = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Begins a stage with a number of steps (0: unknown). Its value is called with the number of steps done."""


@contextmanager
def _unseen(name: str, total: int) -> Iterator[Callable[[int], None]]:
    yield lambda steps: None


def prepare(
    card: CorpusCard, card_path: Path, source: str | None, folder: Path, stage: Stage = _unseen
) -> PreparedCorpus:
    """Import, check and select clips, perturb them if the card says so, and write the folder, each file whole.

    source: a folder, a zip, or a hub id, for cards with an importer; None for cards with a base.
    Raises UserError if the source is not the corpus, if no audio can be used, if the disk is full, and if another
    process is preparing the folder. An earlier preparation is then left as it was.
    """
    try:
        with locked(folder):
            audio = folder / AUDIO
            before = _entries(audio)
            try:
                prepared = _prepare(card, card_path, source, folder, stage)
            except (UserError, OSError):
                _remove(_entries(audio) - before)
                raise
            _remove({entry for entry in _entries(audio) if not prepared.corpus.root.is_relative_to(entry.resolve())})
            return prepared
    except OSError as error:
        raise disk_error(folder, error) from error


def _entries(folder: Path) -> set[Path]:
    return set(folder.iterdir()) if folder.is_dir() else set()


def _remove(entries: set[Path]) -> None:
    for entry in entries:
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _prepare(card: CorpusCard, card_path: Path, source: str | None, folder: Path, stage: Stage) -> PreparedCorpus:
    listing, facts = _listing(card, card_path, source, folder / AUDIO, stage)
    _check_unique(listing.clips)
    _check_card(card, card_path, listing)
    clips, left_out = _within(listing.root, add_bands(listing.clips, card.bands))
    clips, fallen = keep_where(clips, card.select.where)
    left_out += [*listing.left_out, *fallen]
    checks = _checked(listing.root, clips, folder, stage)
    clips, audio, bad = _usable(card, listing.root, clips, checks)
    left_out += bad
    if card.base is None and card.select.drop_copies:
        clips, copies = without_duplicates(clips, {file: one.sha256 for file, one in audio.items()})
        left_out += copies
    clips, fallen = select(clips, card.select, card_path.parent)
    left_out += fallen
    root = listing.root
    if card.perturb:
        if card.perturb.swap_speakers:
            clips, fallen = swap_speakers(clips, card.select.seed)
            left_out += fallen
        further = _further(clips)
        sound = [[clip.id, *(audio[file].sha256 for file in _files_of(clip, further))] for clip in clips]
        target = folder / AUDIO / digest([card.perturb.model_dump(), sound], 8)
        with stage("changing the audio", len(clips) * len(card.perturb.changes())) as tick:
            clips, audio = perturb_files(root, clips, card.perturb, target, tick)
        root = target
    if not clips:
        reasons = ", ".join(f"{count} {why}" for why, count in counted(left_out).items())
        raise UserError(f"corpus '{card.corpus}': nothing remains: {reasons}")
    notes = [*facts.get("notes", ()), *listing.notes, *_absent_groups(card, clips)]
    corpus = Corpus(
        card.corpus, root.resolve(), tuple(clips), facts["licence"], facts["synthetic"], tuple(notes),
        bool(card.perturb and card.perturb.silence), card.speaker_strata, card.strata, card.groups,
        tuple(card.distinct_speakers), card.select.min_speakers,
    )  # fmt: skip
    prepared = PreparedCorpus(folder, corpus, audio, left_out)
    write_folder(card, prepared, checks, listing.root)
    return prepared


def _check_card(card: CorpusCard, path: Path, listing: Listing) -> None:
    """Raise CardError for columns that the card names and its manifest lacks."""
    if card.of_own:
        check_columns(read_card(path), card, Corpus(card.corpus, listing.root, tuple(listing.clips)))


def _listing(
    card: CorpusCard, card_path: Path, source: str | None, audio: Path, stage: Stage
) -> tuple[Listing, dict[str, Any]]:
    """The clips to select from, and facts on the whole corpus: licence, synthetic, notes.

    audio: the folder for unpacked or streamed audio, which gets one folder per source.
    """
    if card.base:
        if source:
            raise UserError(f"corpus '{card.corpus}' is made from '{card.base}': leave --source out")
        base = find_corpus(card.base)
        clips = [replace(clip, id=f"{card.corpus}/{clip.id.removeprefix(base.name + '/')}") for clip in base.clips]
        notes = list(base.notes) + ([_described(card.perturb)] if card.perturb else [])
        return Listing(base.root, clips), {"licence": base.licence, "synthetic": base.synthetic, "notes": notes}
    if card.of_own:
        if source:
            raise UserError(f"corpus '{card.corpus}' is made from its manifest: leave --source out")
        own = load_manifest(manifest_of(card_path), card.corpus, card.distinct_speakers)
        notes = list(own.notes) + ([_described(card.perturb)] if card.perturb else [])
        return Listing(own.root, list(own.clips)), {"licence": own.licence, "synthetic": own.synthetic, "notes": notes}
    importer = IMPORTERS.get(card.importer or "")
    facts = {"licence": importer.licence, "synthetic": importer.synthetic}
    if not source:
        raise UserError(f"corpus '{card.corpus}': give --source, the folder or zip of {importer.title}")
    work = audio / digest([card.importer, _identity(source)], 8)
    if importer.hub and not Path(source).exists() and source.count("/") == 1:
        with stage(f"rows of {source}", 0) as tick:
            return importer.hub(stream(source, tick, work), work, card.corpus), facts
    return importer.read(open_source(Path(source), work), work, card.corpus), facts


def _check_unique(clips: Sequence[Clip]) -> None:
    files: dict[str, str] = {}
    for clip in clips:
        if clip.id in files:
            raise UserError(
                f"two clips have the id '{clip.id}': {files[clip.id]} and {clip.file}: remove one of the two"
            )
        files[clip.id] = clip.file


def _within(root: Path, clips: Sequence[Clip]) -> tuple[list[Clip], list[LeftOut]]:
    """Leave out clips that are links out of the root. (A manifest that names such files is refused when it is read.)"""
    links, further = Links(root), _further(clips)
    kept: list[Clip] = []
    left_out = []
    for clip in clips:
        out = [file for file in _files_of(clip, further) if links.lead_out(file)]
        left_out += [LeftOut(file, "a link out of the source folder: copy the file there") for file in out]
        if not out:
            kept.append(clip)
    if clips and not kept:
        raise UserError(f"{root}: all of its clips are links out of that folder: copy the files there (cp -rL)")
    return kept, left_out


def _identity(source: str) -> object:
    """What identifies a source: its path and, for a file, its size and time."""
    path = Path(source)
    if not path.exists():
        return source
    status = path.stat()
    return [str(path.resolve()), *((status.st_size, status.st_mtime_ns) if path.is_file() else ())]


def _files_of(clip: Clip, further: Sequence[str]) -> list[str]:
    """The clip's file, and its further audio files in these columns."""
    return [clip.file, *(clip.groups[column] for column in further if column in clip.groups)]


def _further(clips: Sequence[Clip]) -> list[str]:
    """Columns that name further audio files of a clip."""
    return sorted({column for clip in clips for column in clip.groups if column.endswith("_file")})


def _checked(root: Path, clips: Sequence[Clip], folder: Path, stage: Stage) -> dict[str, CachedCheck]:
    further = _further(clips)
    files = list(dict.fromkeys(file for clip in clips for file in _files_of(clip, further)))
    checks = {}
    with stage("checking clips", len(files)) as tick:
        for file, entry in check_cached(root, files, load_checks(folder / CHECKS, root)):
            checks[file] = entry
            tick(1)
    return checks


def _usable(
    card: CorpusCard, root: Path, clips: Sequence[Clip], checks: Mapping[str, CachedCheck]
) -> tuple[list[Clip], dict[str, CheckedAudio], list[LeftOut]]:
    """Keep clips whose audio can be used. Raises UserError if there are none, or most files are git-lfs pointers."""
    kept: list[Clip] = []
    audio: dict[str, CheckedAudio] = {}
    left_out = []
    further = _further(clips)
    for clip in clips:
        good: dict[str, CheckedAudio] = {}
        bad: list[LeftOut] = []
        for file in _files_of(clip, further):
            result = checks[file].result
            if isinstance(result, BadAudio):
                bad.append(LeftOut(file, result.fault.value, result.reason))
            else:
                good[file] = result
        if bad:
            left_out += bad
        else:
            kept.append(clip)
            audio.update(good)
    pointers = sum(one.why == Fault.LFS_POINTER for one in left_out)
    if clips and (not kept or pointers > len(clips) / 2):
        results = [
            (replace(clip, file=file), checks[file].result) for clip in clips for file in _files_of(clip, further)
        ]
        raise UserError(describe_faults(Corpus(card.corpus, root, ()), results, 10))
    return kept, audio, left_out


def _absent_groups(card: CorpusCard, clips: Sequence[Clip]) -> list[str]:
    notes = []
    for column, groups in card.select.where.items():
        absent = sorted(set(groups) - {clip.groups.get(column) for clip in clips})
        if absent:
            notes.append(f"no clip remains of the {column} {', '.join(absent)}, which the card selects")
    return notes


def _described(card: Perturbation) -> str:
    changed = card.model_dump(exclude_defaults=True)
    return "the audio was changed: " + ", ".join(f"{name} {value}" for name, value in changed.items())
