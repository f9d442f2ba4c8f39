"""Append-only files of JSON lines. Records are written at once and synced to disk every second."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from vibe_harness.errors import UserError, write_failed

SYNC_SECONDS = 1.0


class Journal:
    """An append-only file with one record per line, in order of arrival.

    Each record is written to the operating system at once, so a killed process loses nothing. Files are synced every
    second, so a power failure loses at most one second. An incomplete last line is removed when the journal is opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = path.open("ab", buffering=0)
            drop_torn_tail(path)
        except OSError as error:
            raise self._cannot_write(error) from None
        self._dirty = threading.Event()
        self._closing = threading.Event()
        self._failure: OSError | None = None
        self._syncer = threading.Thread(target=self._sync_regularly, name=f"sync {path.name}", daemon=True)
        self._syncer.start()

    def append(self, record: Mapping[str, Any]) -> int:
        """Append a record. Returns the byte offset of its line. Raises UserError if it cannot be written."""
        if self._failure is not None:
            raise self._cannot_write(self._failure)
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
        # UTF-8 cannot encode lone surrogates, which some engines emit: they are stored as "?".
        data = line.encode("utf-8", "replace")
        size = self._file.tell()
        try:
            written = self._file.write(data)
            while written < len(data):
                written += self._file.write(data[written:])
        except OSError as error:
            self._file.truncate(size)
            raise self._cannot_write(error) from None
        self._dirty.set()
        return size

    def close(self) -> None:
        """Sync and close. A second call does nothing."""
        if self._file.closed:
            return
        self._closing.set()
        self._syncer.join()
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._cannot_write(error) from None
        finally:
            self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _sync_regularly(self) -> None:
        while not self._closing.wait(SYNC_SECONDS):
            if self._dirty.is_set():
                self._dirty.clear()
                try:
                    os.fsync(self._file.fileno())
                except OSError as error:
                    self._failure = error  # the next append raises it
                    return

    def _cannot_write(self, error: OSError) -> UserError:
        return _cannot_write(self.path, error)


def drop_torn_tail(path: Path) -> None:
    """Remove an incomplete last line, which a power failure leaves."""
    try:
        with path.open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            keep = end
            while keep > 0:
                start = max(0, keep - 65536)
                file.seek(start)
                newline = file.read(keep - start).rfind(b"\n")
                keep = start
                if newline >= 0:
                    keep += newline + 1
                    break
            if keep < end:
                file.truncate(keep)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot_write(path, error) from None


def _cannot_write(path: Path, error: OSError) -> UserError:
    todo = ". Stored records are complete: free some space, then run the same command again"
    return write_failed(f"{path}: cannot be written", error, todo)


def as_object(data: bytes) -> dict[str, Any]:
    """The JSON object in a line of a journal. Raises ValueError if the line is not an object."""
    record = json.loads(data)
    if not isinstance(record, dict):
        raise ValueError("not an object")
    return record


def without_half_pairs(line: bytes) -> bytes:
    """The line with every half of a surrogate pair, which no text may hold, replaced by "?"."""
    if b"\\ud" not in line.lower():
        return line
    return json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")


Record = TypeVar("Record")
Decoder = Callable[[bytes], Record]
"""Decodes a line into a record. Raises ValueError or RecursionError for an invalid line."""


@dataclass(frozen=True, slots=True)
class Line(Generic[Record]):
    """One line of a journal. torn: whether it is an incomplete last line, as a power failure leaves it."""

    number: int  # from 1
    offset: int  # of its first byte
    record: Record | None  # None if the line is invalid
    torn: bool = False


def journal_lines(path: Path, decode: Decoder[Record]) -> Iterator[Line[Record]]:
    """Yield every line of a journal, including invalid ones; nothing if there is no such file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    offset = 0
    with file:
        for number, data in enumerate(file, 1):
            if not data.endswith(b"\n"):
                yield Line(number, offset, None, torn=True)
                return
            try:
                record = decode(data)
            except (ValueError, RecursionError):
                record = None
            yield Line(number, offset, record)
            offset += len(data)


def whole_lines(path: Path, decode: Decoder[Record]) -> Iterator[tuple[int, Record]]:
    """Yield the records of a journal with the byte offsets of their lines; nothing if there is no such file.

    Raises UserError, with the line number, for a complete but invalid line, which means that the file was edited.
    """
    for line in journal_lines(path, decode):
        if line.record is not None:
            yield line.offset, line.record
        elif not line.torn:
            raise UserError(f"{path}:{line.number}: not a record: remove that line, and its request is sent again")


def read_journal(path: Path, decode: Decoder[Record]) -> Iterator[Record]:
    """Yield the records of a journal, in order; see `whole_lines`."""
    for _, record in whole_lines(path, decode):
        yield record
