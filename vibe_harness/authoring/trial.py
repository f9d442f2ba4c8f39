"""Trial run of a task on three clips of the demo corpus with the simulated model, in a temporary folder."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from vibe_harness.backends.protocol import with_overrides
from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.cards.schema import TaskCard
from vibe_harness.corpora.audio.check import check_clips
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.errors import HarnessError
from vibe_harness.kinds.base import kind_of
from vibe_harness.pipeline.run import run
from vibe_harness.planning.config import RunConfig
from vibe_harness.planning.plan import Plan
from vibe_harness.planning.preflight_checks import check_rows
from vibe_harness.planning.prepare import PreparedRun, run_identity
from vibe_harness.progress import Progress
from vibe_harness.records import CheckedAudio, CheckedClip, Reading
from vibe_harness.store.results import Results

CLIPS, DIMENSION, EXTRACTOR = 3, "gender", "rules"


def run_trial(task: Task, index: CardIndex, trust_remote_code: bool = False) -> list[str]:
    """Run all stages with three clips. Returns a message for each problem.

    The simulated model is set to never refuse and to keep the format, so every attribute should have a value, and every
    answer to a choice task should be one of its options.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            results = run(_prepared(task, index, Path(folder), trust_remote_code), Progress())
    except HarnessError as error:
        return [f"a trial with the simulated model fails: {error}"]
    return _unread(results)


def _prepared(task: Task, index: CardIndex, folder: Path, trust_remote_code: bool) -> PreparedRun:
    model = with_overrides(index.model("simulated"), {"refusal_rate": 0, "breakage_rate": 0})
    corpus = _three_clips(task.card)
    checked = [
        CheckedClip(clip, corpus.path(clip), audio.sha256, audio.duration_s)
        for clip, audio in check_clips(corpus, corpus.clips)
        if isinstance(audio, CheckedAudio)
    ]
    checked, _ = check_rows([task], corpus, model, checked, {}, False, Progress())
    variants = {task.name: tuple(task.card.prompts)}
    config = RunConfig(model=model.model, tasks=[task.name], tau=1, permutations=9, trust_remote_code=trust_remote_code)
    plan = Plan(model, [task], variants, checked, config.seed)
    return PreparedRun(
        config=config,
        identity=run_identity(config, plan, corpus, EXTRACTOR, index),
        index=index,
        corpus=corpus,
        plan=plan,
        dimensions=[DIMENSION],
        extractor=EXTRACTOR,
        bad_clips={},
        folder=folder,
    )


def _three_clips(card: TaskCard) -> Corpus:
    """Three clips from two groups of the demo corpus, with made-up values of the columns that the task needs."""
    corpus = find_corpus("demo")
    groups = sorted({clip.groups[DIMENSION] for clip in corpus.clips})
    by_group = [[clip for clip in corpus.clips if clip.groups[DIMENSION] == group] for group in groups]
    clips = [*by_group[0][: CLIPS - 1], by_group[1][0]]
    kind = kind_of(card)
    rows = [replace(clip, groups={**clip.groups, **kind.sample_row(card, clip)}) for clip in clips]
    return replace(corpus, clips=tuple(rows))


def _unread(results: Results) -> list[str]:
    """One message for each attribute that the extractor did not read in every answer."""
    lost = {
        attribute
        for task in results.tasks
        for group in task.groups.values()
        for attribute, readings in group.readings.items()
        if readings[Reading.VALUE] < group.requests
    }
    return [
        f"the rules extractor does not read back the attribute '{name}' from a labelled answer: give it a label that "
        "no other attribute has, and values without commas, semicolons or 'and'"
        for name in sorted(lost)
    ]
