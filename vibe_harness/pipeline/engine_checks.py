"""What is asked of a running engine besides the run's own requests, and written down beside them."""

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
    """Ask the model what was said in up to three clips and in silence; what it wrote goes into the run folder.

    Raises EngineError where it writes the same for all of them. Not asked twice in one run, nor where no clip is
    played, nor of the simulated model, which hears pitch and timbre but no words.
    """
    if plan.model.simulated or plan.modality == "transcript" or hearing_answers(folder.engines) is not None:
        return
    by_words = {heard.clip.sentence_id or heard.clip.text or heard.clip.id: heard for heard in plan.clips}
    different = list(by_words.values())[:3] if len(by_words) > 1 else list(plan.clips[:3])
    clips = [(heard.clip.id, partial(read_audio, heard.path, plan.model.sample_rate)) for heard in different]
    heard = check_hearing(backend, plan.model, clips)
    append_engine(folder.engines, HEARING_CHECK, {"answers": heard.answers})


def batch_checked(folder: RunFolder) -> int:
    """How many requests of this run were asked again, one by one."""
    return max((entry.requests for entry in batch_checks(folder.engines)), default=0)


def check_batch(plan: Plan, finals: FinalResponses, backend: Backend, folder: RunFolder, number: int) -> None:
    """Ask `number` answered requests again, spread evenly over the run, each alone; write down where texts differ."""
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
