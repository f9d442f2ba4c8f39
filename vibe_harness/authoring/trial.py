"""A task tried on three clips of the demo corpus with the simulated model: the whole way, in a folder that vanishes."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from vibe_harness.backends.protocol import with_overrides
from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.cards.schema import ChoicePart
from vibe_harness.corpora.audio.check import check_clips
from vibe_harness.corpora.audio.decode import CheckedAudio
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.errors import HarnessError
from vibe_harness.pipeline.run import run
from vibe_harness.planning.choice_rows import check_options
from vibe_harness.planning.plan import Plan
from vibe_harness.planning.prepare import Prepared, Question, asked_of
from vibe_harness.progress import Progress
from vibe_harness.records import CheckedClip, Clip, Reading
from vibe_harness.store.results import Results

CLIPS, DIMENSION, EXTRACTOR = 3, "gender", "rules"


def tried(task: Task, index: CardIndex, trust_remote_code: bool = False) -> list[str]:
    """What goes wrong on the whole way with three clips, in words; nothing where all goes well.

    The simulated model refuses nothing and breaks no format here: every attribute should come back with a value, and
    every answer to a choice task as one of its options.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            results = run(_prepared(task, index, Path(folder), trust_remote_code), Progress())
    except HarnessError as error:
        return [f"a trial with the simulated model fails: {error}"]
    return _unread(results)


def _prepared(task: Task, index: CardIndex, folder: Path, trust_remote_code: bool) -> Prepared:
    model = with_overrides(index.model("simulated"), {"refusal_rate": 0, "breakage_rate": 0})
    corpus = _three_clips(task.card.choice)
    heard = [
        CheckedClip(clip, corpus.path(clip), audio.sha256, audio.duration_s)
        for clip, audio in check_clips(corpus, corpus.clips)
        if isinstance(audio, CheckedAudio)
    ]
    heard, _ = check_options([task], corpus, model, heard, {}, False, Progress())
    variants = {task.name: tuple(task.card.prompts)}
    question = Question(
        model=model.model, tasks=[task.name], tau=1, permutations=9, trust_remote_code=trust_remote_code
    )
    plan = Plan(model, [task], variants, heard, question.seed)
    return Prepared(
        question=question,
        asked=asked_of(question, plan, corpus, EXTRACTOR, index),
        index=index,
        corpus=corpus,
        plan=plan,
        dimensions=[DIMENSION],
        extractor=EXTRACTOR,
        bad_clips={},
        folder=folder,
    )


def _three_clips(choice: ChoicePart | None) -> Corpus:
    """Clips of two groups of the demo corpus; for a choice task each with a row of made-up options."""
    corpus = find_corpus("demo")
    groups = sorted({clip.groups[DIMENSION] for clip in corpus.clips})
    by_group = [[clip for clip in corpus.clips if clip.groups[DIMENSION] == group] for group in groups]
    clips = [*by_group[0][: CLIPS - 1], by_group[1][0]]
    if choice is not None:
        clips = [replace(clip, groups={**clip.groups, **_row(choice, clip)}) for clip in clips]
    return replace(corpus, clips=tuple(clips))


def _row(choice: ChoicePart, clip: Clip) -> dict[str, str]:
    """What a row of the task's own corpus would hold; a spoken option is the clip itself."""
    row = {choice.item: clip.id}
    for name, option in choice.options.items():
        row[option.text] = f"what the option {name} says"
        if option.audio:
            row[option.audio] = clip.file
    if choice.order_column:
        row[choice.order_column] = "original"
    if choice.split_by:
        row[choice.split_by] = "a kind of item"
    if choice.key:
        row[choice.key.column] = choice.letters[0]
    return row


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
