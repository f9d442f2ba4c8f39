"""What cannot be asked, or would compare nothing: refused before any model starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vibe_harness.backends.protocol import check_likelihoods
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.corpora.audio.decode import BadAudio, Fault
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.errors import UserError
from vibe_harness.kinds.base import kind_of
from vibe_harness.metrics.registry import find_metric
from vibe_harness.modality import Modality
from vibe_harness.progress import Progress
from vibe_harness.records import AnswerBy, CheckedClip, Clip

SHOWN = 20  # faults named in a message; the rest is counted


def check_modality(model: ModelCard, modality: Modality) -> None:
    """Raise UserError where the model cannot be asked in that form."""
    if modality != "transcript" and not model.audio:
        raise UserError(
            f"model '{model.model}' takes no audio: it can be an --extractor, or be given the corpus's words with "
            "--modality transcript"
        )
    if modality != "audio" and model.simulated:
        raise UserError(f"model '{model.model}' is simulated and reads no words: --modality {modality} is not for it")


def check_answer_by(model: ModelCard, tasks: Sequence[Task], answer_by: AnswerBy) -> None:
    """Raise UserError where the tasks or the model's backend cannot be answered so."""
    if answer_by == "generate":
        return
    free = [task.name for task in tasks if kind_of(task.card).free_text]
    if free:
        raise UserError(
            f"--answer-by likelihood: the task '{free[0]}' offers no options, and choice tasks alone are answered so: "
            "start a run for each kind"
        )
    check_likelihoods(model)


def check_excludes(model: ModelCard, corpus: Corpus, clips: Sequence[Clip]) -> None:
    """Raise UserError where a clip is of a group that the model's card excludes: a language it was not made for."""
    for column, groups in model.excludes.items():
        found = sorted({clip.groups[column] for clip in clips if clip.groups.get(column) in groups})
        if found:
            raise UserError(
                f"the card of the model '{model.model}' excludes the {column} {', '.join(found)}, which clips of the "
                f"corpus '{corpus.name}' have: leave them out with a corpus card of your own (select: where: {column}: "
                "[...])"
            )


def check_runs_no_code(card: ModelCard, own: Mapping[str, Any]) -> None:
    """Raise UserError where a model card would have code of the model's repository run, and the person did not say so.

    own: arguments that the person typed, which are the person's word.
    """
    engine = card.args.get("engine")
    by_argument = card.args.get("trust_remote_code") and "trust_remote_code" not in own
    by_engine = isinstance(engine, Mapping) and engine.get("trust_remote_code") and "engine" not in own
    if by_argument or by_engine:
        raise UserError(
            f"the model '{card.model}' ({card.id}) runs Python code from its repository: read it, then allow it with "
            "--trust-remote-code"
        )


def check_metrics(tasks: Sequence[Task], *, trust_remote_code: bool = False) -> None:
    """Raise UserError where a card names a metric that does not exist or that its kind cannot feed."""
    for task in tasks:
        for name in task.card.metrics:
            metric = find_metric(name, trust_remote_code=trust_remote_code)
            if task.card.kind not in metric.kinds:
                raise UserError(
                    f"{task.path}: the metric '{name}' is for tasks of kind {' or '.join(metric.kinds)}, and "
                    f"'{task.name}' is {task.card.kind}: take it out of the card's metrics"
                )
            offered = task.card.choice.options if task.card.choice else {}
            absent = [option for option in metric.options if option not in offered]
            if absent:
                raise UserError(
                    f"{task.path}: the metric '{name}' is for tasks with an option '{absent[0]}': take it out"
                )
            if metric.key and (task.card.choice is None or task.card.choice.key is None):
                raise UserError(f"{task.path}: the metric '{name}' needs to know the right answer: give the card a key")


def check_rows(
    tasks: Sequence[Task],
    corpus: Corpus,
    model: ModelCard,
    checked: Sequence[CheckedClip],
    bad: Mapping[str, BadAudio],
    skip: bool,
    progress: Progress,
    *,
    sound: bool = True,
) -> tuple[list[CheckedClip], dict[str, BadAudio]]:
    """The clips that every task can ask about, and the others with the reason.

    bad: clips that were left out before, with the reason. sound: False where clips are not played. Raises UserError,
    naming rows, where some cannot be asked and may not be skipped, and where none can.
    """
    faults: dict[str, BadAudio] = {}
    kept = list(checked)
    limit = model.max_seconds if model.long_clips == "refuse" and sound else None
    for task in tasks:
        kept, found = kind_of(task.card).check_rows(task, corpus, kept, progress, sound=sound)
        faults |= found
        if limit is not None:
            faults |= {one.clip.id: _too_long(one, model.model, limit) for one in kept if one.seconds > limit}
            kept = [one for one in kept if one.clip.id not in faults]
    if faults and (not skip or not kept):
        lines = [f"  {clip}: {fault.reason}" for clip, fault in list(faults.items())[:SHOWN]]
        more = [f"  and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        told = [f"corpus '{corpus.name}': {len(faults)} rows cannot be asked:", *lines, *more]
        raise UserError("\n".join([*told, "Mend them, or leave them out with --skip-bad-clips"]))
    return kept, {**bad, **faults}


def _too_long(one: CheckedClip, model: str, limit: float) -> BadAudio:
    words = f"{one.seconds:.1f} s long with its options, and the model '{model}' takes {limit:g} s"
    return BadAudio(Fault.TOO_LONG, words)
