"""The folder of a prepared corpus. Files are replaced whole, by one process at a time.

manifest.parquet   one row per clip; opens with `datasets` and pandas
left_out.csv       file, why, detail: every clip that is not in the manifest
README.md          the data card
checks.parquet     the checks of all files, so that the next `prepare` only decodes changed files
audio/             only if the source was a zip or the hub, or if the card changes the audio
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from vibe_harness.corpora.audio.check_cache import CachedCheck, save_checks
from vibe_harness.corpora.card import CorpusCard
from vibe_harness.corpora.importers.base import LeftOut
from vibe_harness.corpora.manifest import METADATA, Corpus
from vibe_harness.corpora.prepare.data_card import data_card
from vibe_harness.csv_sheets import inert_row
from vibe_harness.errors import UserError
from vibe_harness.records import CheckedAudio

MANIFEST, LEFT_OUT, DATA_CARD, CHECKS, AUDIO = (
    "manifest.parquet", "left_out.csv", "README.md", "checks.parquet", "audio",
)  # fmt: skip


@dataclass(frozen=True)
class PreparedCorpus:
    """A corpus just prepared."""

    folder: Path
    corpus: Corpus
    audio: Mapping[str, CheckedAudio]  # Clip.file -> its check
    left_out: Sequence[LeftOut]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder, which is made if needed, for this process. Raises UserError if another process has the lock."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / ".lock", blocking=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise UserError(f"{folder}: another process is preparing this corpus: wait until it is done") from None
    try:
        yield
    finally:
        lock.release()


def write_folder(
    card: CorpusCard, prepared: PreparedCorpus, checks: Mapping[str, CachedCheck], checked_root: Path
) -> None:
    """Write all files under temporary names, then rename them, the manifest last.

    Raises UserError if the name of an audio file is not UTF-8.
    """
    folder = prepared.folder
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
    except UnicodeEncodeError as error:  # Linux allows any bytes in a name; a table of text does not
        raise UserError(f"the name {error.object!r} is not UTF-8, so no table can hold it: rename the file") from None
    finally:
        for path in aside.values():
            path.unlink(missing_ok=True)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _write_left_out(path: Path, left_out: Sequence[LeftOut]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["file", "why", "detail"])
        writer.writerows(inert_row((one.file, one.why, one.detail)) for one in left_out)


def read_left_out(folder: Path) -> list[LeftOut]:
    """What a prepared corpus left out; an empty list for one that was not prepared."""
    path = folder / LEFT_OUT
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [LeftOut(row["file"], row["why"], row["detail"]) for row in csv.DictReader(file)]


def write_manifest(path: Path, corpus: Corpus, audio: Mapping[str, CheckedAudio]) -> None:
    """Write one row per clip, as Parquet, with what the checks measured. `id` is the whole Clip.id."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    clips = corpus.clips
    checks = [audio[clip.file] for clip in clips]
    groups = list(dict.fromkeys(column for clip in clips for column in clip.groups))
    text = pa.string()
    measured = {
        "channels": pa.int32(),
        "format": text,
        "subtype": text,
        "level_db": pa.float64(),
        "clipped": pa.float64(),
        "pauses": pa.float64(),
        "noise_db": pa.float64(),
        "bandwidth_hz": pa.float64(),
        "sha256": text,
    }
    columns: dict[str, Any] = {
        "corpus": pa.array([corpus.name] * len(clips), text),
        "id": pa.array([clip.id for clip in clips], text),
        "file": pa.array([clip.file for clip in clips], text),
        "speaker": pa.array([clip.speaker for clip in clips], text),
        **{name: pa.array([clip.groups.get(name) for clip in clips], text) for name in groups},
        "text": pa.array([clip.text for clip in clips], text),
        "duration_s": pa.array([check.duration_s for check in checks], pa.float64()),
        "sample_rate": pa.array([check.rate for check in checks], pa.int32()),
        **{name: pa.array([getattr(check, name) for check in checks], kind) for name, kind in measured.items()},
        "licence": pa.array([corpus.licence] * len(clips), text),
        "synthetic": pa.array([corpus.synthetic] * len(clips), pa.bool_()),
    }
    metadata = {METADATA: json.dumps(_facts(corpus), ensure_ascii=False)}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)


def _facts(corpus: Corpus) -> dict[str, Any]:
    """Metadata of the corpus as a whole."""
    return {
        "corpus": corpus.name,
        "audio_folder": str(corpus.root),
        "notes": list(corpus.notes),
        "silence": corpus.silence,
        "speaker_strata": {name: list(columns) for name, columns in corpus.speaker_strata.items()},
        "strata": list(corpus.strata),
        "named_groups": {name: list(groups) for name, groups in corpus.named_groups.items()},
        "distinct_speakers": list(corpus.distinct_speakers),
        "min_speakers": corpus.min_speakers,
    }
