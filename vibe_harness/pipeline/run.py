"""Run all stages: generate, extract, observe, score. Each stage resumes from what is on disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Generic, TypeVar

from vibe_harness.backends.guards import Budget, Spent
from vibe_harness.backends.protocol import Backend
from vibe_harness.cards.loading import Task
from vibe_harness.errors import EngineError, UserError
from vibe_harness.extraction.opening import extractor_identity, open_extractor
from vibe_harness.extraction.protocol import Extractor
from vibe_harness.kinds.base import kind_of
from vibe_harness.pipeline.cascade import TranscriptBackend, transcribing, transcriptions
from vibe_harness.pipeline.engine_checks import batch_checked, check_batch, check_hearing_once
from vibe_harness.pipeline.extract import extract, pending_extractions
from vibe_harness.pipeline.generate import generate
from vibe_harness.pipeline.observe import write_observations
from vibe_harness.pipeline.reuse import check_addresses, check_checkpoint, find_reuse, reuse_line
from vibe_harness.planning.plan import request_table
from vibe_harness.planning.prepare import PreparedRun, record_of, settings_of
from vibe_harness.progress import Progress
from vibe_harness.scoring.score import score_run
from vibe_harness.store.engines import append_engine
from vibe_harness.store.extractions import ExtractionKeys, completed_extractions
from vibe_harness.store.journal import drop_torn_tail
from vibe_harness.store.request_ids import RequestTable
from vibe_harness.store.responses import FinalResponses, StoredResponse
from vibe_harness.store.results import Results, write_results
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.store.run_tables import read_prompts, requests_written, write_clips

T = TypeVar("T", Backend, Extractor)


class EngineCache(Generic[T]):
    """Keeps the last engine open, so that consecutive runs with the same engine load it once."""

    def __init__(self) -> None:
        self._key: Any = None
        self._engine: T | None = None

    @contextmanager
    def opened(self, key: Any, open_engine: Callable[[], T]) -> Iterator[T]:
        """The engine with this key. Opens it if needed and closes any other. An engine that fails is closed."""
        if self._engine is None or key != self._key:
            self.close()
            self._engine, self._key = open_engine(), key
        try:
            yield self._engine
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()


@dataclass(frozen=True)
class ActiveRun:
    """A run whose folder is locked by this process."""

    prepared: PreparedRun
    folder: RunFolder
    planned: RequestTable
    finals: FinalResponses
    budget: Budget


def run(prepared: PreparedRun, progress: Progress) -> Results:
    """Start or resume a run in its folder.

    Raises UserError if the folder belongs to another run or is locked by another process, and EngineError if the engine
    fails. Responses that are stored already are kept.
    """
    [results] = run_all([prepared], progress)
    return results


def run_all(runs: Sequence[PreparedRun], progress: Progress) -> Iterator[Results]:
    """As `run`, for several runs: generates for all, then extracts for all, then scores each. Models load once."""
    spent = Spent()
    with ExitStack() as held:
        active_runs = [held.enter_context(open_run(prepared, spent)) for prepared in runs]
        with closing(EngineCache[Backend]()) as models:
            for active in active_runs:
                run_generation(active, models, progress, _tasks_of(runs))
        with closing(EngineCache[Extractor]()) as extractors:
            for active in active_runs:
                run_extraction(active, extractors, progress, _tasks_of(runs))
        for active in active_runs:
            yield run_scoring(active, progress)


def _tasks_of(runs: Sequence[PreparedRun]) -> list[Task]:
    return list({task.name: task for prepared in runs for task in prepared.plan.tasks}.values())


@contextmanager
def open_run(prepared: PreparedRun, spent: Spent | None = None) -> Iterator[ActiveRun]:
    """Lock the run folder and record the run in it. Raises UserError as `run` does.

    spent: cost of earlier runs of the same command, which share one limit.
    """
    folder, config = RunFolder(prepared.folder), prepared.config
    new = not folder.path.exists()
    budget = Budget(config.max_requests, config.max_cost, prepared.plan.model.prices, spent=spent or Spent())
    with folder.locked():
        for journal in (folder.engines, folder.transcriptions, folder.responses, folder.extractions):
            drop_torn_tail(journal)
        with requests_written(folder.requests, prepared.plan.requests()) as planned:
            if config.fresh and not folder.is_blank():
                raise UserError(
                    f"{folder.path}: another process has begun this run meanwhile: leave --fresh out to go on with it, "
                    "or type the same again to start another"
                )
            folder.claim(prepared.identity, record_of(prepared, planned.digest), fresh=config.fresh)
        check_addresses(prepared, folder)
        write_clips(folder.clips, prepared.plan.clips)
        try:
            yield ActiveRun(prepared, folder, planned, FinalResponses(folder.responses, planned), budget)
        except Exception:
            if new and folder.is_blank():
                shutil.rmtree(folder.path)  # a start that failed leaves nothing
            raise


def run_generation(active: ActiveRun, models: EngineCache[Backend], progress: Progress, tasks: Sequence[Task]) -> None:
    """First stage: the model answers the requests that have no response yet.

    tasks: all tasks that the model will be used for while it is loaded, from which engines choose their size.
    """
    prepared, folder, finals = active.prepared, active.folder, active.finals
    plan, unchecked = prepared.plan, prepared.config.check_batch_invariance
    answered_before = len(finals.answered)
    progress.note(reuse_line(prepared, find_reuse(len(active.planned), finals, folder)))
    if answered_before == len(active.planned) and batch_checked(folder) >= unchecked:
        return  # the engine need not start
    with models.opened(plan.model, partial(_started, prepared, progress, tasks)) as opened:
        check_checkpoint(prepared, folder, opened.describe().get("checkpoint"))
        if prepared.config.hearing_check:
            check_hearing_once(plan, opened, folder)
        append_engine(folder.engines, "model", opened.describe())
        backend, served = opened, None
        if plan.modality == "cascade":
            backend, served = _transcribed(active, opened, progress)
        requests = plan.requests(read_prompts(folder.requests))
        with progress.stage(f"asking {plan.model.model}", len(plan)) as tick:
            counts = generate(requests, finals, backend, tick, active.budget, served)
        if not answered_before and counts.failed == counts.requests:
            raise EngineError(f"every request to '{plan.model.model}' failed. The first: {counts.first_error}")
        if batch_checked(folder) < unchecked:
            check_batch(plan, finals, backend, folder, unchecked)


def _started(prepared: PreparedRun, progress: Progress, tasks: Sequence[Task]) -> Backend:
    model = prepared.plan.model
    with progress.stage(f"starting {model.model}", 1) as tick:
        backend = prepared.opener(model, tasks)
        tick(1)
    return backend


def _transcribed(active: ActiveRun, backend: Backend, progress: Progress) -> tuple[Backend, str | None]:
    """Transcribe the clips. Returns a back end that uses the transcriptions, and their model's name."""
    plan = active.prepared.plan
    finals = FinalResponses(active.folder.transcriptions, request_table(transcribing(plan)))
    with progress.stage(f"transcribing with {plan.model.model}", len(plan.clips)) as tick:
        generate(transcribing(plan), finals, backend, tick, active.budget)
    return TranscriptBackend(backend, transcriptions(finals)), finals.served_model


