"""A corpus as a data set of the Hugging Face hub: its rows, streamed, written down in the corpus's own layout."""

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
    """One row."""

    place: str  # for messages: "ORG/NAME, config en_Male, row 12 of test"
    home: str  # what the paths of the data set's own files begin with
    config: str
    cells: Mapping[str, Any]  # a cell of audio is {"bytes": ..., "path": ...}, not decoded
    written: set[Path] = field(default_factory=set, compare=False)  # audio of this row and those before it

    def text(self, *columns: str) -> str:
        """The cell of the first of these columns that the row has; "" where it is empty.

        Raises UserError where it has none of them.
        """
        column = next((column for column in columns if column in self.cells), None)
        if column is None:
            named, there = " or ".join(map(repr, columns)), ", ".join(map(repr, self.cells))
            raise UserError(f"{self.place}: no column {named}; it has {there}")
        return "" if self.cells[column] is None else str(self.cells[column]).strip()

    def audio_name(self, column: str = "audio") -> str:
        """The name that the audio had as a file, without folders; "" where it has none."""
        return PurePosixPath(self._audio(column).get("path") or "").name

    def audio(self, column: str = "audio") -> bytes:
        """The audio as a file's content. Raises UserError where there is none."""
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
        """The file of a data set that keeps its audio beside the rows. Nothing outside of the data set is read."""
        import fsspec

        place = path.rpartition("::")[2]  # of the archive, for a file in one
        if not place.startswith((f"{self.home}/", f"{self.home}@")) or ".." in place.split("/"):
            raise UserError(f"{self.place}: its audio {path} lies outside of the data set")
        try:
            with fsspec.open(path, "rb") as file:
                data: bytes = file.read()
        except OSError as error:
            raise UserError(f"{self.place}: its audio {path} cannot be read: {error}") from None
        return data

    def audio_suffix(self, column: str = "audio") -> str:
        """The extension of that name in small letters; .wav where it has none that audio has."""
        suffix = PurePosixPath(self.audio_name(column)).suffix.lower()
        return suffix if suffix in AUDIO_SUFFIXES else ".wav"

    def write_audio(self, folder: Path, *parts: str, column: str = "audio") -> None:
        """Write the audio to folder/part/part. Raises UserError for parts that are no plain names of files."""
        path = self.path(folder, *parts)
        self.written.add(path)
        data = self.audio(column)
        if not (path.is_file() and path.read_bytes() == data):  # else its time would change, and with it the check's
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def path(self, folder: Path, *parts: str) -> Path:
        """folder/part/part. Raises UserError for parts that are no plain names: rows come from strangers."""
        for part in parts:
            if part in ("", ".", "..") or any(mark in part for mark in "/\\:\0"):
                raise UserError(f"{self.place}: {part!r} cannot be the name of a file")
        return folder.joinpath(*parts)


def stream(name: str, tick: Callable[[int], None] = lambda _: None, work: Path | None = None) -> Iterator[HubRow]:
    """Every row of a hub data set (or of a folder laid out as one), config by config and split by split.

    Read as Arrow: `datasets` cannot hand out audio, decoded or not, without torch. work: where their audio is written;
    what other audio lies there after the last row is of an earlier revision, and removed. Raises UserError where it
    cannot be read.
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
        said = " ".join(str(error).split())[:300]
        raise UserError(f"--source {name}: no such folder, and it cannot be read from the hub: {said}") from None
    for path in sorted(work.rglob("*")) if work else ():
        if path.suffix.lower() in AUDIO_SUFFIXES and path not in written:
            path.unlink()


def write_table(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Write a CSV whose columns are those of the rows, in order of first appearance."""
    kept = list(rows)
    columns = dict.fromkeys(column for row in kept for column in row)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
