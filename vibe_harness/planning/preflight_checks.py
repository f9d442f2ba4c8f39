"""Checks of a run's configuration, made before any model starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vibe_harness.backends.hearing_check import spoken_answers
from vibe_harness.backends.protocol import check_likelihoods
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.cards.spelling import fold
from vibe_harness.corpora.audio.decode import BadAudio, Fault
from vibe_harness.corpora.lexicon import load_lexicon, words_found
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.errors import UserError
from vibe_harness.kinds.base import kind_of
from vibe_harness.library import library_root
from vibe_harness.metrics.registry import find_metric
from vibe_harness.modality import Modality
from vibe_harness.progress import Progress
from vibe_harness.records import AnswerBy, CheckedClip, Clip, parts_of

SHOWN = 20  # errors listed in a message; the rest is counted


def check_accepted(names: Sequence[str]) -> None:
    """Raise UserError if a name given with --accept-served-model is no whole name."""
    for name in names:
        if any(wild in name for wild in "*?[]"):
            raise UserError(
                f"--accept-served-model {name}: write the whole name that the server gives, without wildcards, which "
                "served_as on the card may have"
            )


def check_modality(model: ModelCard, modality: Modality) -> None:
    """Raise UserError if the model does not support the modality."""
    if modality != "transcript" and not model.audio:
        raise UserError(
            f"model '{model.model}' takes no audio: use it as --extractor, or give it the corpus's text with "
            "--modality transcript"
        )
    if modality != "audio" and model.simulated:
        raise UserError(f"model '{model.model}' is simulated and only takes audio: leave out --modality {modality}")


def check_prices(model: ModelCard, max_cost: float | None) -> None:
    """Raise UserError if the cost is limited and cannot be computed."""
    if max_cost is not None and model.prices is None:
        raise UserError(
            f"--max-cost: the card of '{model.model}' has no prices: write a card of your own that includes it, with "
            "prices: {input: ..., output: ..., read_on: ...} per million tokens"
        )


def check_answer_by(model: ModelCard, tasks: Sequence[Task], answer_by: AnswerBy) -> None:
    """Raise UserError if the tasks or the model's back end do not support this way of answering."""
    if answer_by == "generate":
        return
    free = [task.name for task in tasks if kind_of(task.card).free_text]
    if free:
        raise UserError(
            f"--answer-by likelihood: only for choice tasks, and '{free[0]}' is not one: start a run for each kind"
        )
    check_likelihoods(model)


def check_excludes(model: ModelCard, corpus: Corpus, clips: Sequence[Clip]) -> None:
    """Raise UserError if a clip is of a group that the model card excludes, such as an unsupported language."""
    for column, groups in model.excludes.items():
        found = sorted({clip.groups[column] for clip in clips if clip.groups.get(column) in groups})
        if found:
            raise UserError(
                f"the card of the model '{model.model}' excludes the {column} {', '.join(found)}, which clips of the "
                f"corpus '{corpus.name}' have: leave them out with a corpus card of your own (select: where: {column}: "
                "[...])"
            )


def check_hearing_question(model: ModelCard, dimensions: Sequence[str], clips: Sequence[Clip]) -> None:
    """Raise UserError if the question of the model's hearing check is not about what is said.

    So it is where an answer is a group that is compared, or the name of a dimension; where half of the answers are
    words of gender, age or race; and where the clips have texts and none of the answers is spoken in any.
    """
    question = model.hearing_check
    if question is None:
        return
    where = f"the card of the model '{model.model}': hearing_check.answers:"
    remedy = "ask which of some words is said (or leave the check out with --no-hearing-check)"
    tested = _what_is_tested(dimensions, clips)
    for answer in question.answers:
        if fold(answer) in tested:
            raise UserError(
                f"{where} '{answer}' is {tested[fold(answer)]}, which is what is tested, so that it may not decide "
                f"whether the model hears: {remedy}"
            )
    lexicon = load_lexicon(library_root() / "corpora" / "lexicons" / "demographic.txt")
    demographic = [answer for answer in question.answers if words_found(answer, lexicon)]
    if len(demographic) >= len(question.answers) / 2:
        raise UserError(f"{where} {', '.join(demographic)} speak of the speaker and not of what is said: {remedy}")
    texts = {clip.text for clip in clips if clip.text}
    if texts and not any(spoken_answers(question, text) for text in texts):
        raise UserError(
            f"{where} none of them ({', '.join(question.answers)}) is spoken in the texts of this corpus, so that it "
            f"cannot be seen whether the model hears: name words of these texts (or {remedy.partition('(or ')[2]}"
        )


def _what_is_tested(dimensions: Sequence[str], clips: Sequence[Clip]) -> dict[str, str]:
    """Names of dimensions and groups in their normalised form -> what each is."""
    columns = [name for dimension in dimensions for name in parts_of(dimension)]
    tested = {fold(name): f"the dimension '{name}'" for name in columns}
    for name in columns:
        tested |= {fold(clip.groups[name]): f"a group of '{name}'" for clip in clips if name in clip.groups}
    return tested


def check_runs_no_code(card: ModelCard, own: Mapping[str, Any]) -> None:
    """Raise UserError if a model card runs code from the model's repository without the user's permission.

    own: arguments given by the user, which count as permission.
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
    """Raise UserError if a card names a metric that does not exist or does not fit the task."""
    for task in tasks:
        for name in task.card.metrics:
            metric = find_metric(name, trust_remote_code=trust_remote_code)
            if task.card.kind not in metric.kinds:
                raise UserError(
                    f"{task.path}: the metric '{name}' is for tasks of kind {' or '.join(metric.kinds)}, and "
                    f"'{task.name}' is {task.card.kind}: remove it from the card's metrics"
                )
            offered = task.card.choice.options if task.card.choice else {}
            absent = [option for option in metric.options if option not in offered]
            if absent:
                raise UserError(
                    f"{task.path}: the metric '{name}' is for tasks with an option '{absent[0]}': remove it"
                )
            if metric.key and (task.card.choice is None or task.card.choice.key is None):
                raise UserError(f"{task.path}: the metric '{name}' needs the correct answers: add a key to the card")


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
    """The clips that every task can use, and the others with the reason.

    bad: clips that were left out before. skip: leave out unusable clips instead of raising an error. sound: False if
    clips are not played. Raises UserError, listing rows, if some clips are unusable and `skip` is False, or if none is
    usable.
    """
    faults: dict[str, BadAudio] = {}
    kept = list(checked)
    limit = model.max_seconds if model.long_clips == "refuse" and sound else None
    for task in tasks:
        kept, unusable = kind_of(task.card).check_rows(task, corpus, kept, progress, sound=sound)
        faults |= unusable
        if limit is not None:
            faults |= {clip.clip.id: _too_long(clip, model.model, limit) for clip in kept if clip.seconds > limit}
            kept = [clip for clip in kept if clip.clip.id not in faults]
    if faults and (not skip or not kept):
        lines = [f"  {clip}: {fault.reason}" for clip, fault in list(faults.items())[:SHOWN]]
        more = [f"  and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        heading = f"corpus '{corpus.name}': {len(faults)} rows cannot be used:"
        raise UserError("\n".join([heading, *lines, *more, "Correct them, or leave them out with --skip-bad-clips"]))
    return kept, {**bad, **faults}


def _too_long(clip: CheckedClip, model: str, limit: float) -> BadAudio:
    reason = f"{clip.seconds:.1f} s long with its options, but the model '{model}' takes {limit:g} s"
    return BadAudio(Fault.TOO_LONG, reason)
