"""The whole way: plan, generate, extract, observe, score. Each stage goes on from what is on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from vibe_harness.backends.guards import Budget
from vibe_harness.backends.hearing_check import check_hearing
from vibe_harness.backends.protocol import Backend
from vibe_harness.cards.loading import Task
from vibe_harness.corpora.audio import read_audio
from vibe_harness.errors import EngineError
from vibe_harness.extraction.opening import extractor_identity, open_extractor
from vibe_harness.extraction.protocol import Extractor
from vibe_harness.pipeline.extract import ExtractionKeys, extract, extracted, unread
from vibe_harness.pipeline.generate import answered, generate
from vibe_harness.pipeline.ids import Planned
from vibe_harness.pipeline.journal import Journal, drop_torn_tail
from vibe_harness.pipeline.observe import write_observations
from vibe_harness.pipeline.prepare import Prepared, record_of, settings_of
from vibe_harness.pipeline.progress import Progress
from vibe_harness.pipeline.questions import bound
from vibe_harness.pipeline.results import Results, write_results
from vibe_harness.pipeline.run_folder import HEARING_CHECK, RunFolder
from vibe_harness.pipeline.score import score_run
from vibe_harness.pipeline.tables import write_clips, write_requests

T = TypeVar("T", Backend, Extractor)


class Kept(Generic[T]):
    """One engine at a time, kept open for as long as what follows needs the same: several runs then load it once."""

    def __init__(self) -> None:
        self._key: Any = None
        self._engine: T | None = None

    @contextmanager
    def opened(self, key: Any, open_engine: Callable[[], T]) -> Iterator[T]:
        """The engine of that key; another one is closed first. One that fails is closed and not kept."""
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
class Work:
    """A run at work in its folder, which this process holds."""

    prepared: Prepared
    folder: RunFolder
    planned: Planned


def run(prepared: Prepared, progress: Progress) -> Results:
    """Run what was prepared in its folder, or finish what an earlier start left there.

    Raises UserError where the folder belongs to another run or another process works in it, EngineError where the
    engine fails; what was already answered is kept.
    """
    [results] = run_all([prepared], progress)
    return results


def run_all(runs: Sequence[Prepared], progress: Progress) -> Iterator[Results]:
    """As `run`, for several: all are asked, then all are read, then each is scored. Models are loaded once."""
    with ExitStack() as held:
        works = [held.enter_context(at_work(prepared)) for prepared in runs]
        with closing(Kept[Backend]()) as models:
            for work in works:
                ask(work, models, progress, _tasks_of(runs))
        with closing(Kept[Extractor]()) as extractors:
            for work in works:
                read(work, extractors, progress, _tasks_of(runs))
        for work in works:
            yield score(work, progress)


def _tasks_of(runs: Sequence[Prepared]) -> list[Task]:
    return list({task.name: task for prepared in runs for task in prepared.plan.tasks}.values())


@contextmanager
def at_work(prepared: Prepared) -> Iterator[Work]:
    """Hold the folder, and write down there what is asked. Raises UserError as `run` does."""
    folder = RunFolder(prepared.folder)
    with folder.locked():
        planned = prepared.plan.places()
        for journal in (folder.engines, folder.responses, folder.extractions):
            drop_torn_tail(journal)
        folder.claim(prepared.asked, record_of(prepared, planned.digest))
        write_clips(folder.clips, prepared.plan.clips)
        write_requests(folder.requests, planned)
        yield Work(prepared, folder, planned)


def ask(work: Work, models: Kept[Backend], progress: Progress, tasks: Sequence[Task]) -> None:
    """First stage: the model answers what it has not answered yet.

    tasks: all that the model will be asked while it is loaded, so that it can be sized.
    """
    plan, folder = work.prepared.plan, work.folder
    done = answered(folder.responses, work.planned)
    if len(done) == len(work.planned):
        return  # the engine need not start
    prepared = work.prepared
    with (
        progress.stage(f"asking {plan.model.model}", len(plan)) as tick,
        models.opened(plan.model, lambda: prepared.opener(plan.model, tasks)) as backend,
    ):
        _check_hearing(prepared, backend, folder)
        _note_engine(folder, "model", backend.describe())
        budget = Budget(max_requests=prepared.question.max_requests)
        asked = generate(plan, done, backend, folder.responses, tick, budget)
    if not done and asked.failed == asked.requests:
        raise EngineError(f"every request to '{plan.model.model}' failed. The first: {asked.first_error}")


def _check_hearing(prepared: Prepared, backend: Backend, folder: RunFolder) -> None:
    """Ask the model what was said in up to three clips and in silence; what it wrote goes into the run folder.

    Raises EngineError where it writes the same for all of them. Not asked of the simulated model, which hears pitch and
    timbre but no words.
    """
    plan = prepared.plan
    if plan.model.simulated or not prepared.question.hearing_check or folder.hearing_passed():
        return
    by_words = {heard.clip.sentence_id or heard.clip.text or heard.clip.id: heard for heard in plan.clips}
    different = list(by_words.values())[:3] if len(by_words) > 1 else list(plan.clips[:3])
    clips = [(heard.clip.id, partial(read_audio, heard.path, plan.model.sample_rate)) for heard in different]
    heard = check_hearing(backend, plan.model, clips)
    _note_engine(folder, HEARING_CHECK, {"answers": heard.answers})


def read(work: Work, extractors: Kept[Extractor], progress: Progress, tasks: Sequence[Task]) -> None:
    """Second stage: the extractor reads what was not read yet; observations are made of all.

    tasks: all whose answers the extractor will read while it is loaded.
    """
    prepared, folder, planned = work.prepared, work.folder, work.planned
    own = {task.name: task for task in prepared.plan.tasks}
    keys = ExtractionKeys(extractor_identity(prepared.extractor, prepared.index), own)
    done = extracted(folder.extractions)
    clips = {heard.clip.id: heard.clip for heard in prepared.plan.clips}

    def task_of(task: str, request: str) -> Task:
        place = planned.get(request)
        return bound(own[task], place[1], clips[place[2]]) if place else own[task]

    waiting = sum(1 for _ in unread(folder.responses, planned, done, keys))
    if waiting:  # otherwise the extractor need not start
        with (
            progress.stage(f"extracting with {prepared.extractor}", waiting) as tick,
            extractors.opened(
                prepared.extractor,
                lambda: open_extractor(prepared.extractor, prepared.index, tasks, prepared.opener),
            ) as extractor,
        ):
            _note_engine(folder, "extractor", extractor.describe())
            extract(unread(folder.responses, planned, done, keys), task_of, extractor, folder.extractions, tick)
    write_observations(folder, clips, planned, keys, own)


def score(work: Work, progress: Progress) -> Results:
    """Last stage: scores of the observations, stored in the folder."""
    question = work.prepared.question
    results = score_run(work.folder, settings_of(question), work.prepared.dimensions, progress)
    write_results(work.folder.results, results)
    return results


def _note_engine(folder: RunFolder, role: str, description: Mapping[str, Any]) -> None:
    with Journal(folder.engines) as journal:
        journal.append({"role": role, **description, "time": time.time()})
