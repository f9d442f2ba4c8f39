"""The folder of one run: its record, responses, extractions, observations and results."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import filelock
from pydantic import TypeAdapter

from vibe_harness.cards.digest import digest
from vibe_harness.cards.schema import ModelCard, TaskCard
from vibe_harness.errors import UserError, write_failed
from vibe_harness.modality import Modality
from vibe_harness.records import AnswerBy
from vibe_harness.store.atomic_files import check_is_file, checked_document, read_json, remove_partial_files, write_json

FORMAT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """A task as it was when the run started."""

    card: TaskCard
    digest: str  # of the card with its templates and alias files
    prompts: Mapping[str, str]  # variant -> template text
    variants: Sequence[str]
    sources: Mapping[str, str]  # template -> text, all of them
    aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # attribute -> spelling -> canonical value

    def alias_files(self) -> dict[str, str]:
        """Attribute -> alias file and digest of its content, "story/occupation.yaml@0123456789ab"."""
        attributes = self.card.extraction.attributes
        return {name: f"{attributes[name].aliases}@{digest(dict(own), 12)}" for name, own in self.aliases.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The record of a run. It is enough to score the run again without its cards, corpus or model."""

    model: ModelCard
    tasks: Sequence[TaskRecord]
    corpus: str
    corpus_synthetic: bool
    corpus_licence: str | None
    dimensions: Sequence[str]
    speaker_strata: Mapping[str, Sequence[str]]  # dimension -> columns within which its speakers are permuted
    strata: Sequence[str] = ()  # columns that vary from clip to clip; adjusted for if unbalanced between groups
    named_groups: Mapping[str, Sequence[str]] = field(default_factory=dict)  # column -> groups that look like no name
    extractor: str
    modality: Modality = "audio"
    answer_by: AnswerBy = "generate"
    seed: int
    bad_clips: Mapping[str, str]  # clip left out -> reason
    long_clips: Mapping[str, int] = field(
        default_factory=dict
    )  # refused, truncated, split -> how many clips longer than the model takes
    machine: Mapping[str, Any]
    corpus_folder: str | None = None  # folder of the clips, from which pages play them
    requests: str  # digest of requests.parquet
    label: str | None = None  # name of the model in its study
    config: Mapping[str, Any] = field(default_factory=dict)  # the options that differ from their default

    @property
    def model_args(self) -> Mapping[str, Any]:
        """The arguments that the run gave its model over those on the card."""
        return self.config.get("model_args") or {}

    @property
    def made_with(self) -> str:
        """The version of the harness that made the run."""
        versions = self.machine.get("versions")
        return str(versions.get("vibe-harness")) if isinstance(versions, Mapping) else "not recorded"


_RECORD = TypeAdapter(RunRecord)


