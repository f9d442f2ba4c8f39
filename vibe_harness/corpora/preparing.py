"""`corpus prepare`: a published corpus as it lies on disk becomes a manifest, a list of what was left out, a data card.

A prepared corpus is a folder:
    manifest.parquet   one row a clip; opens with `datasets` and pandas
    left_out.csv       file, why, detail: every clip that is not in the manifest
    README.md          the data card, for people
    checks.parquet     the checks of all files, so that the next `prepare` decodes only what changed
    audio/             only where the source was a zip or the hub, or the card perturbs the sound
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vibe_harness.corpora.audio import BadAudio, CheckedAudio, Fault
from vibe_harness.corpora.card import CorpusCard, Perturbation
from vibe_harness.corpora.check_cache import Entry, check_cached, load_checks, save_checks
from vibe_harness.corpora.checking import describe_faults
from vibe_harness.corpora.importing import IMPORTERS, LeftOut, Listing
from vibe_harness.corpora.manifest import METADATA, Corpus
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.corpora.selecting import add_bands, keep_where, select, without_duplicates
from vibe_harness.corpora.sources import disk_error, open_source
from vibe_harness.errors import UserError
from vibe_harness.records import Clip

MANIFEST, LEFT_OUT, DATA_CARD, CHECKS, AUDIO = (
    "manifest.parquet", "left_out.csv", "README.md", "checks.parquet", "audio",
)  # fmt: skip
Tick = Callable[[int, int], None]  # files checked, files in all


@dataclass(frozen=True)
class Prepared:
    """A corpus just prepared."""

    folder: Path
    corpus: Corpus
    audio: Mapping[str, CheckedAudio]  # Clip.file -> its check
    left_out: Sequence[LeftOut]


def prepare(
    card: CorpusCard, card_path: Path, source: str | None, folder: Path, workers: int, tick: Tick = lambda *_: None
) -> Prepared:
    """Import, check, select and, where the card says so, perturb; then write the folder, each file whole or not at all.

    source: a folder, a zip, or a hub id, for cards with an importer; None for cards with a base.
    Raises UserError for a source that is not the corpus, for audio none of which can be used, and for a full disk.
    """
    try:
        listing, facts = _listing(card, source, folder)
        clips, left_out = keep_where(add_bands(listing.clips, card.bands), card.select.where)
        left_out = [*listing.left_out, *left_out]
        checks = _checked(listing.root, clips, folder, workers, tick)
        clips, audio, bad = _usable(card, listing.root, clips, checks)
        left_out += bad
        if card.importer and card.select.drop_copies:
            clips, copies = without_duplicates(clips, {file: one.sha256 for file, one in audio.items()})
            left_out += copies
        clips, fallen = select(clips, card.select, card_path.parent)
        left_out += fallen
        root = listing.root
        if card.perturb:
            from vibe_harness.corpora.perturbed_files import perturb_files

            clips, fallen, root, audio = perturb_files(root, clips, card, folder, workers)
            left_out += fallen
        if not clips:
            raise UserError(f"corpus '{card.corpus}': nothing remains: {_reasons(left_out)}")
        notes = [*facts.get("notes", ()), *listing.notes, *_absent_groups(card, clips)]
        corpus = Corpus(
            card.corpus, root.resolve(), tuple(clips), facts["licence"], facts["synthetic"], tuple(notes),
            bool(card.perturb and card.perturb.silence), card.speaker_strata, card.strata,
        )  # fmt: skip
        prepared = Prepared(folder, corpus, audio, left_out)
        _write(card, prepared, checks, listing.root)
    except OSError as error:
        raise disk_error(folder, error) from error
    return prepared


def _listing(card: CorpusCard, source: str | None, folder: Path) -> tuple[Listing, dict[str, Any]]:
    """The clips to choose from, and what is known of all: licence, synthetic, notes."""
    if card.base:
        if source:
            raise UserError(f"corpus '{card.corpus}' is made from '{card.base}': leave --source out")
        base = find_corpus(card.base)
        clips = [replace(clip, id=f"{card.corpus}/{clip.id.removeprefix(base.name + '/')}") for clip in base.clips]
        notes = list(base.notes) + ([_described(card.perturb)] if card.perturb else [])
        return Listing(base.root, clips), {"licence": base.licence, "synthetic": base.synthetic, "notes": notes}
    importer = IMPORTERS.get(card.importer or "")
    facts = {"licence": importer.licence, "synthetic": importer.synthetic}
    if not source:
        raise UserError(f"corpus '{card.corpus}': give --source, the folder or zip of {importer.title}")
    if importer.hub and not Path(source).exists() and source.count("/") == 1:
        return importer.hub(source, folder / AUDIO, card.corpus), facts
    root = open_source(Path(source), folder / AUDIO)
    return importer.read(root, folder / AUDIO, card.corpus), facts


def _files_of(clip: Clip) -> list[str]:
    """The clip's file, and further audio of it: columns that end in _file."""
    return [clip.file, *(file for column, file in clip.groups.items() if column.endswith("_file"))]


def _checked(root: Path, clips: Sequence[Clip], folder: Path, workers: int, tick: Tick) -> dict[str, Entry]:
    files = list(dict.fromkeys(file for clip in clips for file in _files_of(clip)))
    checks = {}
    for file, entry in check_cached(root, files, load_checks(folder / CHECKS, root), workers):
        checks[file] = entry
        tick(len(checks), len(files))
    return checks


