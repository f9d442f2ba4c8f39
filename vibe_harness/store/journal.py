"""Append-only JSON Lines on disk: each record flushed as it arrives, synced at least once a second."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from vibe_harness.errors import UserError
from vibe_harness.records import Outcome, Reading

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

    def append(self, record: Mapping[str, Any]) -> None:
        """Store one record. Raises UserError where the disk takes no more."""
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


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """The complete records of a journal, in order; none where there is no such file.

    Raises UserError, naming the line, for a line that is complete and yet no record of that journal: somebody edited
    the file.
    """
    for _, record in read_journal_offsets(path):
        yield record


def read_journal_offsets(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """As `read_journal`, each record with the byte offset of its line."""
    for line in journal_lines(path):
        if line.record is not None:
            yield line.offset, line.record
        elif not line.torn:
            raise UserError(f"{path}:{line.number}: not a record: remove that line to have its request asked again")


class Line(NamedTuple):
    """One line of a journal. torn: the last one, of which a power loss left a part, so that it never was complete."""

    number: int  # from 1
    offset: int  # bytes ahead of it
    record: dict[str, Any] | None  # None where it holds no record of that journal
    torn: bool = False


def journal_lines(path: Path) -> Iterator[Line]:
    """Every line of a journal, also those that hold no record; none where there is no such file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    fits = _FITS.get(path.name, _is_object)
    offset = 0
    with file:
        for number, data in enumerate(file, 1):
            if not data.endswith(b"\n"):
                yield Line(number, offset, None, torn=True)
                return
            try:
                record = json.loads(data)
            except (ValueError, RecursionError):
                record = None
            yield Line(number, offset, record if fits(record) else None)
            offset += len(data)


def _is_object(record: Any) -> bool:
    return isinstance(record, dict)


def _is_engine(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("role"), str)


def _is_response(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and all(isinstance(record.get(name), str) for name in ("request", "task", "variant", "clip", "text"))
        and record.get("outcome") in _OUTCOMES
        and all(isinstance(record.get(name, 0), str | None) for name in ("error", "served_model"))
        and _is_likelihoods(record.get("likelihoods", {}))
    )


def _is_likelihoods(said: Any) -> bool:
    return isinstance(said, dict) and all(isinstance(one, float) and one < 1e-3 for one in said.values())


def _is_extraction(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    readings, raw = record.get("readings"), record.get("raw")
    return (
        all(isinstance(record.get(name), str) for name in ("key", "request", "text"))
        and isinstance(record.get("refused"), bool)
        and isinstance(record.get("error", 0), str | None)
        and isinstance(readings, dict)
        and all(isinstance(reading, str) and reading in _READINGS for reading in readings.values())
        and isinstance(raw, dict)
        and all(isinstance(items, list) and all(isinstance(i, str) for i in items) for items in raw.values())
    )


_OUTCOMES = [str(outcome) for outcome in Outcome]
_READINGS = [str(reading) for reading in Reading]
# The journals of a run folder are known by their names; what is read from them is checked, for people edit them.
_FITS: Mapping[str, Callable[[Any], bool]] = {
    "engines.jsonl": _is_engine,
    "responses.jsonl": _is_response,
    "transcriptions.jsonl": _is_response,
    "extractions.jsonl": _is_extraction,
}
