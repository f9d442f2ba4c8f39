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
from vibe_harness.store.atomic_files import check_is_file, checked_document, clear_aside, read_json, write_json

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
    corpus_folder: str | None = None  # where its clips lay, so that a page can play them
    requests: str  # digest of requests.parquet
    label: str | None = None  # what a study calls the model
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
        self.asked = path / "run.json"
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

    def summed(self) -> tuple[Path, ...]:
        """The files that the scores hang on, and the scores, whether they are there or not."""
        return (
            self.asked, self.clips, self.requests, self.engines, self.transcriptions, self.responses, self.extractions,
            self.observations, self.results,
        )  # fmt: skip

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process. Raises UserError where another process holds it."""
        lock = filelock.FileLock(self.path / ".lock", blocking=False)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._check_files()
            lock.acquire()
        except filelock.Timeout:
            raise UserError(
                f"{self.path}: another process is working in this run folder: wait for it, or name another folder "
                "with --output-path"
            ) from None
        except OSError as error:
            raise UserError(f"{self.path}: cannot be used as a run folder: {error.strerror}") from None
        try:
            for whole in (*self.summed(), self.sums, self.page):
                clear_aside(self.path, whole.name)
            yield
        finally:
            lock.release()

    def is_blank(self) -> bool:
        """Whether nothing was asked yet: neither an engine's check nor a request is kept."""
        journals = (self.engines, self.transcriptions, self.responses, self.extractions)
        return not any(path.exists() and path.stat().st_size for path in journals)

    def held(self) -> bool:
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
        if self.asked.exists():
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
            self.asked, {"format": FORMAT, "asked": dict(asked), "record": _RECORD.dump_python(record, mode="json")}
        )

    def _check_files(self) -> None:
        """Raise UserError where something else than a file has the name of one: see `check_is_file`."""
        for path in (*self.summed(), self.sums, self.page, self.path / ".lock"):
            check_is_file(path)

    def record(self) -> RunRecord:
        """What run.json says of the run. Raises UserError where there is none, or where another version wrote it."""
        data = self.read()
        record = checked_document(self.asked, _RECORD, data["record"])
        for name in data["asked"]["tasks"].keys() ^ {task.card.task for task in record.tasks}:
            raise UserError(f"{self.asked}: the task '{name}' is asked or recorded alone: edited")
        for task in record.tasks:
            for variant in set(task.variants) - task.prompts.keys():
                raise UserError(
                    f"{self.asked}: the task '{task.card.task}' lacks its prompt '{variant}': it was edited"
                )
        return record

    def question(self) -> dict[str, Any]:
        """What makes this run another run: see `claim`. Raises UserError as `record` does."""
        asked: dict[str, Any] = self.read()["asked"]
        return asked

    def read(self) -> dict[str, Any]:
        """What run.json holds, as written. Raises UserError as `record` does."""
        try:
            found = self.asked.is_file()
        except OSError as error:
            raise UserError(f"{self.path}: cannot be a run folder: {error.strerror}") from None
        if not found:
            inside = sorted(self.path.glob("*/run.json"))[:1]
            hint = "".join(f"; {found.parent} is one" for found in inside)
            check_is_file(self.asked)
            raise UserError(f"{self.path}: not a run folder: it has no run.json{hint}")
        self._check_files()
        data = read_json(self.asked)
        if not isinstance(data, dict) or not isinstance(data.get("asked"), dict) or "record" not in data:
            raise UserError(f"{self.asked}: not the record of a run")
        if data.get("format") != FORMAT:
            raise UserError(
                f"{self.path}: made in run format {data.get('format')}, and this version reads format {FORMAT}: use "
                "the version that made it, or run again into another folder"
            )
        for name in ("model", "tasks", "extractor"):
            if not isinstance(data["asked"].get(name), dict):
                raise UserError(f"{self.asked}: not the record of a run: it does not say which {name} was asked")
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
