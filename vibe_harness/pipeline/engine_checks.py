"""Checks of a running engine: hearing and batch invariance. Results are recorded in engines.jsonl."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from vibe_harness.backends.guards import batch_differences
from vibe_harness.backends.hearing_check import check_hearing
from vibe_harness.backends.protocol import Backend
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.planning.plan import Plan
from vibe_harness.store.engines import (
    BATCH_CHECK,
    HEARING_CHECK,
    BatchDifference,
    append_engine,
    batch_checks,
    hearing_answers,
)
from vibe_harness.store.responses import FinalResponses
from vibe_harness.store.run_folder import RunFolder


def check_hearing_once(plan: Plan, backend: Backend, folder: RunFolder) -> None:
    """Ask the model what is said in up to three clips and in silence, and record its answers in the run folder.

    Raises EngineError if all answers are the same. The check is skipped if it was done before in this run, if no audio
    is played, and for the simulated model, which detects pitch and timbre but no words.
    """
    asked = plan.modality != "transcript" and plan.model.backend != "simulated"
    if not asked or hearing_answers(folder.engines) is not None:
        return
    by_words = {clip.clip.sentence_id or clip.clip.text or clip.clip.id: clip for clip in plan.clips}
    different = list(by_words.values())[:3] if len(by_words) > 1 else list(plan.clips[:3])
    clips = [(clip.clip.id, partial(read_audio, clip.path, plan.model.sample_rate)) for clip in different]
    result = check_hearing(backend, plan.model, clips)
    append_engine(folder.engines, HEARING_CHECK, {"answers": result.answers})


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
