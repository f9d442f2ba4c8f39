"""Corpora as data sets on the Hugging Face hub: streaming rows, and writing them in the layout of the corpus."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from vibe_harness.corpora.table_rows import require_columns
from vibe_harness.errors import UserError

AUDIO_SUFFIXES = (".wav", ".mp3", ".flac", ".ogg")
_ROWS = 16  # read at a time


@dataclass(frozen=True, slots=True)
class HubRow:
    """One row of a data set on the hub."""

    place: str  # for messages: "ORG/NAME, config en_Male, row 12 of test"
    home: str  # prefix of paths to the data set's own files
    config: str
    cells: Mapping[str, Any]  # audio is {"bytes": ..., "path": ...}, not decoded
    written: set[Path] = field(default_factory=set, compare=False)  # audio files written for this row and earlier ones

    def text(self, *columns: str) -> str:
        """The text of the first of these columns that exists; "" if it is empty. Raises UserError if none does."""
        column = next((column for column in columns if column in self.cells), None)
        if column is None:
            named, there = " or ".join(map(repr, columns)), ", ".join(map(repr, self.cells))
            raise UserError(f"{self.place}: no column {named}; it has {there}")
        return "" if self.cells[column] is None else str(self.cells[column]).strip()

    def audio_name(self, column: str = "audio") -> str:
        """The file name of the audio, without folders; "" if it has none."""
        return PurePosixPath(self._audio(column).get("path") or "").name

    def audio(self, column: str = "audio") -> bytes:
        """The content of the audio file. Raises UserError if there is none."""
        cell = self._audio(column)
        data = cell.get("bytes") or (self._read(cell["path"]) if cell.get("path") else None)
        if not data:
            raise UserError(f"{self.place}: the audio of '{column}' is missing")
        return bytes(data)

    def _audio(self, column: str) -> Mapping[str, Any]:
        require_columns(self.place, self.cells, [column])
        cell = self.cells[column]
        return cell if isinstance(cell, Mapping) else {}

    def _read(self, path: str) -> bytes:
        """Read an audio file that the data set stores beside the rows. Files outside of the data set are refused."""
        import fsspec

        place = path.rpartition("::")[2]  # the archive's path, if the file is in one
        if not place.startswith((f"{self.home}/", f"{self.home}@")) or ".." in place.split("/"):
            raise UserError(f"{self.place}: its audio {path} lies outside of the data set")
        try:
            with fsspec.open(path, "rb") as file:
                data: bytes = file.read()
        except OSError as error:
            raise UserError(f"{self.place}: its audio {path} cannot be read: {error}") from None
        return data

    def audio_suffix(self, column: str = "audio") -> str:
        """The extension of the audio's file name, in lower case; ".wav" if it is not one of audio files."""
        suffix = PurePosixPath(self.audio_name(column)).suffix.lower()
        return suffix if suffix in AUDIO_SUFFIXES else ".wav"

    def write_audio(self, folder: Path, *parts: str, column: str = "audio") -> None:
        """Write the audio to folder/part/part. Raises UserError for parts that are not plain file names."""
        path = self.path(folder, *parts)
        self.written.add(path)
        data = self.audio(column)
        if not (path.is_file() and path.read_bytes() == data):  # so that the cached check still holds
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def path(self, folder: Path, *parts: str) -> Path:
        """folder/part/part. Raises UserError for parts that are not plain file names, since rows are not trusted."""
        for part in parts:
            if part in ("", ".", "..") or any(mark in part for mark in "/\\:\0"):
                raise UserError(f"{self.place}: {part!r} cannot be the name of a file")
        return folder.joinpath(*parts)


def stream(name: str, tick: Callable[[int], None] = lambda _: None, work: Path | None = None) -> Iterator[HubRow]:
    """Every row of a data set on the hub (or of a folder in that layout), config by config and split by split.

    Rows are read as Arrow, since `datasets` needs torch to return audio, decoded or not. work: where their audio is
    written; other audio files there, from an earlier revision, are removed after the last row. Raises UserError if the
    data set cannot be read.
    """
    from datasets import get_dataset_config_names, load_dataset
    from datasets.exceptions import DatasetsError

    home = str(Path(name).resolve()) if Path(name).exists() else f"hf://datasets/{name}"
    written: set[Path] = set()
    try:
        for config in get_dataset_config_names(name):
            for split, rows in load_dataset(name, config, streaming=True).items():
                number = 0
                for table in rows.with_format("arrow").iter(batch_size=_ROWS):
                    for cells in table.to_pylist():
                        number += 1
                        yield HubRow(f"{name}, config {config}, row {number} of {split}", home, config, cells, written)
                        tick(1)
    except (OSError, DatasetsError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(f"--source {name}: no such folder, and it cannot be read from the hub: {reason}") from None
    for path in sorted(work.rglob("*")) if work else ():
        if path.suffix.lower() in AUDIO_SUFFIXES and path not in written:
            path.unlink()


def write_table(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Write rows as CSV. The columns stand in order of first appearance."""
    kept = list(rows)
    columns = dict.fromkeys(column for row in kept for column in row)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