def _usable(
    card: CorpusCard, root: Path, clips: Sequence[Clip], checks: Mapping[str, Entry]
) -> tuple[list[Clip], dict[str, CheckedAudio], list[LeftOut]]:
    """Clips all of whose audio can be used. Raises UserError where none can, or most are git-lfs pointers."""
    kept: list[Clip] = []
    audio: dict[str, CheckedAudio] = {}
    left_out = []
    for clip in clips:
        results = {file: checks[file].result for file in _files_of(clip)}
        bad = {file: result for file, result in results.items() if isinstance(result, BadAudio)}
        if bad:
            left_out += [LeftOut(file, result.fault.value, result.reason) for file, result in bad.items()]
        else:
            kept.append(clip)
            audio |= {file: result for file, result in results.items() if isinstance(result, CheckedAudio)}
    pointers = sum(one.why == Fault.LFS_POINTER for one in left_out)
    if clips and (not kept or pointers > len(clips) / 2):
        raise UserError(
            describe_faults(Corpus(card.corpus, root, ()), [(clip, checks[clip.file].result) for clip in clips], 10)
        )
    return kept, audio, left_out


def _absent_groups(card: CorpusCard, clips: Sequence[Clip]) -> list[str]:
    notes = []
    for column, groups in card.select.where.items():
        absent = sorted(set(groups) - {clip.groups.get(column) for clip in clips})
        if absent:
            notes.append(f"no clip remains of the {column} {', '.join(absent)}, which the card asks for")
    return notes


def _described(card: Perturbation) -> str:
    changed = card.model_dump(exclude_defaults=True)
    return "the sound was changed: " + ", ".join(f"{name} {value}" for name, value in changed.items())


def _reasons(left_out: Sequence[LeftOut]) -> str:
    from vibe_harness.corpora.importing import counted

    return ", ".join(f"{count} {why}" for why, count in counted(left_out).items())


def _write(card: CorpusCard, prepared: Prepared, checks: Mapping[str, Entry], checked_root: Path) -> None:
    """Write every file aside, then put all in place, the manifest last."""
    from vibe_harness.corpora.data_card import data_card

    folder = prepared.folder
    folder.mkdir(parents=True, exist_ok=True)
    writers: dict[str, Callable[[Path], None]] = {
        CHECKS: lambda path: save_checks(path, checked_root, checks),
        LEFT_OUT: lambda path: _write_left_out(path, prepared.left_out),
        DATA_CARD: lambda path: _write_text(path, data_card(card, prepared.corpus, prepared.audio, prepared.left_out)),
        MANIFEST: lambda path: write_manifest(path, prepared.corpus, prepared.audio),
    }
    aside = {name: folder / f".{name}.part" for name in writers}
    try:
        for name, write in writers.items():
            write(aside[name])
        for name in writers:
            aside[name].replace(folder / name)
    finally:
        for path in aside.values():
            path.unlink(missing_ok=True)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _write_left_out(path: Path, left_out: Sequence[LeftOut]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["file", "why", "detail"])
        writer.writerows((one.file, one.why, one.detail) for one in left_out)


def read_left_out(folder: Path) -> list[LeftOut]:
    """What a prepared corpus left out; nothing for one that was not prepared."""
    path = folder / LEFT_OUT
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [LeftOut(row["file"], row["why"], row["detail"]) for row in csv.DictReader(file)]


def write_manifest(path: Path, corpus: Corpus, audio: Mapping[str, CheckedAudio]) -> None:
    """One row a clip, as Parquet, with what the checks measured; `id` is Clip.id, whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    clips = corpus.clips
    groups = list(dict.fromkeys(column for clip in clips for column in clip.groups))
    text = pa.string()
    columns: dict[str, Any] = {
        "corpus": pa.array([corpus.name] * len(clips), text),
        "id": pa.array([clip.id for clip in clips], text),
        "file": pa.array([clip.file for clip in clips], text),
        "speaker": pa.array([clip.speaker for clip in clips], text),
        **{name: pa.array([clip.groups.get(name) for clip in clips], text) for name in groups},
        "text": pa.array([clip.text for clip in clips], text),
        "duration_s": pa.array([audio[clip.file].duration_s for clip in clips], pa.float64()),
        "sample_rate": pa.array([audio[clip.file].rate for clip in clips], pa.int32()),
        "channels": pa.array([audio[clip.file].channels for clip in clips], pa.int32()),
        "format": pa.array([audio[clip.file].format for clip in clips], text),
        "subtype": pa.array([audio[clip.file].subtype for clip in clips], text),
        "level_db": pa.array([audio[clip.file].level_db for clip in clips], pa.float64()),
        "clipped": pa.array([audio[clip.file].clipped for clip in clips], pa.float64()),
        "pauses": pa.array([audio[clip.file].pauses for clip in clips], pa.float64()),
        "sha256": pa.array([audio[clip.file].sha256 for clip in clips], text),
        "licence": pa.array([corpus.licence] * len(clips), text),
        "synthetic": pa.array([corpus.synthetic] * len(clips), pa.bool_()),
    }
    facts = {
        "corpus": corpus.name,
        "audio_folder": str(corpus.root),
        "notes": list(corpus.notes),
        "silence": corpus.silence,
        "speaker_strata": {name: list(columns) for name, columns in corpus.speaker_strata.items()},
        "strata": list(corpus.strata),
    }
    metadata = {METADATA: json.dumps(facts, ensure_ascii=False)}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)
