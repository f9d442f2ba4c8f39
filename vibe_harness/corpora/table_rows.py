"""Reading rows of text cells from CSV, JSONL and Parquet files, one at a time, with line numbers."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vibe_harness.cards.text_file import encoding_fault
from vibe_harness.errors import UserError

ColumnCheck = Callable[[str, list[str]], None]  # place and column names; raises UserError if columns are missing


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row. line: in the file; for Parquet the row number, from 1. cells: trimmed; missing ones are left out."""

    line: int
    cells: Mapping[str, str]


def read_rows(path: Path, check_columns: ColumnCheck) -> Iterator[TableRow]:
    """Read the rows of a table. The extension gives the format: .csv, .jsonl (or .ndjson), .parquet.

    Text is UTF-8, with or without a byte order mark. Raises UserError with file and line if the file is malformed.
    """
    readers = {".csv": _csv_rows, ".jsonl": _jsonl_rows, ".ndjson": _jsonl_rows, ".parquet": _parquet_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UserError(f"{path}: a table is a .csv, .jsonl or .parquet file, not '{path.suffix or path.name}'")
    if not path.is_file():
        raise UserError(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}")
    try:
        yield from reader(path, check_columns)
    except UnicodeDecodeError:
        raise UserError(encoding_fault(path, path.read_bytes())) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


def parquet_metadata(path: Path) -> dict[str, str]:
    """The key-value metadata of a Parquet file, with "?" for bytes that are not UTF-8. Raises UserError."""
    metadata = _parquet(path).schema_arrow.metadata or {}
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in metadata.items()}


def _csv_rows(path: Path, check_columns: ColumnCheck) -> Iterator[TableRow]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = [cell.strip() for cell in next(reader, [])]
            if not header:
                raise UserError(f"{path}: empty: the first line names the columns")
            _check_names(f"{path}:1", header)
            check_columns(f"{path}:1", header)
            line = reader.line_num + 1
            for cells in reader:
                if len(cells) == len(header):
                    yield TableRow(line, dict(zip(header, map(str.strip, cells), strict=True)))
                elif cells:
                    raise UserError(
                        f"{path}:{line}: {len(cells)} cells where the header has {len(header)} columns: a comma too "
                        "many or too few; put text that holds commas in double quotes"
                    )
                line = reader.line_num + 1
        except csv.Error as error:
            raise UserError(f"{path}:{reader.line_num}: not a CSV line: {error}") from None


def _jsonl_rows(path: Path, check_columns: ColumnCheck) -> Iterator[TableRow]:
    decoder = json.JSONDecoder(object_pairs_hook=list)  # pairs, so that repeated names are seen
    seen: list[str] = []
    with path.open(encoding="utf-8-sig") as file:
        for line, text in enumerate(file, start=1):
            if not text.strip():
                continue
            place = f"{path}:{line}"
            try:
                pairs = decoder.decode(text)
            except (json.JSONDecodeError, RecursionError) as error:
                raise UserError(f"{place}: not a line of JSON: {getattr(error, 'msg', 'nested too deep')}") from None
            if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
                raise UserError(f'{place}: each line is one object, as in {{"file": "a.wav", "speaker": "s1"}}')
            names = [name.strip() for name, _ in pairs]
            if names != seen:
                _check_names(place, names)
                check_columns(place, names)
                seen = names
            yield TableRow(
                line, {name: _cell(place, name, value) for name, (_, value) in zip(names, pairs, strict=True)}
            )


def _check_names(place: str, names: list[str]) -> None:
    """Raise UserError if a named column is repeated, since one of the two would be lost."""
    for name, times in Counter(names).items():
        if name and times > 1:
            raise UserError(f"{place}: the column '{name}' is repeated: rename or remove one")


def _cell(place: str, column: str, value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if value is None or value != value:  # data frames write NaN for a missing value
        return ""
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise UserError(f"{place}: '{column}' holds a list or an object: write text")


def _parquet_rows(path: Path, check_columns: ColumnCheck) -> Iterator[TableRow]:
    import pyarrow as pa
    import pyarrow.compute as pc

    file = _parquet(path)
    names = [name.strip() for name in file.schema_arrow.names]
    _check_names(str(path), names)
    check_columns(str(path), names)
    line = 0
    for batch in _batches(path, file):
        columns = []
        for name, column in zip(names, batch.columns, strict=True):
            try:
                if pa.types.is_floating(column.type):  # data frames write NaN for a missing value
                    column = pc.if_else(pc.is_nan(column), None, column)
                columns.append([(cell or "").strip() for cell in pc.cast(column, pa.string()).to_pylist()])
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise UserError(f"{path}: the column '{name}' ({column.type}) is not text or numbers") from None
        for cells in zip(*columns, strict=True):
            line += 1
            yield TableRow(line, dict(zip(names, cells, strict=True)))


def _batches(path: Path, file: Any) -> Iterator[Any]:
    """Record batches. Raises UserError if the data are damaged, which is only found when they are read."""
    import pyarrow as pa

    batches = file.iter_batches(batch_size=8192)
    while True:
        try:
            yield next(batches)
        except StopIteration:
            return
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: damaged: {' '.join(str(error).split())[:200]}") from None


def _parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path, memory_map=True)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a Parquet file: {error}") from None


def require_columns(place: Path | str, have: Iterable[str], need: Iterable[str]) -> None:
    """Raise UserError, naming them, if columns are missing."""
    have = list(have)
    lacking = [column for column in need if column not in have]
    if lacking:
        raise UserError(f"{place}: no column {', '.join(map(repr, lacking))}; it has {', '.join(map(repr, have))}")
