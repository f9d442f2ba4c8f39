"""Append-only JSON Lines on disk: each record flushed as it arrives, synced at least once a second."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from vibe_harness.errors import UserError

SYNC_SECONDS = 1.0


class Journal:
    """Records of one kind, in the order they arrived.

    Every record is one line, handed to the system at once (a killed process loses nothing) and synced to the disk
    within a second (a power loss costs that second). What a power loss tore off the last line is cut away when the
    journal is opened again: such a record was never complete.
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
        """Store one record; returns the byte offset of its line. Raises UserError where the disk takes no more."""
        if self._failure is not None:
            raise self._cannot_write(self._failure)
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
        # A lone surrogate, which some engines emit, has no place in UTF-8: it is stored as "?".
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
        """Sync and close. Closing twice does nothing."""
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
                    self._failure = error  # raised by the next append: a thread has nobody to tell
                    return

    def _cannot_write(self, error: OSError) -> UserError:
        return _cannot_write(self.path, error)


def drop_torn_tail(path: Path) -> None:
    """Cut off what a power loss left of a last record: it never was complete."""
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
    return UserError(
        f"{path}: cannot be written: {error.strerror}. What is stored is whole: make room, then run the same command "
        "again"
    )


def as_object(data: bytes) -> dict[str, Any]:
    """The JSON object in a line of a journal. Raises ValueError where it holds none."""
    record = json.loads(data)
    if not isinstance(record, dict):
        raise ValueError("not an object")
    return record


Record = TypeVar("Record")
Decoder = Callable[[bytes], Record]
"""From a line to a record. Raises ValueError or RecursionError for a line that holds no such record."""


@dataclass(frozen=True, slots=True)
class Line(Generic[Record]):
    """One line of a journal. torn: the last one, of which a power loss left a part, so that it never was complete."""

    number: int  # from 1
    offset: int  # bytes ahead of it
    record: Record | None  # None where it holds no record of that journal
    torn: bool = False


def journal_lines(path: Path, decode: Decoder[Record]) -> Iterator[Line[Record]]:
    """Every line of a journal, also those that hold no record; none where there is no such file."""
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
    """The complete records of a journal with the byte offsets of their lines; none where there is no such file.

    Raises UserError, naming the line, for a line that is complete and yet no record of that journal: somebody edited
    the file.
    """
    for line in journal_lines(path, decode):
        if line.record is not None:
            yield line.offset, line.record
        elif not line.torn:
            raise UserError(f"{path}:{line.number}: not a record: remove that line to have its request asked again")


def read_journal(path: Path, decode: Decoder[Record]) -> Iterator[Record]:
    """The complete records of a journal, in order; see `whole_lines`."""
    for _, record in whole_lines(path, decode):
        yield record
