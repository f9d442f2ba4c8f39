"""The folder of a study: running the cells that are missing, and merging those of other machines."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import filelock

from vibe_harness.analysis.tests_used import test_names
from vibe_harness.backends.executors import opener_of
from vibe_harness.backends.protocol import Backend
from vibe_harness.backends.remote.started_server import check_ports
from vibe_harness.cards.loading import CardIndex
from vibe_harness.errors import HarnessError, UserError, write_failed
from vibe_harness.extraction.protocol import Extractor
from vibe_harness.pipeline.run import ActiveRun, EngineCache, open_run, run_extraction, run_generation, run_scoring
from vibe_harness.planning.config import options
from vibe_harness.planning.prepare import prepare
from vibe_harness.progress import Progress
from vibe_harness.store.atomic_files import PART, read_json, remove_partial_files, write_json
from vibe_harness.store.journal import journal_lines
from vibe_harness.store.responses import decode_response
from vibe_harness.store.results import read_results
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.studies.study import CellState, Study, StudyCell, engine_cards, progress_of

FORMAT = 1


class StudyFolder:
    """The run folders of a study, MODEL/CORPUS/TASK, and a record of failures.

    study.json     the settings that all cells share
    failures.json  cell -> why its last start failed
    """

    def __init__(self, path: Path, study: Study) -> None:
        """Raises UserError if the folder holds a run, or a study with other settings."""
        self.path = path
        self._study = study
        self._failures = path / "failures.json"
        self._check(path)

    def begin(self) -> None:
        """Write the settings that all cells share."""
        with self._writing("study.json") as path:
            write_json(path, {"format": FORMAT, "settings": self._study.settings()})

    def failures(self) -> dict[str, str]:
        if not self._failures.exists():
            return {}
        found = read_json(self._failures)
        return {str(cell): str(why) for cell, why in found.items()} if isinstance(found, dict) else {}

    def note(self, cell: StudyCell, why: str | None) -> None:
        """Record that a cell failed, or that it no longer does."""
        if self.failures().get(cell.name) != why:
            with self._writing(self._failures.name) as path:
                failures = self.failures()  # which another process may have added to meanwhile
                write_json(path, {**failures, cell.name: why} if why else _without(failures, cell.name))

    @contextmanager
    def _writing(self, name: str) -> Iterator[Path]:
        """A file of the folder, which processes that run other cells of the study write too."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(self.path / ".lock")
            lock.acquire()
        except OSError as error:
            raise write_failed(f"{self.path}: cannot be the folder of a study", error) from None
        try:
            remove_partial_files(self.path, name)
            yield self.path / name
        finally:
            lock.release()

    def merge(self, other: Path) -> tuple[int, int]:
        """Copy the cells of another folder of the study; returns the numbers of copied and of present cells.

        If both folders have a cell, the one with more progress is kept. Raises UserError for another study, for a cell
        whose runs differ in their settings, and for one that is being run.
        """
        if not _holds_study(other):
            raise UserError(f"{other}: not a folder of a study: it has no study.json")
        self._check(other)
        copied = kept = 0
        for asked in sorted(other.glob("*/*/*/run.json")):
            source, target = RunFolder(asked.parent), RunFolder(self.path / asked.parent.relative_to(other))
            self._check_test(source)
            if target.run_json.exists():
                if target.read()["asked"] != source.read()["asked"]:
                    raise UserError(
                        f"{target.path} and {source.path}: the same cell with different settings: it was not merged"
                    )
                if _answered(target) >= _answered(source):
                    kept += 1
                    continue
            _copy(source, target)
            copied += 1
        return copied, kept

    def _check_test(self, source: RunFolder) -> None:
        """Raise UserError if a run of the other folder was scored by another test than the runs in this folder."""
        own = {name for path in self.path.glob("*/*/*/results.json") for name in test_names(read_results(path))}
        other = set(test_names(read_results(source.results))) if source.results.is_file() else set()
        if own and other and own != other:
            raise UserError(
                f"{source.path}: scored by the test '{min(other)}', and the runs in {self.path} by '{min(own)}': score "
                "the earlier ones again with `vibe-harness score`, then merge"
            )

    def _check(self, path: Path) -> None:
        if not _holds_study(path):
            if RunFolder(path).run_json.exists():
                raise UserError(f"{path}: the folder of a run: name another for the study with --output-path")
            return
        data = read_json(path / "study.json")
        settings = data.get("settings") if isinstance(data, dict) and data.get("format") == FORMAT else None
        if not isinstance(settings, dict):
            raise UserError(f"{path / 'study.json'}: not the record of a study that this version reads")
        own = self._study.settings()
        defaults = {option.name: option.default for option in options()}  # options of later versions
        differing = sorted(
            name
            for name in own.keys() | settings.keys()
            if own.get(name) != settings.get(name, _plain_default(defaults.get(name)))
        )
        if differing:
            raise UserError(
                f"{path}: a folder of another study: it differs in {', '.join(differing)}. Name another folder with "
                "--output-path, or another study"
            )