def run_extraction(
    active: ActiveRun, extractors: EngineCache[Extractor], progress: Progress, tasks: Sequence[Task]
) -> None:
    """Second stage: the extractor reads the responses that have no extraction yet; then observations are written.

    tasks: all tasks that the extractor will be used for while it is loaded.
    """
    prepared, folder, finals = active.prepared, active.folder, active.finals
    own = {task.name: task for task in prepared.plan.tasks}
    keys = ExtractionKeys(extractor_identity(prepared.extractor, prepared.index), own)
    clips = {checked.clip.id: checked.clip for checked in prepared.plan.clips}

    def task_of(stored: StoredResponse) -> Task:
        task = own[stored.task]
        return kind_of(task.card).bind(task, stored.variant, clips[stored.clip])

    with progress.stage(f"extracting with {prepared.extractor}", finals.readable) as tick:
        done = completed_extractions(folder.extractions)
        pending = pending_extractions(finals, done.keys, keys, tick)
        first = next(pending, None)
        if first is not None:  # otherwise the extractor need not start
            open_it = partial(open_extractor, prepared.extractor, prepared.index, tasks, prepared.opener, active.budget)
            with extractors.opened(prepared.extractor, open_it) as extractor:
                append_engine(folder.engines, "extractor", extractor.describe())
                unread = chain([first], pending)
                extract(unread, task_of, extractor, folder.extractions, tick, done.failed, done.served_model)
    write_observations(folder, clips, finals, keys, own)


def run_scoring(active: ActiveRun, progress: Progress) -> Results:
    """Last stage: score the observations and store the results in the folder."""
    prepared = active.prepared
    results = score_run(active.folder, settings_of(prepared.config), prepared.dimensions, progress)
    write_results(active.folder, results)
    return results
