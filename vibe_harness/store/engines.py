"""engines.jsonl: the engines that a run started, and the results of their checks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    command: str | None = None  # by which the run started the server


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


HearingEvidence = Literal["transcripts", "question", "other clips", "silence"]
"""What showed that a model hears: its transcriptions match the corpus's texts; its answers to the question on its card
match the words that are spoken; its answers to clips differ from each other; they differ from its answer to silence."""


@dataclass(frozen=True, slots=True)
class HearingEntry:
    """A hearing check that was passed. by: None for one of version 0.1, which compared less. checked: digest of engine,
    model and question. The rest as in `results.HearingResult`."""

    answers: Mapping[str, str] = field(default_factory=dict)
    by: HearingEvidence | None = None
    clips: int = 0
    right: int = 0
    error_rate: float | None = None
    checked: str = ""


_BATCH_CHECK = TypeAdapter(BatchCheckEntry)
_HEARING = TypeAdapter(HearingEntry)


def decode_engine(line: bytes) -> EngineEntry:
    """The entry in a line. Raises ValueError for an invalid line, such as an edited one."""
    fields = as_object(line)
    role = fields.pop("role", None)
    if not isinstance(role, str):
        raise ValueError("no role")
    if role == BATCH_CHECK:
        _BATCH_CHECK.validate_python(fields)
    elif role == HEARING_CHECK:
        _HEARING.validate_python(fields)
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
    server, time, checkpoint, command = (
        fields.get(name) for name in ("server", "time", "checkpoint", "server_command")
    )
    return EngineStart(
        tuple(server.split(", ")) if isinstance(server, str) else (),
        float(time) if isinstance(time, int | float) else None,
        checkpoint if isinstance(checkpoint, str) else None,
        command if isinstance(command, str) else None,
    )


def passed_hearing_check(path: Path) -> HearingEntry | None:
    """The last hearing check that the run passed; None if it has not passed one."""
    checks = [entry.fields for entry in read_engines(path) if entry.role == HEARING_CHECK]
    return _HEARING.validate_python(dict(checks[-1])) if checks else None


def hearing_answers(path: Path) -> dict[str, str] | None:
    """Clip -> the model's answer in the last hearing check that it passed; None if it has not passed one."""
    check = passed_hearing_check(path)
    return None if check is None else dict(check.answers)


def batch_checks(path: Path) -> list[BatchCheckEntry]:
    """The results of all batch-invariance checks, in order."""
    return [_BATCH_CHECK.validate_python(dict(e.fields)) for e in read_engines(path) if e.role == BATCH_CHECK]
