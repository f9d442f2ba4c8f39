"""Write files atomically: to a temporary file, which is then renamed. Readers never see half a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from vibe_harness.errors import UserError, write_failed

Document = TypeVar("Document")
PART = ".part"  # suffix of temporary files


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to. It replaces `path` if the block succeeds, and is removed if it fails."""
    aside = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield aside
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        raise write_failed(f"{path}: cannot be written", error) from None
    finally:
        with suppress(OSError):  # if the folder is not writable, there is no temporary file
            aside.unlink(missing_ok=True)


def check_replaced(path: Path, *endings: str) -> None:
    """Raise UserError if `path` is an existing file with another suffix than `endings`.

    So a page or figure never overwrites another kind of file, such as the responses of a run.
    """
    if path.is_file() and path.suffix.lower() not in endings:
        raise UserError(f"{path}: exists, and its name does not end with {endings[0]}: choose another name")


def remove_partial_files(folder: Path, name: str = "*") -> None:
    """Remove temporary files that killed processes left in a folder. The caller must hold the folder's lock.

    name: the file whose temporary files are removed (default: all files).
    """
    for part in folder.glob(f".{name}.*{PART}"):
        part.unlink(missing_ok=True)


def write_json(path: Path, data: Any) -> None:
    """Write data as indented JSON, atomically. Raises ValueError for NaN and infinity, which are not JSON."""
    with atomic_write(path) as aside:
        text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
        aside.write_text(text + "\n", encoding="utf-8", errors="replace")


def read_document(path: Path, kind: TypeAdapter[Document], version: int, remedy: str) -> Document:
    """Read a JSON file whose field `format` is its version.

    Raises UserError, with the remedy, if the file has another version, and if it is missing or broken.
    """
    data = read_json(path)
    if not isinstance(data, dict):
        raise UserError(f"{path}: not a JSON object: {remedy}")
    if data.get("format") != version:
        raise UserError(f"{path}: has format {data.get('format')}, but this version reads {version}: {remedy}")
    return checked_document(path, kind, data)


def checked_document(path: Path, kind: TypeAdapter[Document], data: Any) -> Document:
    """Validate the content of a JSON file. Raises UserError with the first invalid field."""
    try:
        return kind.validate_python(data)
    except ValidationError as error:
        fault = error.errors()[0]
        place = [str(path), *([".".join(map(str, fault["loc"]))] if fault["loc"] else [])]
        raise UserError(f"{': '.join(place)}: {fault['msg']}") from None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number in JSON")


def check_is_file(path: Path) -> None:
    """Raise UserError for what has a file's name and is none: a pipe is waited for, and a device has no end."""
    try:
        other = path.exists() and not path.is_file()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if other:
        raise UserError(f"{path}: a pipe, a device or a folder, not a file: remove it")


def read_json(path: Path) -> Any:
    """Read a JSON file. Raises UserError where it is missing or broken."""
    check_is_file(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not readable as JSON: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
