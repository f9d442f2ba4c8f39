"""Does the model hear? Asked before a run, in a prompt of its own: what was said, in some clips and in silence.

A model that cannot write down what it hears has a question of its own on its card: which of some words was said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from vibe_harness.backends.protocol import Backend
from vibe_harness.cards.digest import digest
from vibe_harness.cards.schema import ModelCard
from vibe_harness.cards.spelling import fold
from vibe_harness.errors import EngineError
from vibe_harness.records import Generation, Outcome, Request, Waveform

PROMPT = "Write down the words that are spoken in this recording, and nothing else."
MAX_TOKENS = 32
SILENCE = "silence"


@dataclass(frozen=True)
class HearingAnswers:
    """What the model wrote for each clip, by clip id, and for silence; for the run's record."""

    answers: dict[str, str]


def check_hearing(
    backend: Backend, card: ModelCard, clips: Sequence[tuple[str, Callable[[], Waveform]]]
) -> HearingAnswers:
    """Ask what was said in each of `clips` (id, decoder), which should differ in their words, and in silence.

    At least two clips; three are plenty. Raises EngineError where all answers are the same: the model does not hear,
    or its clips get lost on the way to it. Raises EngineError too where it writes nothing, where a call fails, and
    where an answer to the card's own question is none of those that it allows.
    """
    if len(clips) < 2:
        raise ValueError("the hearing check needs two clips")

    heard: list[tuple[str, Callable[[], Waveform]]] = [*clips, (SILENCE, partial(_silence, clips[0][1]))]
    asked = {digest(["hearing", name, position]): (name, audio) for position, (name, audio) in enumerate(heard)}
    question = card.hearing_check
    prompt = question.prompt if question else PROMPT
    answers: dict[str, str] = {}
    for response in backend.generate(
        Request(key, "hearing", "check", name, prompt, Generation(MAX_TOKENS), audio)
        for key, (name, audio) in asked.items()
    ):
        if response.outcome is Outcome.ERROR:
            raise EngineError(f"the hearing check of '{card.model}' failed: {response.error}")
        answers[asked[response.request][0]] = response.text
    if len({" ".join(text.split()).casefold() for text in answers.values()}) == 1:
        said = next(iter(answers.values())).strip()[:80]
        if not said:
            raise EngineError(
                f"'{card.model}' wrote nothing in {MAX_TOKENS} tokens, for {len(clips)} clips as for silence: whether "
                "it hears is not known. If it thinks before it writes, switch that off in its card; "
                "--no-hearing-check runs it all the same"
            )
        raise EngineError(
            f"'{card.model}' does not hear: asked what was said, it wrote the same ({said!r}) for {len(clips)} clips "
            "and for silence. Check its card and its server; --no-hearing-check runs it all the same"
        )
    if question:
        _check_allowed(card, question.answers, answers)
    return HearingAnswers(answers)


def _check_allowed(card: ModelCard, allowed: Sequence[str], answers: dict[str, str]) -> None:
    known = {fold(answer) for answer in allowed}
    for name, text in answers.items():
        if fold(text) not in known:
            raise EngineError(
                f"the hearing check of '{card.model}': to the question on its card it answered {text.strip()[:80]!r} "
                f"({name}), which is none of: {', '.join(allowed)}. --no-hearing-check runs it all the same"
            )


def _silence(clip: Callable[[], Waveform]) -> Waveform:
    """As long as the clip."""
    heard = clip()
    return Waveform(np.zeros_like(heard.samples), heard.rate)
