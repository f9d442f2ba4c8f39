"""Writing whole files: aside first, then renamed, so that a reader never sees half of one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from vibe_harness.errors import UserError

Document = TypeVar("Document")
PART = ".part"  # ends the name of a file that is not whole yet


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes `path` when the block ends well, and vanishes otherwise."""
    aside = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield aside
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):  # where nothing can be written, nothing was left
            aside.unlink(missing_ok=True)


def check_replaced(path: Path, *endings: str) -> None:
    """Raise UserError where a file is there already that does not end so: a page or figure takes no other file's place,
    such as that of a run's answers."""
    if path.is_file() and path.suffix.lower() not in endings:
        raise UserError(f"{path}: there is a file already, and its name does not end with {endings[0]}: name another")


def remove_partial_files(folder: Path, name: str = "*") -> None:
    """Remove what killed processes left half written in a folder whose lock the caller holds.

    name: the file's, or all files', where the folder holds nobody else's.
    """
    for part in folder.glob(f".{name}.*{PART}"):
        part.unlink(missing_ok=True)


def write_json(path: Path, data: Any) -> None:
    """Write data as indented JSON. NaN is refused: it is not JSON, and never a result."""
    with atomic_write(path) as aside:
        text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
        aside.write_text(text + "\n", encoding="utf-8", errors="replace")


def read_document(path: Path, kind: TypeAdapter[Document], version: int, remedy: str) -> Document:
    """Read a JSON file whose field `format` is its version.

    Raises UserError where it is missing or broken, or of another version; then it says the remedy.
    """
    data = read_json(path)
    if not isinstance(data, dict):
        raise UserError(f"{path}: holds no fields: {remedy}")
    if data.get("format") != version:
        raise UserError(f"{path}: of format {data.get('format')}, and this version reads {version}: {remedy}")
    return checked_document(path, kind, data)


def checked_document(path: Path, kind: TypeAdapter[Document], data: Any) -> Document:
    """What a JSON file holds, typed. Raises UserError with the first field that is not as it should be."""
    try:
        return kind.validate_python(data)
    except ValidationError as error:
        fault = error.errors()[0]
        place = [str(path), *([".".join(map(str, fault["loc"]))] if fault["loc"] else [])]
        raise UserError(f"{': '.join(place)}: {fault['msg']}") from None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def read_json(path: Path) -> Any:
    """Read a JSON file. Raises UserError where it is missing or broken."""
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not readable as JSON: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
