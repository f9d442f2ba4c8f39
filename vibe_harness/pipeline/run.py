"""The whole way: plan, generate, extract, observe, score. Each stage goes on from what is on disk."""

from __future__ import annotations

from contextlib import closing

from vibe_harness.backends.guards import Budget
from vibe_harness.backends.protocol import Backend
from vibe_harness.errors import EngineError
from vibe_harness.extraction.opening import extractor_identity, open_extractor
from vibe_harness.pipeline.cascade import Worded, transcribing, transcriptions
from vibe_harness.pipeline.engine_checks import batch_checked, check_batch, check_hearing_once, note_engine
from vibe_harness.pipeline.extract import ExtractionKeys, extract, extracted, unread
from vibe_harness.pipeline.generate import answered, generate, served_model
from vibe_harness.pipeline.ids import Planned
from vibe_harness.pipeline.journal import drop_torn_tail
from vibe_harness.pipeline.observe import write_observations
from vibe_harness.pipeline.plan import Plan, places
from vibe_harness.pipeline.prepare import Prepared, record_of, settings_of
from vibe_harness.pipeline.progress import Progress
from vibe_harness.pipeline.results import Results, write_results
from vibe_harness.pipeline.run_folder import RunFolder
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
        for journal in (folder.engines, folder.transcriptions, folder.responses, folder.extractions):
            drop_torn_tail(journal)
        folder.claim(prepared.asked, record_of(prepared, planned.digest))
        write_clips(folder.clips, prepared.plan.clips)
        write_requests(folder.requests, planned)
        question = prepared.question
        budget = Budget(question.max_requests, question.max_cost, prepared.plan.model.prices)
        _generate(prepared, planned, folder, budget, progress)
        _extract(prepared, planned, folder, budget, progress)
        results = score_run(folder, settings_of(prepared.question), prepared.dimensions, progress)
        write_results(folder.results, results)
    return results


def _generate(prepared: Prepared, planned: Planned, folder: RunFolder, budget: Budget, progress: Progress) -> None:
    plan, unchecked = prepared.plan, prepared.question.check_batch_invariance
    done = answered(folder.responses, planned)
    if len(done) == len(planned) and batch_checked(folder) >= unchecked:
        return  # the engine need not start
    with closing(_started(prepared, folder, progress)) as opened:
        backend, served = opened, None
        if plan.modality == "cascade":
            backend, served = _transcribed(plan, opened, folder, budget, progress)
        with progress.stage(f"asking {plan.model.model}", len(plan)) as tick:
            asked = generate(plan.requests(), done, backend, folder.responses, tick, budget, served)
        if not done and asked.failed == asked.requests:
            raise EngineError(f"every request to '{plan.model.model}' failed. The first: {asked.first_error}")
        if batch_checked(folder) < unchecked:
            check_batch(plan, planned, backend, folder, unchecked)


def _started(prepared: Prepared, folder: RunFolder, progress: Progress) -> Backend:
    """The model's engine, once it stands and has shown that it hears."""
    model, tasks = prepared.plan.model, prepared.plan.tasks
    with progress.stage(f"starting {model.model}", 1) as tick:
        backend = prepared.opener(model, tasks)
        tick(1)
    try:
        if prepared.question.hearing_check:
            check_hearing_once(prepared.plan, backend, folder)
        note_engine(folder, "model", backend.describe())
    except BaseException:
        backend.close()
        raise
    return backend


def _transcribed(
    plan: Plan, backend: Backend, folder: RunFolder, budget: Budget, progress: Progress
) -> tuple[Backend, str | None]:
    """The backend, asked from now on with the model's own transcriptions; and the model that made these."""
    planned = places(transcribing(plan))
    done = answered(folder.transcriptions, planned)
    with progress.stage(f"transcribing with {plan.model.model}", len(planned)) as tick:
        generate(transcribing(plan), done, backend, folder.transcriptions, tick, budget)
    return Worded(backend, transcriptions(folder.transcriptions, planned)), served_model(folder.transcriptions)


def _extract(prepared: Prepared, planned: Planned, folder: RunFolder, budget: Budget, progress: Progress) -> None:
    plan = prepared.plan
    tasks = {task.name: task for task in plan.tasks}
    keys = ExtractionKeys(extractor_identity(prepared.extractor, prepared.index), tasks)
    done = extracted(folder.extractions)
    waiting = sum(1 for _ in unread(folder.responses, planned, done, keys))
    if waiting:  # otherwise the extractor need not start
        with (
            progress.stage(f"extracting with {prepared.extractor}", waiting) as tick,
            closing(
                open_extractor(prepared.extractor, prepared.index, plan.tasks, prepared.opener, budget)
            ) as extractor,
        ):
            note_engine(folder, "extractor", extractor.describe())
            extract(unread(folder.responses, planned, done, keys), tasks, extractor, folder.extractions, tick)
    clips = {heard.clip.id: heard.clip for heard in plan.clips}
    write_observations(folder, clips, planned, keys, tasks)
