"""The whole way: plan, generate, extract, observe, score. Each stage goes on from what is on disk."""

from __future__ import annotations

from contextlib import closing

from vibe_harness.backends.protocol import BACKENDS
from vibe_harness.errors import EngineError
from vibe_harness.extraction.opening import open_extractor
from vibe_harness.pipeline.extract import READABLE, extract
from vibe_harness.pipeline.generate import generate
from vibe_harness.pipeline.journal import read_journal
from vibe_harness.pipeline.observe import write_clips, write_observations
from vibe_harness.pipeline.prepare import Prepared, settings_of
from vibe_harness.pipeline.progress import Progress
from vibe_harness.pipeline.results import FORMAT, Results, write_results
from vibe_harness.pipeline.run_folder import RunFolder
from vibe_harness.pipeline.score import read_frame, score_task
from vibe_harness.records import Outcome


def run(prepared: Prepared, progress: Progress) -> Results:
    """Run what was prepared in its folder, or finish what an earlier start left there.

    Raises UserError where the folder belongs to another run or another process works in it, EngineError where the
    engine fails; what was already answered is kept.
    """
    folder = RunFolder(prepared.folder)
    with folder.locked():
        folder.claim(prepared.asked())
        write_clips(folder.clips, list(prepared.plan.clips))
        _generate(prepared, folder, progress)
        _extract(prepared, folder, progress)
        results = score(prepared, folder, progress)
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
            generate(plan, backend, folder.responses, tick)
    errors = [r["error"] for r in read_journal(folder.responses) if r["request"] in planned]
    if errors and all(error is not None for error in errors):
        raise EngineError(f"every request to '{plan.model.model}' failed. The first: {errors[0]}")


def _extract(prepared: Prepared, folder: RunFolder, progress: Progress) -> None:
    plan = prepared.plan
    tasks = {task.name: task for task in plan.tasks}
    planned = {request.id for request in plan.requests()}
    readable = {r["request"] for r in read_journal(folder.responses) if r["outcome"] in READABLE} & planned
    with (
        progress.stage(f"extracting with {prepared.extractor}", len(readable)) as tick,
        closing(open_extractor(prepared.extractor, prepared.index, plan.tasks)) as extractor,
    ):
        extract(folder.responses, folder.extractions, planned, extractor, tasks, tick)
        clips = {heard.clip.id: heard.clip for heard in plan.clips}
        write_observations(folder, clips, planned, extractor, tasks)


def score(prepared: Prepared, folder: RunFolder, progress: Progress) -> Results:
    """Score the observations of a run folder."""
    question, plan = prepared.question, prepared.plan
    settings = settings_of(question)
    results = []
    steps = [
        (task, variant, dimension)
        for task in plan.tasks
        for variant in plan.variants[task.name]
        for dimension in prepared.dimensions
    ]
    with progress.stage("scoring", len(steps)) as tick:
        for task, variant, dimension in steps:
            frame = read_frame(folder.observations, task.name, variant, dimension)
            results.append(score_task(frame, task, variant, dimension, settings))
            tick(1)
    return Results(
        format=FORMAT,
        model=plan.model.model,
        simulated=plan.model.simulated,
        corpus=prepared.corpus.name,
        corpus_synthetic=prepared.corpus.synthetic,
        extractor=prepared.extractor,
        tau=question.tau,
        permutations=question.permutations,
        seed=question.seed,
        bad_clips=dict(prepared.bad_clips),
        tasks=results,
    )
