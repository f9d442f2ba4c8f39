"""A corpus as a data set of the Hugging Face hub: its rows, streamed, written down in the corpus's own layout."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from vibe_harness.corpora.importing import require_columns
from vibe_harness.errors import UserError

AUDIO_SUFFIXES = (".wav", ".mp3", ".flac", ".ogg")
_ROWS = 16  # read at a time


@dataclass(frozen=True, slots=True)
class HubRow:
    """One row."""

    place: str  # for messages: "ORG/NAME, config en_Male, row 12 of test"
    config: str
    cells: Mapping[str, Any]  # a cell of audio is {"bytes": ..., "path": ...}, not decoded

    def text(self, *columns: str) -> str:
        """The cell of the first of these columns that the row has; "" where it is empty.

        Raises UserError where it has none of them.
        """
        for column in columns:
            if column in self.cells:
                return "" if self.cells[column] is None else str(self.cells[column]).strip()
        require_columns(self.place, self.cells, columns[:1])
        raise AssertionError("unreachable")

    def audio_name(self, column: str = "audio") -> str:
        """The name that the audio had as a file, without folders; "" where it has none."""
        return PurePosixPath((self.cells.get(column) or {}).get("path") or "").name

    def audio(self, column: str = "audio") -> bytes:
        """The audio as a file's content. Raises UserError where there is none."""
        require_columns(self.place, self.cells, [column])
        cell = self.cells[column]
        data = cell.get("bytes") if isinstance(cell, Mapping) else None
        if not data and isinstance(cell, Mapping) and cell.get("path"):
            import fsspec

            try:
                with fsspec.open(cell["path"], "rb") as file:
                    data = file.read()
            except OSError as error:
                raise UserError(f"{self.place}: its audio {cell['path']} cannot be read: {error}") from None
        if not isinstance(data, bytes) or not data:
            raise UserError(f"{self.place}: the audio of '{column}' is missing")
        return data

    def audio_suffix(self, column: str = "audio") -> str:
        """The extension of that name in small letters; .wav where it has none that audio has."""
        suffix = PurePosixPath(self.audio_name(column)).suffix.lower()
        return suffix if suffix in AUDIO_SUFFIXES else ".wav"

    def write_audio(self, folder: Path, *parts: str, column: str = "audio") -> None:
        """Write the audio to folder/part/part. Raises UserError for parts that are no plain names of files."""
        path = self.path(folder, *parts)
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


def stream(name: str, tick: Callable[[int], None] = lambda _: None) -> Iterator[HubRow]:
    """Every row of a hub data set (or of a folder laid out as one), config by config and split by split.

    Read as Arrow: `datasets` cannot hand out audio, decoded or not, without torch. Raises UserError where it cannot be
    read.
    """
    from datasets import get_dataset_config_names, load_dataset
    from datasets.exceptions import DatasetsError

    try:
        for config in get_dataset_config_names(name):
            for split, rows in load_dataset(name, config, streaming=True).items():
                number = 0
                for table in rows.with_format("arrow").iter(batch_size=_ROWS):
                    for cells in table.to_pylist():
                        number += 1
                        yield HubRow(f"{name}, config {config}, row {number} of {split}", config, cells)
                        tick(1)
    except (OSError, DatasetsError, ValueError) as error:
        said = " ".join(str(error).split())[:300]
        raise UserError(f"--source {name}: no such folder, and it cannot be read from the hub: {said}") from None


def write_table(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Write a CSV whose columns are those of the rows, in order of first appearance."""
    kept = list(rows)
    columns = dict.fromkeys(column for row in kept for column in row)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
