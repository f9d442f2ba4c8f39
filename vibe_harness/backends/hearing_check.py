"""Does the model hear? Asked before a run, in a prompt of its own: what is said, in some clips and in silence.

What it writes is compared with the corpus's texts where there are any. A model that cannot write down what it hears has
a question of its own on its card: which of some words is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from vibe_harness.backends.protocol import Backend
from vibe_harness.backends.word_errors import error_rate, words_of
from vibe_harness.cards.digest import digest
from vibe_harness.cards.schema import HearingQuestion, ModelCard
from vibe_harness.cards.spelling import fold
from vibe_harness.errors import EngineError
from vibe_harness.heard_nothing import says_nothing_was_heard
from vibe_harness.records import Generation, Outcome, Request, Waveform
from vibe_harness.stats.adjust import ALPHA
from vibe_harness.stats.rng import random_words
from vibe_harness.thoughts import split_thought

PROMPT = "Write down the words that are spoken in this recording, and nothing else."
MAX_TOKENS = 64
SILENCE = "silence"
CLIPS = 4  # that are to be written down
QUESTION_CLIPS = 16  # that a question of a card is asked of: one of two words is guessed right half of the time

# Half of the words. A model that hears nothing would have to write down a sentence of the corpus, and even then: of
# pairs of sentences of CREMA-D, Spoken StereoSet and the demo corpus, one written in the other's place, 99 in 100 have
# a rate of 0.5 and more (median 0.8 to 1). RAVDESS's two differ in two words of six (0.33), so a transcription must be
# nearest to its own text as well. BiasInEar (section 2.2) counts clips apart that recognisers transcribe with over 0.6.
MOST_ERRORS = 0.5
PERMUTATIONS = 1_999
RUN_ALL_THE_SAME = "--no-hearing-check runs it all the same"


@dataclass(frozen=True)
class HearingClip:
    """A clip that the model is asked about."""

    id: str
    audio: Callable[[], Waveform]
    text: str | None = None  # what is said
    sentence: str | None = None  # clips of one sentence have the same words; None where it is not known
    cut: bool = False  # longer than the model takes: only its beginning is compared


@dataclass(frozen=True)
class HearingAnswers:
    """What showed that a model hears, for the run's record; see `store.results.HearingResult`."""

    answers: dict[str, str]  # clip id, or silence -> what the model wrote
    by: Literal["transcripts", "question", "other clips", "silence"]
    clips: int
    right: int
    error_rate: float | None = None


@dataclass(frozen=True)
class _Answer:
    clip: HearingClip
    text: str
    truncated: bool
    words: Sequence[str]


def check_hearing(backend: Backend, card: ModelCard, clips: Sequence[HearingClip]) -> HearingAnswers:
    """Ask what is said in each of `clips`, and in silence; at least two clips.

    Where clips have texts, half of the clips, and two different texts where there are two, have to be written down with
    a word error rate of at most MOST_ERRORS, each nearest to its own text, and silence must not be written down as one
    of them. To the question of a card, answers have to be right more often than by chance. Where texts are not known,
    answers to different sentences have to differ from each other and from that to silence, and more than half may not
    say that there is nothing to hear.

    Raises EngineError where the model does not pass: it does not hear, or its clips get lost on the way to it; where it
    writes nothing, where a call fails, and where an answer to the card's question is none of those that it allows.
    """
    if len(clips) < 2:
        raise ValueError("the hearing check needs two clips")
    silence = HearingClip(SILENCE, partial(_silence, clips[0].audio))
    question = card.hearing_check
    answers = _ask(backend, card, [*clips, silence], question.prompt if question else PROMPT)
    _check_not_all_alike(card, answers)
    *heard, unheard = answers
    if question:
        _check_allowed(card, question.answers, answers)
    if question and any(answer.clip.text for answer in heard):
        return _by_question(card, question, heard, unheard)
    if not question and all(answer.clip.text for answer in heard):
        return _by_transcripts(card, heard, unheard)
    return _by_other_clips(card, heard, unheard)