class RunFolder:
    """Paths of a run's files, by name.

    run.json              the run's identity and record: cards, digests, corpus, seed, versions, machine
    clips.parquet         the clips, with their groups and waveform digests
    requests.parquet      all planned requests: id, task, prompt and clip
    engines.jsonl         the engines that were started, with their versions, and their checks
    transcriptions.jsonl  the model's transcriptions, in a run of the modality "cascade"
    responses.jsonl       the responses, in order of arrival
    extractions.jsonl     the extractions, in order of arrival
    observations.parquet  one row per response and attribute
    results.json          scores and coverage
    SHA256SUMS            checksums of these files at the time of scoring
    report.html           the page with the results
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_json = path / "run.json"
        self.clips = path / "clips.parquet"
        self.requests = path / "requests.parquet"
        self.engines = path / "engines.jsonl"
        self.transcriptions = path / "transcriptions.jsonl"
        self.responses = path / "responses.jsonl"
        self.extractions = path / "extractions.jsonl"
        self.observations = path / "observations.parquet"
        self.results = path / "results.json"
        self.sums = path / "SHA256SUMS"
        self.page = path / "report.html"

    def checksummed(self) -> tuple[Path, ...]:
        """The files that have checksums: the results and everything they depend on. Some may not exist."""
        return (
            self.run_json, self.clips, self.requests, self.engines, self.transcriptions, self.responses,
            self.extractions, self.observations, self.results,
        )  # fmt: skip

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for this process. Raises UserError if another process has locked it."""
        lock = filelock.FileLock(self.path / ".lock", blocking=False)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._check_files()
            lock.acquire()
        except filelock.Timeout:
            raise UserError(
                f"{self.path}: another process is working in this run folder: wait until it ends, or choose another "
                "folder with --output-path"
            ) from None
        except OSError as error:
            raise write_failed(f"{self.path}: cannot be used as a run folder", error) from None
        try:
            for file in (*self.checksummed(), self.sums, self.page):
                remove_partial_files(self.path, file.name)
            yield
        finally:
            lock.release()

    def is_blank(self) -> bool:
        """Whether nothing was asked yet: neither an engine's check nor a request is kept."""
        journals = (self.engines, self.transcriptions, self.responses, self.extractions)
        return not any(path.exists() and path.stat().st_size for path in journals)

    def is_locked(self) -> bool:
        """Whether another process has locked the folder."""
        lock = filelock.FileLock(self.path / ".lock", blocking=False)
        if not (self.path / ".lock").exists():
            return False
        try:
            lock.acquire()
        except filelock.Timeout:
            return True
        except OSError:  # not writable, so no process works in it
            return False
        lock.release()
        return False

    def claim(self, identity: Mapping[str, Any], record: RunRecord, *, fresh: bool = False) -> None:
        """Write run.json, or check that the folder belongs to the same run.

        identity: see `planning.prepare.run_identity`. record: what scoring needs; it replaces an earlier record. fresh:
        the run is started by `--fresh`, which is kept; see `fresh_runs`.
        Observations made with other alias files are removed, and the run makes them again. Raises UserError if the
        folder belongs to another run, with the differences, or contains other files.
        """
        if self.run_json.exists():
            before = self.identity()
            fresh = fresh or self.read().get("fresh") is True
            same_tasks = [task.digest for task in self.record().tasks] == [task.digest for task in record.tasks]
            differing = [key for key in {**identity, **before} if before.get(key) != identity.get(key)]
            if differing:
                raise UserError(
                    f"{self.path}: this folder holds another run: it differs in {', '.join(differing)}. Choose another "
                    "folder with --output-path, or leave the option out"
                )
            if not same_tasks:
                self.observations.unlink(missing_ok=True)
        else:
            others = sorted(entry.name for entry in self.path.iterdir() if not entry.name.startswith("."))
            if others:
                raise UserError(
                    f"{self.path}: not empty and not a run folder (it contains {others[0]}): choose another with "
                    "--output-path"
                )
        write_json(
            self.run_json,
            {
                "format": FORMAT,
                **({"fresh": True} if fresh else {}),
                "asked": dict(identity),
                "record": _RECORD.dump_python(record, mode="json"),
            },
        )

    def _check_files(self) -> None:
        """Raise UserError where something else than a file has the name of one: see `check_is_file`."""
        for path in (*self.checksummed(), self.sums, self.page, self.path / ".lock"):
            check_is_file(path)

    def record(self) -> RunRecord:
        """The record in run.json. Raises UserError if there is none, or if it has another format."""
        data = self.read()
        record = checked_document(self.run_json, _RECORD, data["record"])
        for name in data["asked"]["tasks"].keys() ^ {task.card.task for task in record.tasks}:
            raise UserError(f"{self.run_json}: the task '{name}' is only in 'asked' or only in 'record': it was edited")
        for task in record.tasks:
            for variant in set(task.variants) - task.prompts.keys():
                raise UserError(
                    f"{self.run_json}: the task '{task.card.task}' lacks its prompt '{variant}': it was edited"
                )
        return record

    def identity(self) -> dict[str, Any]:
        """The run's identity in run.json: see `claim`. Raises UserError as `record` does."""
        identity: dict[str, Any] = self.read()["asked"]
        return identity

    def read(self) -> dict[str, Any]:
        """The content of run.json. Raises UserError as `record` does."""
        try:
            exists = self.run_json.is_file()
        except OSError as error:
            raise UserError(f"{self.path}: cannot be a run folder: {error.strerror}") from None
        if not exists:
            inside = sorted(self.path.glob("*/run.json"))[:1]
            hint = "".join(f"; {found.parent} is one" for found in inside)
            check_is_file(self.run_json)
            raise UserError(f"{self.path}: not a run folder: it has no run.json{hint}")
        self._check_files()
        data = read_json(self.run_json)
        if not isinstance(data, dict) or not isinstance(data.get("asked"), dict) or "record" not in data:
            raise UserError(f"{self.run_json}: not the record of a run")
        if data.get("format") != FORMAT:
            raise UserError(
                f"{self.path}: has run format {data.get('format')}, but this version reads format {FORMAT}: use the "
                "version that made it, or run again into another folder"
            )
        for name in ("model", "tasks", "extractor"):
            if not isinstance(data["asked"].get(name), dict):
                raise UserError(f"{self.run_json}: not the record of a run: it lacks '{name}'")
        return data


def machine() -> dict[str, Any]:
    """The machine, and the versions of Python and of the libraries that can affect results."""
    libraries = ("vibe-harness", "numpy", "scipy", "soundfile", "soxr", "pandas", "pyarrow")
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "versions": {name: version(name) for name in libraries},
    }
