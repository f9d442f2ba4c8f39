"""The folder of one run: what was asked, every response, every extraction, the observations and the scores."""

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
from vibe_harness.errors import UserError
from vibe_harness.modality import Modality
from vibe_harness.records import AnswerBy
from vibe_harness.store.atomic_files import checked_document, read_json, remove_partial_files, write_json

FORMAT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """A task as it was asked."""

    card: TaskCard
    digest: str  # of the card with its templates and alias files
    prompts: Mapping[str, str]  # variant -> template text
    variants: Sequence[str]
    sources: Mapping[str, str]  # template -> text, all of them
    aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # attribute -> spelling -> canonical value

    def alias_files(self) -> dict[str, str]:
        """Attribute -> alias file and digest of what it says, "story/occupation.yaml@0123456789ab"."""
        attributes = self.card.extraction.attributes
        return {name: f"{attributes[name].aliases}@{digest(dict(said), 12)}" for name, said in self.aliases.items()}


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
    strata: Sequence[str] = ()  # columns that vary from clip to clip, evened out where unbalanced over groups
    extractor: str
    modality: Modality = "audio"
    answer_by: AnswerBy = "generate"
    seed: int
    bad_clips: Mapping[str, str]  # clip left out -> reason
    long_clips: Mapping[str, int] = field(
        default_factory=dict
    )  # refused, truncated, split -> how many clips longer than the model takes
    machine: Mapping[str, Any]
    corpus_folder: str | None = None  # where its clips lay, so that a page can play them
    requests: str  # digest of requests.parquet
    config: Mapping[str, Any] = field(default_factory=dict)  # the options that were given, less those at their default

    @property
    def made_with(self) -> str:
        """The version of this harness that asked."""
        versions = self.machine.get("versions")
        return str(versions.get("vibe-harness")) if isinstance(versions, Mapping) else "not recorded"


_RECORD = TypeAdapter(RunRecord)


class RunFolder:
    """Paths of a run's files, by name.

    run.json              what was asked: cards and their digests, corpus, seed, versions, machine
    clips.parquet         the clips that were asked, with their groups and the digest of their waveform
    requests.parquet      every request that was planned: its id, task, prompt and clip
    engines.jsonl         each engine that was started, with its version
    transcriptions.jsonl  what the model wrote down of each clip, in a run of the modality "cascade"
    responses.jsonl       every response as it arrived
    extractions.jsonl     every reading of a response as it arrived
    observations.parquet  one row per response and attribute
    results.json          scores and coverage
    SHA256SUMS            of all these, when the scores were made
    report.html           the page of these scores
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
        """The files that the scores hang on, and the scores, whether they are there or not."""
        return (
            self.run_json, self.clips, self.requests, self.engines, self.transcriptions, self.responses,
            self.extractions, self.observations, self.results,
        )  # fmt: skip

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
            for whole in (*self.checksummed(), self.sums, self.page):
                remove_partial_files(self.path, whole.name)
            yield
        finally:
            lock.release()

    def is_locked(self) -> bool:
        """Whether another process works in the folder."""
        lock = filelock.FileLock(self.path / ".lock", blocking=False)
        if not (self.path / ".lock").exists():
            return False
        try:
            lock.acquire()
        except filelock.Timeout:
            return True
        except OSError:  # it takes no writes: nobody works in it
            return False
        lock.release()
        return False

    def claim(self, asked: Mapping[str, Any], record: RunRecord) -> None:
        """Write down what is asked, or check that this folder was made by the same question.

        asked: what makes a run another run. record: what scoring needs besides; the latest command's is kept.
        Observations that were made under other alias files go: the run makes them anew from its responses.
        Raises UserError, naming what differs, where the folder holds another run, or files that are no run's.
        """
        if self.run_json.exists():
            before = self.read()["asked"]
            read_alike = [task.digest for task in self.record().tasks] == [task.digest for task in record.tasks]
            differing = [key for key in {**asked, **before} if before.get(key) != asked.get(key)]
            if differing:
                raise UserError(
                    f"{self.path}: this folder holds another run: it differs in {', '.join(differing)}. Name another "
                    "folder with --output-path, or leave the option out"
                )
            if not read_alike:
                self.observations.unlink(missing_ok=True)
        else:
            strangers = sorted(entry.name for entry in self.path.iterdir() if not entry.name.startswith("."))
            if strangers:
                raise UserError(
                    f"{self.path}: not empty and not a run folder (it holds {strangers[0]}): name another with "
                    "--output-path"
                )
        write_json(
            self.run_json, {"format": FORMAT, "asked": dict(asked), "record": _RECORD.dump_python(record, mode="json")}
        )

    def record(self) -> RunRecord:
        """What run.json says of the run. Raises UserError where there is none, or where another version wrote it."""
        data = self.read()
        record = checked_document(self.run_json, _RECORD, data["record"])
        for name in data["asked"]["tasks"].keys() ^ {task.card.task for task in record.tasks}:
            raise UserError(f"{self.run_json}: the task '{name}' is asked or recorded alone: edited")
        for task in record.tasks:
            for variant in set(task.variants) - task.prompts.keys():
                raise UserError(
                    f"{self.run_json}: the task '{task.card.task}' lacks its prompt '{variant}': it was edited"
                )
        return record

    def identity(self) -> dict[str, Any]:
        """What makes this run another run: see `claim`. Raises UserError as `record` does."""
        asked: dict[str, Any] = self.read()["asked"]
        return asked

    def read(self) -> dict[str, Any]:
        """What run.json holds, as written. Raises UserError as `record` does."""
        try:
            found = self.run_json.is_file()
        except OSError as error:
            raise UserError(f"{self.path}: cannot be a run folder: {error.strerror}") from None
        if not found:
            inside = sorted(self.path.glob("*/run.json"))[:1]
            hint = "".join(f"; {found.parent} is one" for found in inside)
            raise UserError(f"{self.path}: not a run folder: it has no run.json{hint}")
        data = read_json(self.run_json)
        if not isinstance(data, dict) or not isinstance(data.get("asked"), dict) or "record" not in data:
            raise UserError(f"{self.run_json}: not the record of a run")
        if data.get("format") != FORMAT:
            raise UserError(
                f"{self.path}: made in run format {data.get('format')}, and this version reads format {FORMAT}: use "
                "the version that made it, or run again into another folder"
            )
        for name in ("model", "tasks", "extractor"):
            if not isinstance(data["asked"].get(name), dict):
                raise UserError(f"{self.run_json}: not the record of a run: it does not say which {name} was asked")
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
