"""A task tried on three clips of the demo corpus with the simulated model: the whole way, in a folder that vanishes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from vibe_harness.backends.protocol import with_overrides
from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.corpora.audio import CheckedAudio
from vibe_harness.corpora.checking import check_clips
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.errors import HarnessError
from vibe_harness.pipeline.plan import HeardClip, Plan
from vibe_harness.pipeline.prepare import Prepared, Question
from vibe_harness.pipeline.progress import Progress
from vibe_harness.pipeline.results import Results
from vibe_harness.pipeline.run import run
from vibe_harness.records import Reading

CLIPS, DIMENSION, EXTRACTOR = 3, "gender", "rules"


def tried(task: Task, index: CardIndex, trust_remote_code: bool = False) -> list[str]:
    """What goes wrong on the whole way with three clips, in words; nothing where all goes well.

    The simulated model refuses nothing and breaks no format here: every attribute should come back with a value.
    """
    if task.card.kind != "open_ended":
        return []  # a choice task needs a corpus with items of its own
    try:
        with tempfile.TemporaryDirectory() as folder:
            results = run(_prepared(task, index, Path(folder), trust_remote_code), Progress())
    except HarnessError as error:
        return [f"a trial with the simulated model fails: {error}"]
    return _unread(results)


def _prepared(task: Task, index: CardIndex, folder: Path, trust_remote_code: bool) -> Prepared:
    corpus = find_corpus("demo")
    groups = sorted({clip.groups[DIMENSION] for clip in corpus.clips})
    by_group = [[clip for clip in corpus.clips if clip.groups[DIMENSION] == group] for group in groups]
    clips = [*by_group[0][: CLIPS - 1], by_group[1][0]]
    heard = [
        HeardClip(clip, corpus.path(clip), audio.sha256, audio.duration_s)
        for clip, audio in check_clips(corpus, clips, 1)
        if isinstance(audio, CheckedAudio)
    ]
    model = with_overrides(index.model("simulated"), {"refusal_rate": 0, "breakage_rate": 0})
    variants = {task.name: tuple(task.card.prompts)}
    return Prepared(
        question=Question(
            model=model.model, tasks=[task.name], tau=1, permutations=9, trust_remote_code=trust_remote_code
        ),
        asked={},
        index=index,
        corpus=corpus,
        plan=Plan(model, [task], variants, heard, 0),
        dimensions=[DIMENSION],
        extractor=EXTRACTOR,
        bad_clips={},
        folder=folder,
    )


def _unread(results: Results) -> list[str]:
    """One line for each attribute that an answer named and that was not read back."""
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
