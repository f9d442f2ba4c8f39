"""The checks of a corpus kept on disk, so that a file that has not changed is not decoded again."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vibe_harness.corpora.audio.check_files import check_files
from vibe_harness.corpora.audio.decode import BadAudio, Fault
from vibe_harness.corpora.folders import data_folder
from vibe_harness.records import CheckedAudio

VERSION = "4"  # of the checks: raised when they measure or judge otherwise
_ABSENT = (-1, -1, -1)
_KEY = b"vibe_harness.checks"
_FIELDS = {field.name: {"float": "float64", "int": "int64"}.get(str(field.type), "string") for field in
           dataclasses.fields(CheckedAudio)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CachedCheck:
    """One file's check, and the size and times that the file had.

    The time of the change of its entry (ctime) tells a file that was moved here with its old time of writing.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    result: CheckedAudio | BadAudio


def check_cached(
    root: Path, files: Sequence[str], known: Mapping[str, CachedCheck]
) -> Iterator[tuple[str, CachedCheck]]:
    """Each file below `root` with its check, in order: the known one where size and time still agree."""
    stale: dict[str, Path] = {}
    stats: dict[str, tuple[int, int, int]] = {}
    for file in files:
        path = root / file
        try:
            status = path.stat()
            stats[file] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        except OSError:
            stats[file] = _ABSENT  # check_audio says what is wrong
        entry = known.get(file)
        if entry is None or (entry.size, entry.mtime_ns, entry.ctime_ns) != stats[file] or stats[file] == _ABSENT:
            stale[file] = path
    results = check_files(list(stale.values()))
    for file in files:
        yield file, CachedCheck(*stats[file], next(results)) if file in stale else known[file]


def check_remembered(root: Path, files: Sequence[str]) -> Iterator[tuple[str, CheckedAudio | BadAudio]]:
    """Each file below `root` with its check, in order; kept in the user's folder for the next command."""
    folder = data_folder()
    path = folder and folder / "checks" / f"{hashlib.sha256(_stamp(root)).hexdigest()[:16]}.parquet"
    known = load_checks(path, root) if path else {}
    found: dict[str, CachedCheck] = {}
    for file, entry in check_cached(root, files, known):
        found[file] = entry
        yield file, entry.result
    if path and any(known.get(file) is not entry for file, entry in found.items()):
        aside = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            save_checks(aside, root, {**known, **found})
            aside.replace(path)
        except (OSError, UnicodeEncodeError):  # a folder that takes no writes, a name that is not UTF-8
            with suppress(OSError):
                aside.unlink(missing_ok=True)


def load_checks(path: Path, root: Path) -> dict[str, CachedCheck]:
    """The checks kept in a file; none where there is no such file, or it is of another folder or version."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path).read()
    except (OSError, pa.ArrowInvalid):
        return {}
    if (table.schema.metadata or {}).get(_KEY) != _stamp(root):
        return {}
    entries = {}
    for row in table.to_pylist():
        result: CheckedAudio | BadAudio
        if row["fault"] is not None:
            result = BadAudio(Fault(row["fault"]), row["reason"])
        else:
            result = CheckedAudio(**{name: row[name] for name in _FIELDS})
        entries[row["file"]] = CachedCheck(row["size"], row["mtime_ns"], row["ctime_ns"], result)
    return entries


def save_checks(path: Path, root: Path, entries: Mapping[str, CachedCheck]) -> None:
    """Write the checks to `path`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = {
        "file": "string",
        "size": "int64",
        "mtime_ns": "int64",
        "ctime_ns": "int64",
        "fault": "string",
        "reason": "string",
        **_FIELDS,
    }
    columns: dict[str, list[object]] = {
        "file": list(entries),
        "size": [entry.size for entry in entries.values()],
        "mtime_ns": [entry.mtime_ns for entry in entries.values()],
        "ctime_ns": [entry.ctime_ns for entry in entries.values()],
    }
    for name in ("fault", "reason", *_FIELDS):
        columns[name] = [getattr(entry.result, name, None) for entry in entries.values()]
    alias: Any = pa.type_for_alias
    schema = pa.schema([(name, alias(kind)) for name, kind in fields.items()], metadata={_KEY: _stamp(root)})
    pq.write_table(pa.table(columns, schema=schema), path)


def _stamp(root: Path) -> bytes:
    return f"{VERSION} {root.resolve()}".encode()