def _ask(backend: Backend, card: ModelCard, clips: Sequence[HearingClip], prompt: str) -> list[_Answer]:
    asked = {digest(["hearing", clip.id, position]): clip for position, clip in enumerate(clips)}
    found: dict[str, _Answer] = {}
    for response in backend.generate(
        Request(key, "hearing", "check", clip.id, prompt, Generation(MAX_TOKENS), clip.audio)
        for key, clip in asked.items()
    ):
        if response.outcome is Outcome.ERROR:
            raise EngineError(f"the hearing check of '{card.model}' failed: {response.error}")
        clip, (text, _) = asked[response.request], split_thought(response.text)
        found[response.request] = _Answer(clip, text, response.outcome is Outcome.TRUNCATED, words_of(text))
    return [found[key] for key in asked]


def _check_not_all_alike(card: ModelCard, answers: Sequence[_Answer]) -> None:
    if len({" ".join(answer.text.split()).casefold() for answer in answers}) > 1:
        return
    said, clips = answers[0].text.strip()[:80], len(answers) - 1
    if not said:
        raise EngineError(
            f"'{card.model}' wrote nothing in {MAX_TOKENS} tokens, for {clips} clips as for silence: whether it hears "
            f"is not known. If it thinks before it writes, switch that off in its card; {RUN_ALL_THE_SAME}"
        )
    raise EngineError(
        f"'{card.model}' does not hear: asked what was said, it wrote the same ({said!r}) for {clips} clips and for "
        f"silence. Check its card and its server; {RUN_ALL_THE_SAME}"
    )


def _check_allowed(card: ModelCard, allowed: Sequence[str], answers: Sequence[_Answer]) -> None:
    known = {fold(answer) for answer in allowed}
    for answer in answers:
        if fold(answer.text) not in known:
            raise EngineError(
                f"the hearing check of '{card.model}': to the question on its card it answered "
                f"{answer.text.strip()[:80]!r} ({answer.clip.id}), which is none of: {', '.join(allowed)}. "
                f"{RUN_ALL_THE_SAME}"
            )


def _by_transcripts(card: ModelCard, heard: Sequence[_Answer], unheard: _Answer) -> HearingAnswers:
    said = [tuple(words_of(answer.clip.text or "")) for answer in heard]
    errors = [_errors(answer, text) for answer, text in zip(heard, said, strict=True)]
    texts = set(said)
    right = [
        text
        for answer, text, error in zip(heard, said, errors, strict=True)
        if error <= min(MOST_ERRORS, *(_errors(answer, other) for other in texts))
    ]
    if len(right) < len(heard) / 2 or len(set(right)) < min(2, len(texts)):
        raise EngineError(_wrong_words(card, heard, errors, len(right)))
    if any(_errors(unheard, text) <= MOST_ERRORS for text in texts):
        raise EngineError(
            f"'{card.model}' writes down what is said in a clip for silence too ({unheard.text.strip()[:80]!r}): it "
            f"has the words from elsewhere. Check its prompt; {RUN_ALL_THE_SAME}"
        )
    return HearingAnswers(
        _texts([*heard, unheard]), "transcripts", len(heard), len(right), round(float(np.mean(errors)), 4)
    )


def _wrong_words(card: ModelCard, heard: Sequence[_Answer], errors: Sequence[float], right: int) -> str:
    worst = heard[max(range(len(heard)), key=errors.__getitem__)]
    return (
        f"'{card.model}' does not hear, or cannot write down what it hears: it wrote down {right} of {len(heard)} "
        f"clips (word error rates {', '.join(f'{error:.2f}' for error in errors)}; at most {MOST_ERRORS} is right); "
        f"for {worst.clip.id} {worst.text.strip()[:80]!r}, where {(worst.clip.text or '')[:80]!r} is said. A model "
        f"that hears and cannot transcribe names a question on its card (hearing_check); {RUN_ALL_THE_SAME}"
    )


