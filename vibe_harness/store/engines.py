"""engines.jsonl: the engines that a run started, and the results of their checks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from vibe_harness.store.journal import Journal, as_object, read_journal

HEARING_CHECK = "hearing check"  # roles of the entries of checks
BATCH_CHECK = "batch check"


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """One line of engines.jsonl. role: "model", "extractor" or the name of a check. fields: its other fields."""

    role: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EngineStart:
    """An engine that a run started. addresses: of its servers; none where the engine ran on the machine itself."""

    addresses: tuple[str, ...]
    time: float | None  # seconds since 1970
    checkpoint: str | None  # what a server said that it has loaded, where it says so


@dataclass(frozen=True, slots=True)
class BatchDifference:
    """A request whose answer differs if it is sent alone."""

    request: str
    among_others: str
    alone: str


@dataclass(frozen=True, slots=True)
class BatchCheckEntry:
    """Result of a batch-invariance check. requests: number of requests to repeat; asked: number that were repeated."""

    requests: int
    asked: int
    different: Sequence[BatchDifference]


_BATCH_CHECK = TypeAdapter(BatchCheckEntry)
_ANSWERS = TypeAdapter(dict[str, str])


def decode_engine(line: bytes) -> EngineEntry:
    """The entry in a line. Raises ValueError for an invalid line, such as an edited one."""
    fields = as_object(line)
    role = fields.pop("role", None)
    if not isinstance(role, str):
        raise ValueError("no role")
    if role == BATCH_CHECK:
        _BATCH_CHECK.validate_python(fields)
    elif role == HEARING_CHECK:
        _ANSWERS.validate_python(fields.get("answers", {}))
    return EngineEntry(role, fields)


def append_engine(path: Path, role: str, fields: Mapping[str, Any]) -> None:
    """Record an engine that was started, or the result of a check."""
    with Journal(path) as journal:
        journal.append({"role": role, **fields, "time": time.time()})


def read_engines(path: Path) -> Iterator[EngineEntry]:
    """Every entry, in order. Raises UserError as `read_journal` does."""
    return read_journal(path, decode_engine)


def engine_starts(path: Path, role: Literal["model", "extractor"]) -> list[EngineStart]:
    """Every start of an engine in that role, in order. Raises UserError as `read_journal` does."""
    return [_start(entry.fields) for entry in read_engines(path) if entry.role == role]


def _start(fields: Mapping[str, Any]) -> EngineStart:
    server, time, checkpoint = (fields.get(name) for name in ("server", "time", "checkpoint"))
    return EngineStart(
        tuple(server.split(", ")) if isinstance(server, str) else (),
        float(time) if isinstance(time, int | float) else None,
        checkpoint if isinstance(checkpoint, str) else None,
    )


def hearing_answers(path: Path) -> dict[str, str] | None:
    """Clip -> the model's answer in the last hearing check that it passed; None if it has not passed one."""
    checks = [entry.fields.get("answers", {}) for entry in read_engines(path) if entry.role == HEARING_CHECK]
    return _ANSWERS.validate_python(checks[-1]) if checks else None


def batch_checks(path: Path) -> list[BatchCheckEntry]:
    """The results of all batch-invariance checks, in order."""
    return [_BATCH_CHECK.validate_python(dict(e.fields)) for e in read_engines(path) if e.role == BATCH_CHECK]