def _plain_default(value: Any) -> Any:
    """The default of an option, as in JSON."""
    return list(value) if isinstance(value, tuple) else value


def _holds_study(path: Path) -> bool:
    try:
        return (path / "study.json").is_file()
    except OSError as error:  # for example, the path is too long
        raise UserError(f"{path}: cannot be the folder of a study: {error.strerror}") from None


def _without(failures: Mapping[str, str], name: str) -> dict[str, str]:
    return {cell: why for cell, why in failures.items() if cell != name}


def _answered(folder: RunFolder) -> int:
    return sum(1 for _ in journal_lines(folder.responses, decode_response))


def _copy(source: RunFolder, target: RunFolder) -> None:
    """Copy a run folder under a temporary name and rename it, so that a killed merge leaves no partial folder."""
    if source.is_locked() or target.is_locked():
        raise UserError(f"{source.path}: being run (here or there): merge when it has ended")
    aside = target.path.with_name(f".{target.path.name}{PART}")
    old = target.path.with_name(f".{target.path.name}.old{PART}")
    try:
        for left in (aside, old):
            shutil.rmtree(left, ignore_errors=True)
        shutil.copytree(source.path, aside)
        if target.path.exists():
            target.path.rename(old)
        aside.rename(target.path)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise write_failed(f"{target.path}: cannot be merged into", error) from None


def run_cells(
    cells: Sequence[StudyCell],
    kept: StudyFolder,
    progress: Progress,
    *,
    executor: str = "local",
    executor_args: Mapping[str, Any] = MappingProxyType({}),
    trust_remote_code: bool = False,
    allow_serve: bool = False,
    same_model: bool = False,
) -> None:
    """Run the missing cells: all models answer first, one after the other, then all answers are read and scored.

    Each model is loaded once. A failed cell is recorded in the study's folder, and the others go on. executor,
    executor_args: where engines run on this machine. trust_remote_code, allow_serve: permissions that a study file
    cannot give. same_model: the user states that servers at other addresses serve the same models. Raises UserError for
    an unknown executor or argument, and if two cards would start their servers on one port.
    """
    opener_of(executor, executor_args)
    if allow_serve:
        check_ports(engine_cards(cells))
    kept.begin()
    failures = kept.failures()
    missing = [cell for cell in cells if progress_of(cell, failures).state in (CellState.LEFT, CellState.FAILED)]
    index = CardIndex(cells[0].study.options()["include_path"]) if cells else CardIndex()
    tasks = index.tasks(sorted({cell.task_card for cell in cells})) if cells else []

    def each(stage: Callable[[ActiveRun], object]) -> None:
        for cell in list(missing):
            try:
                config = replace(
                    cell.config(),
                    executor=executor,
                    executor_args=executor_args,
                    trust_remote_code=trust_remote_code,
                    same_model=same_model,
                    allow_serve=allow_serve,
                )
                [prepared] = prepare(config, progress, to_run=True, index=index)
                with open_run(prepared) as work:
                    stage(work)
                kept.note(cell, None)
            except HarnessError as error:
                kept.note(cell, str(error))
                missing.remove(cell)

    with closing(EngineCache[Backend]()) as models:
        each(lambda work: run_generation(work, models, progress, tasks))

    def read_and_score(work: ActiveRun) -> None:
        run_extraction(work, extractors, progress, tasks)
        run_scoring(work, progress)

    with closing(EngineCache[Extractor]()) as extractors:
        each(read_and_score)