def _errors(answer: _Answer, text: Sequence[str]) -> float:
    """The error rate of an answer; against the beginning of the text where one of the two was cut."""
    if answer.truncated or answer.clip.cut:
        text = text[: max(1, len(answer.words))]
    return error_rate(text, answer.words) if text else 1.0


def _by_question(
    card: ModelCard, question: HearingQuestion, heard: Sequence[_Answer], unheard: _Answer
) -> HearingAnswers:
    """Whether answers are right more often than if they were dealt out to the clips at random."""
    spoken = [spoken_answers(question, answer.clip.text) for answer in heard]
    said = [fold(answer.text) for answer in heard]
    right = np.array([[answer in words for answer in said] for words in spoken])
    count = int(right.trace())
    if len({frozenset(words) for words in spoken}) == 1:  # one word throughout: silence alone is otherwise
        passed = count > len(heard) / 2 and fold(unheard.text) not in spoken[0]
    else:
        drawn = random_words(0)(PERMUTATIONS * len(heard)).reshape(PERMUTATIONS, len(heard)).argsort(axis=1)
        chance = right[np.arange(len(heard)), drawn].sum(axis=1)
        p_value = (int((chance >= count).sum()) + 1) / (PERMUTATIONS + 1)
        passed = p_value <= ALPHA or count == len(heard)
    if not passed:
        raise EngineError(
            f"'{card.model}' does not hear: of the words that the question on its card asks for it named the right one "
            f"for {count} of {len(heard)} clips, which is no more than chance. Check its card and its server; "
            f"{RUN_ALL_THE_SAME}"
        )
    return HearingAnswers(_texts([*heard, unheard]), "question", len(heard), count)


def spoken_answers(question: HearingQuestion, text: str | None) -> set[str]:
    """The answers of a question, in their normalised form, whose words are spoken in a text."""
    words = " ".join(["", *words_of(text or ""), ""])
    return {fold(answer) for answer in question.answers if " ".join(["", *words_of(answer), ""]) in words}


def _by_other_clips(card: ModelCard, heard: Sequence[_Answer], unheard: _Answer) -> HearingAnswers:
    silent = " ".join(unheard.words)
    told = {answer.clip.id: " ".join(answer.words) for answer in heard}
    nothing = [a for a in heard if told[a.clip.id] == silent or (not card.hearing_check and _says_nothing(a))]
    if len(nothing) > len(heard) / 2:
        raise EngineError(
            f"'{card.model}' does not hear: for {len(nothing)} of {len(heard)} clips it says that it hears nothing, or "
            f"writes what it writes for silence ({nothing[0].text.strip()[:80]!r}). Check its card and its server; "
            f"{RUN_ALL_THE_SAME}"
        )
    sentences = {answer.clip.sentence for answer in heard}
    one_sentence = len(sentences) == 1 and None not in sentences
    different = len(set(told.values()))
    if not one_sentence and different < max(2, len(sentences) // 2 + 1):
        commonest = Counter(answer.text for answer in heard).most_common(1)[0][0].strip()[:80]
        known = "" if None not in sentences else (
            ". Where all clips say the same, tell so in a column sentence_id, or what they say in a column text"
        )  # fmt: skip
        raise EngineError(
            f"'{card.model}' does not hear: it wrote the same ({commonest!r}) for different clips{known}. Check its "
            f"card and its server; {RUN_ALL_THE_SAME}"
        )
    by: Literal["other clips", "silence"] = "silence" if one_sentence else "other clips"
    return HearingAnswers(_texts([*heard, unheard]), by, len(heard), len(heard) - len(nothing))


def _says_nothing(answer: _Answer) -> bool:
    return says_nothing_was_heard(answer.text)


def _texts(answers: Sequence[_Answer]) -> dict[str, str]:
    return {answer.clip.id: answer.text for answer in answers}


def _silence(clip: Callable[[], Waveform]) -> Waveform:
    """As long as the clip."""
    heard = clip()
    return Waveform(np.zeros_like(heard.samples), heard.rate)
