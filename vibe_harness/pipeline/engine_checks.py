"""Checks of a running engine: hearing and batch invariance. Results are recorded in engines.jsonl."""

from __future__ import annotations

from dataclasses import asdict

from vibe_harness.backends.guards import batch_differences
from vibe_harness.backends.hearing_check import PROMPT, check_hearing
from vibe_harness.backends.protocol import Backend
from vibe_harness.cards.digest import digest
from vibe_harness.pipeline.hearing_clips import hearing_clips
from vibe_harness.planning.plan import Plan
from vibe_harness.store.engines import (
    BATCH_CHECK,
    HEARING_CHECK,
    BatchDifference,
    append_engine,
    batch_checks,
    passed_hearing_check,
)
from vibe_harness.store.responses import FinalResponses
from vibe_harness.store.run_folder import RunFolder


def check_hearing_once(plan: Plan, backend: Backend, folder: RunFolder) -> None:
    """Ask the model what is said in some clips and in silence, and record its answers in the run folder.

    Raises EngineError if it does not pass: see `check_hearing`. The check is skipped if this engine passed it in this
    run, if no audio is played, and for the simulated model, which detects pitch and timbre but no words.
    """
    if plan.modality == "transcript" or plan.model.backend == "simulated":
        return
    question = plan.model.model_dump()["hearing_check"] or PROMPT
    checked = digest([dict(backend.describe()), plan.model.identity(), question])
    before = passed_hearing_check(folder.engines)
    if before is not None and before.checked == checked:
        return
    result = check_hearing(backend, plan.model, hearing_clips(plan))
    append_engine(folder.engines, HEARING_CHECK, {**asdict(result), "checked": checked})


def batch_checked(folder: RunFolder) -> int:
    """Number of requests of this run that were repeated one by one."""
    return max((entry.requests for entry in batch_checks(folder.engines)), default=0)


def check_batch(plan: Plan, finals: FinalResponses, backend: Backend, folder: RunFolder, number: int) -> None:
    """Repeat `number` answered requests one by one, spread evenly over the run, and record the texts that differ."""
    readable = sorted(stored.request for stored in finals if stored.readable)
    step = max(1, len(readable) // number)
    chosen = set(readable[::step][:number])
    texts = {stored.request: stored.text for stored in finals if stored.request in chosen}
    requests = (request for request in plan.requests() if request.id in chosen)
    different = [
        asdict(BatchDifference(request, among_others, alone))
        for request, among_others, alone in batch_differences(backend, requests, texts)
    ]
    append_engine(folder.engines, BATCH_CHECK, {"requests": number, "asked": len(chosen), "different": different})
