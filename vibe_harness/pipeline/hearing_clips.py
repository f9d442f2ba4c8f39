"""Which clips the hearing check asks about: of different sentences, or of different words of the card's question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from vibe_harness.backends.hearing_check import CLIPS, QUESTION_CLIPS, HearingClip, spoken_answers
from vibe_harness.backends.word_errors import words_of
from vibe_harness.cards.digest import digest
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.corpora.sampling import in_turn
from vibe_harness.planning.plan import Plan
from vibe_harness.records import CheckedClip


def hearing_clips(plan: Plan) -> list[HearingClip]:
    """The clips of a plan that its model is asked about.

    They are drawn by the seed: a sentence, or a word of the card's question, then a clip that says it; among clips that
    the model takes whole, and that have a text, where there are such; of different speakers as far as they go.
    """
    question, limit = plan.model.hearing_check, plan.model.max_seconds
    said: dict[str, list[CheckedClip]] = defaultdict(list)
    for clip in sorted(_preferred(plan), key=lambda clip: digest([plan.seed, clip.clip.id])):
        spoken = sorted(spoken_answers(question, clip.clip.text)) if question else []
        said[" ".join(spoken) or _sentence(clip) or clip.clip.id].append(clip)
    order = sorted(said, key=lambda sentence: digest([plan.seed, sentence]))
    drawn = _by_speaker(in_turn([said[sentence] for sentence in order]), QUESTION_CLIPS if question else CLIPS)
    return [
        HearingClip(
            clip.clip.id, partial(read_audio, clip.path, plan.model.sample_rate), clip.clip.text, _sentence(clip),
            cut=limit is not None and clip.seconds > limit,
        )
        for clip in drawn
    ]  # fmt: skip


def _preferred(plan: Plan) -> list[CheckedClip]:
    """The clips that have a text, and a word of the card's question in it, and that the model takes whole; each where
    there are such."""
    question, limit = plan.model.hearing_check, plan.model.max_seconds
    clips = [clip for clip in plan.clips if clip.clip.text]
    if len(clips) < 2:
        clips = list(plan.clips)
    elif question:
        clips = [clip for clip in clips if spoken_answers(question, clip.clip.text)] or clips
    whole = clips if limit is None else [clip for clip in clips if clip.seconds <= limit]
    return whole if len(whole) > 1 else clips


def _sentence(clip: CheckedClip) -> str | None:
    """The same for clips that say the same; None where it is not known what is said."""
    return " ".join(words_of(clip.clip.text)) if clip.clip.text else clip.clip.sentence_id


def _by_speaker(clips: Sequence[CheckedClip], number: int) -> list[CheckedClip]:
    """The first clips of a list whose sentences follow each other in turn.

    A clip gives way to a later one of its sentence while its speaker was drawn before and that one's was not.
    """
    left, drawn = list(clips[: 8 * number]), list[CheckedClip]()
    while left and len(drawn) < number:
        known = {clip.clip.speaker for clip in drawn}
        alike = [clip for clip in left if _sentence(clip) == _sentence(left[0])]
        chosen = next((clip for clip in alike if clip.clip.speaker not in known), left[0])
        at = left.index(chosen)
        left[at] = left[0]
        drawn.append(chosen)
        left.pop(0)
    return drawn
