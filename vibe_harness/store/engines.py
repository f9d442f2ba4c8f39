"""engines.jsonl: each engine that a run started, and what the checks of it found."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vibe_harness.store.journal import Journal, as_object, read_journal

HEARING_CHECK = "hearing check"  # roles of the entries that checks write
BATCH_CHECK = "batch check"


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """One line of engines.jsonl. role: "model", "extractor" or the name of a check. said: all else that it holds."""

    role: str
    said: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BatchDifference:
    """An answer that differs when it is asked alone."""

    request: str
    among_others: str
    alone: str


@dataclass(frozen=True, slots=True)
class BatchCheckEntry:
    """What a check of batch invariance found. requests: as many as were to be asked again; asked: as many as were."""

    requests: int
    asked: int
    different: Sequence[BatchDifference]


_BATCH_CHECK = TypeAdapter(BatchCheckEntry)
_ANSWERS = TypeAdapter(dict[str, str])


def decode_engine(line: bytes) -> EngineEntry:
    """The entry that a line holds. Raises ValueError where it holds none: people edit these files."""
    said = as_object(line)
    role = said.pop("role", None)
    if not isinstance(role, str):
        raise ValueError("no role")
    if role == BATCH_CHECK:
        _BATCH_CHECK.validate_python(said)
    elif role == HEARING_CHECK:
        _ANSWERS.validate_python(said.get("answers", {}))
    return EngineEntry(role, said)


def append_engine(path: Path, role: str, said: Mapping[str, Any]) -> None:
    """Write down an engine that was started, or what a check of it found."""
    with Journal(path) as journal:
        journal.append({"role": role, **said, "time": time.time()})


def read_engines(path: Path) -> Iterator[EngineEntry]:
    """Every entry, in order. Raises UserError as `read_journal` does."""
    return read_journal(path, decode_engine)


def hearing_answers(path: Path) -> dict[str, str] | None:
    """Clip -> what the model wrote of it in the hearing check that it passed last; None where it passed none."""
    found = [entry.said.get("answers", {}) for entry in read_engines(path) if entry.role == HEARING_CHECK]
    return _ANSWERS.validate_python(found[-1]) if found else None


def batch_checks(path: Path) -> list[BatchCheckEntry]:
    """What the checks of batch invariance found, in order."""
    return [_BATCH_CHECK.validate_python(dict(e.said)) for e in read_engines(path) if e.role == BATCH_CHECK]
