"""The whole way: plan, generate, extract, observe, score. Each stage goes on from what is on disk."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Any

from vibe_harness.backends.guards import Budget
from vibe_harness.backends.hearing_check import check_hearing
from vibe_harness.backends.protocol import Backend
from vibe_harness.cards.loading import Task
from vibe_harness.corpora.audio import read_audio
from vibe_harness.errors import EngineError
from vibe_harness.extraction.opening import extractor_identity, open_extractor
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


def run(prepared: Prepared, progress: Progress) -> Results:
    """Run what was prepared in its folder, or finish what an earlier start left there.

    Raises UserError where the folder belongs to another run or another process works in it, EngineError where the
    engine fails; what was already answered is kept.
    """
    folder = RunFolder(prepared.folder)
    with folder.locked():
        planned = prepared.plan.places()
        for journal in (folder.engines, folder.responses, folder.extractions):
            drop_torn_tail(journal)
        folder.claim(prepared.asked, record_of(prepared, planned.digest))
        write_clips(folder.clips, prepared.plan.clips)
        write_requests(folder.requests, planned)
        _generate(prepared, planned, folder, progress)
        _extract(prepared, planned, folder, progress)
        results = score_run(folder, settings_of(prepared.question), prepared.dimensions, progress)
        write_results(folder.results, results)
    return results


def _generate(prepared: Prepared, planned: Planned, folder: RunFolder, progress: Progress) -> None:
    plan = prepared.plan
    done = answered(folder.responses, planned)
    if len(done) == len(planned):
        return  # the engine need not start
    with (
        progress.stage(f"asking {plan.model.model}", len(plan)) as tick,
        closing(prepared.opener(plan.model, plan.tasks)) as backend,
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


def _extract(prepared: Prepared, planned: Planned, folder: RunFolder, progress: Progress) -> None:
    plan = prepared.plan
    tasks = {task.name: task for task in plan.tasks}
    keys = ExtractionKeys(extractor_identity(prepared.extractor, prepared.index), tasks)
    done = extracted(folder.extractions)
    clips = {heard.clip.id: heard.clip for heard in plan.clips}

    def task_of(task: str, request: str) -> Task:
        place = planned.get(request)
        return bound(tasks[task], place[1], clips[place[2]]) if place else tasks[task]

    waiting = sum(1 for _ in unread(folder.responses, planned, done, keys))
    if waiting:  # otherwise the extractor need not start
        with (
            progress.stage(f"extracting with {prepared.extractor}", waiting) as tick,
            closing(open_extractor(prepared.extractor, prepared.index, plan.tasks, prepared.opener)) as extractor,
        ):
            _note_engine(folder, "extractor", extractor.describe())
            extract(unread(folder.responses, planned, done, keys), task_of, extractor, folder.extractions, tick)
    write_observations(folder, clips, planned, keys, tasks)


def _note_engine(folder: RunFolder, role: str, description: Mapping[str, Any]) -> None:
    with Journal(folder.engines) as journal:
        journal.append({"role": role, **description, "time": time.time()})
