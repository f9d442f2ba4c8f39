"""What is asked of a running engine besides the run's own requests, and written down beside them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from vibe_harness.backends.guards import batch_differences
from vibe_harness.backends.hearing_check import check_hearing
from vibe_harness.backends.protocol import Backend
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.planning.plan import Plan
from vibe_harness.store.journal import Journal, read_journal
from vibe_harness.store.request_ids import Planned
from vibe_harness.store.responses import READABLE, final_responses
from vibe_harness.store.run_folder import BATCH_CHECK, HEARING_CHECK, RunFolder


def note_engine(folder: RunFolder, role: str, description: Mapping[str, Any]) -> None:
    """Write down an engine that was started, or what a check of it found."""
    with Journal(folder.engines) as journal:
        journal.append({"role": role, **description, "time": time.time()})


def check_hearing_once(plan: Plan, backend: Backend, folder: RunFolder) -> None:
    """Ask the model what was said in up to three clips and in silence; what it wrote goes into the run folder.

    Raises EngineError where it writes the same for all of them. Not asked twice in one run, nor where no clip is
    played, nor of the simulated model, which hears pitch and timbre but no words.
    """
    if plan.model.backend == "simulated" or plan.modality == "transcript" or folder.hearing_passed():
        return
    by_words = {heard.clip.sentence_id or heard.clip.text or heard.clip.id: heard for heard in plan.clips}
    different = list(by_words.values())[:3] if len(by_words) > 1 else list(plan.clips[:3])
    clips = [(heard.clip.id, partial(read_audio, heard.path, plan.model.sample_rate)) for heard in different]
    heard = check_hearing(backend, plan.model, clips)
    note_engine(folder, HEARING_CHECK, {"answers": heard.answers})


def batch_checked(folder: RunFolder) -> int:
    """How many requests of this run were asked again, one by one."""
    return max((entry["requests"] for entry in read_journal(folder.engines) if entry["role"] == BATCH_CHECK), default=0)


def check_batch(plan: Plan, planned: Planned, backend: Backend, folder: RunFolder, number: int) -> None:
    """Ask `number` answered requests again, spread evenly over the run, each alone; write down where texts differ."""
    readable = [r["request"] for r in final_responses(folder.responses, planned) if r["outcome"] in READABLE]
    step = max(1, len(readable) // number)
    chosen = set(sorted(readable)[::step][:number])
    texts = {r["request"]: r["text"] for r in final_responses(folder.responses, planned) if r["request"] in chosen}
    requests = (request for request in plan.requests() if request.id in chosen)
    different = [
        {"request": request, "among_others": among_others, "alone": alone}
        for request, among_others, alone in batch_differences(backend, requests, texts)
    ]
    note_engine(folder, BATCH_CHECK, {"requests": number, "asked": len(chosen), "different": different})
