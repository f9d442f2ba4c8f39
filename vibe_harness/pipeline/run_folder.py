"""The folder of one run: what was asked, every response, every extraction, the observations and the scores."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import filelock
from pydantic import TypeAdapter, ValidationError

from vibe_harness.cards.schema import ModelCard, TaskCard
from vibe_harness.errors import UserError
from vibe_harness.pipeline.files import PART, read_json, write_json
from vibe_harness.pipeline.journal import read_journal
from vibe_harness.pipeline.words import Modality

FORMAT = 1
HEARING_CHECK = "hearing check"  # roles of their entries in engines.jsonl
BATCH_CHECK = "batch check"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """A task as it was asked."""

    card: TaskCard
    digest: str  # of the card with its templates and alias files
    prompts: Mapping[str, str]  # variant -> template text
    variants: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as it was asked: enough to score it again without its cards, its corpus or its model."""

    model: ModelCard
    tasks: Sequence[TaskRecord]
    corpus: str
    corpus_synthetic: bool
    corpus_licence: str | None
    dimensions: Sequence[str]
    speaker_strata: Mapping[str, Sequence[str]]  # dimension -> columns within which its speakers are permuted
    extractor: str
    modality: Modality
    seed: int
    bad_clips: Mapping[str, str]  # clip left out -> reason
    machine: Mapping[str, Any]


_RECORD = TypeAdapter(RunRecord)


class RunFolder:
    """Paths of a run's files, by name.

    run.json              what was asked: cards and their digests, corpus, seed, versions, machine
    clips.parquet         the clips that were asked, with their groups and the digest of their waveform
    engines.jsonl         each engine that was started, with its version
    transcriptions.jsonl  what the model wrote down of each clip, in a run of the modality "cascade"
    responses.jsonl       every response as it arrived
    extractions.jsonl     every reading of a response as it arrived
    observations.parquet  one row per response and attribute
    results.json          scores and coverage
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked = path / "run.json"
        self.clips = path / "clips.parquet"
        self.engines = path / "engines.jsonl"
        self.transcriptions = path / "transcriptions.jsonl"
        self.responses = path / "responses.jsonl"
        self.extractions = path / "extractions.jsonl"
        self.observations = path / "observations.parquet"
        self.results = path / "results.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process. Raises UserError where another process holds it."""
        lock = filelock.FileLock(self.path / ".lock", blocking=False)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except filelock.Timeout:
            raise UserError(
                f"{self.path}: another process is working in this run folder: wait for it, or name another folder "
                "with --output-path"
            ) from None
        except OSError as error:
            raise UserError(f"{self.path}: cannot be used as a run folder: {error.strerror}") from None
        try:
            for whole in (self.asked, self.clips, self.observations, self.results):
                for part in self.path.glob(f".{whole.name}.*{PART}"):  # a killed process left it
                    part.unlink(missing_ok=True)
            yield
        finally:
            lock.release()

    def claim(self, asked: Mapping[str, Any], record: RunRecord) -> None:
        """Write down what is asked, or check that this folder was made by the same question.

        asked: what makes a run another run. record: what scoring needs besides; the latest command's is kept.
        Raises UserError, naming what differs, where the folder holds another run, or files that are no run's.
        """
        if self.asked.exists():
            before = self._read()["asked"]
            differing = [key for key in asked if before.get(key) != asked[key]]
            if differing:
                raise UserError(
                    f"{self.path}: this folder holds another run: it differs in {', '.join(differing)}. Name another "
                    "folder with --output-path, or leave the option out"
                )
        else:
            strangers = sorted(entry.name for entry in self.path.iterdir() if not entry.name.startswith("."))
            if strangers:
                raise UserError(
                    f"{self.path}: not empty and not a run folder (it holds {strangers[0]}): name another with "
                    "--output-path"
                )
        write_json(
            self.asked, {"format": FORMAT, "asked": dict(asked), "record": _RECORD.dump_python(record, mode="json")}
        )

    def record(self) -> RunRecord:
        """What run.json says of the run. Raises UserError where there is none, or where another version wrote it."""
        try:
            return _RECORD.validate_python(self._read()["record"])
        except ValidationError as error:
            fault = error.errors()[0]
            raise UserError(f"{self.asked}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None

    def hearing_passed(self) -> bool:
        """Whether the model has passed the hearing check in this run."""
        return any(entry["role"] == HEARING_CHECK for entry in read_journal(self.engines))

    def _read(self) -> dict[str, Any]:
        if not self.asked.is_file():
            raise UserError(f"{self.path}: not a run folder: it has no run.json")
        data = read_json(self.asked)
        if not isinstance(data, dict) or not isinstance(data.get("asked"), dict) or "record" not in data:
            raise UserError(f"{self.asked}: not the record of a run")
        if data.get("format") != FORMAT:
            raise UserError(
                f"{self.path}: made in run format {data.get('format')}, and this version reads format {FORMAT}: "
                "use the version that made it, or run again into another folder"
            )
        return data


def machine() -> dict[str, Any]:
    """What the run was made on and with: versions of Python and of the libraries that bear on a figure."""
    libraries = ("vibe-harness", "numpy", "scipy", "soundfile", "soxr", "pandas", "pyarrow")
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "versions": {name: version(name) for name in libraries},
    }
