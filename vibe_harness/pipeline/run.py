"""The whole way: plan, generate, extract, observe, score. Each stage goes on from what is on disk."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Any

from vibe_harness.backends.guards import Budget
from vibe_harness.backends.hearing_check import check_hearing
from vibe_harness.backends.protocol import BACKENDS, Backend
from vibe_harness.corpora.audio import read_audio
from vibe_harness.errors import EngineError
from vibe_harness.extraction.opening import open_extractor
from vibe_harness.pipeline.extract import READABLE, extract
from vibe_harness.pipeline.generate import generate
from vibe_harness.pipeline.journal import Journal, read_journal
from vibe_harness.pipeline.observe import write_clips, write_observations
from vibe_harness.pipeline.prepare import Prepared, asked, record_of, settings_of
from vibe_harness.pipeline.progress import Progress
from vibe_harness.pipeline.results import Results, write_results
from vibe_harness.pipeline.run_folder import HEARING_CHECK, RunFolder
from vibe_harness.pipeline.score import score_run
from vibe_harness.records import Outcome


def run(prepared: Prepared, progress: Progress) -> Results:
    """Run what was prepared in its folder, or finish what an earlier start left there.

    Raises UserError where the folder belongs to another run or another process works in it, EngineError where the
    engine fails; what was already answered is kept.
    """
    folder = RunFolder(prepared.folder)
    with folder.locked():
        folder.claim(asked(prepared), record_of(prepared))
        write_clips(folder.clips, list(prepared.plan.clips))
        _generate(prepared, folder, progress)
        _extract(prepared, folder, progress)
        results = score_run(folder, settings_of(prepared.question), prepared.dimensions, progress)
        write_results(folder.results, results)
    return results


def _generate(prepared: Prepared, folder: RunFolder, progress: Progress) -> None:
    plan = prepared.plan
    planned = {request.id for request in plan.requests()}
    outcomes = {r["request"]: r["outcome"] for r in read_journal(folder.responses) if r["request"] in planned}
    if len(outcomes) == len(planned) and Outcome.ERROR not in outcomes.values():
        return  # all answered: the engine need not start
    with progress.stage(f"asking {plan.model.model}", len(plan)) as tick:
        engine = BACKENDS.get(plan.model.backend)
        with closing(engine(plan.model, plan.tasks)) as backend:
            _note_engine(folder, "model", backend.describe())
            _check_hearing(prepared, backend, folder)
            generate(plan, backend, folder.responses, tick, Budget(max_requests=prepared.question.max_requests))
    errors = [r["error"] for r in read_journal(folder.responses) if r["request"] in planned]
    if errors and all(error is not None for error in errors):
        raise EngineError(f"every request to '{plan.model.model}' failed. The first: {errors[0]}")


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


def _extract(prepared: Prepared, folder: RunFolder, progress: Progress) -> None:
    plan = prepared.plan
    tasks = {task.name: task for task in plan.tasks}
    planned = {request.id for request in plan.requests()}
    readable = {r["request"] for r in read_journal(folder.responses) if r["outcome"] in READABLE} & planned
    with (
        progress.stage(f"extracting with {prepared.extractor}", len(readable)) as tick,
        closing(open_extractor(prepared.extractor, prepared.index, plan.tasks)) as extractor,
    ):
        _note_engine(folder, "extractor", extractor.describe())
        extract(folder.responses, folder.extractions, planned, extractor, tasks, tick)
        clips = {heard.clip.id: heard.clip for heard in plan.clips}
        write_observations(folder, clips, planned, extractor, tasks)


def _note_engine(folder: RunFolder, role: str, description: Mapping[str, Any]) -> None:
    with Journal(folder.engines) as journal:
        journal.append({"role": role, **description, "time": time.time()})
