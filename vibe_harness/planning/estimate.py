"""Estimate a run before it starts: requests, audio, tokens and cost."""

from __future__ import annotations

from dataclasses import dataclass

from vibe_harness.cards.schema import ModelCard
from vibe_harness.kinds.base import kind_of
from vibe_harness.modality import TRANSCRIBE, TRANSCRIPTION_TOKENS
from vibe_harness.planning.plan import Plan
from vibe_harness.store.request_ids import RequestSet

LETTERS_A_TOKEN = 4  # typical for English
SPOKEN_TOKENS_A_SECOND = 4  # 150 words a minute are 2.5 words, or some 3.5 tokens a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The requests to one model and their size."""

    requests: int
    audio_seconds: float  # over all requests
    text_tokens: int  # of the prompts, approximately
    audio_tokens: int | None  # None if the card does not give audio_tokens_per_second
    most_output_tokens: int
    most_cost: float | None  # None without prices, or without audio_tokens
    currency: str | None


def estimate_model(plan: Plan, done: RequestSet | frozenset[str]) -> Estimate:
    """Estimate the requests to the model of a plan, without those in `done`."""
    longest = plan.model.max_seconds if plan.model.long_clips == "truncate" else None
    clips = {
        checked.clip.id: checked.seconds if longest is None else min(checked.seconds, longest) for checked in plan.clips
    }  # as they are sent
    requests, letters, output, seconds, words = 0, 0, 0, 0.0, 0.0
    for request in plan.requests():
        if request.id in done:
            continue
        requests += 1
        letters += len(request.prompt)
        output += request.generation.max_tokens
        if plan.modality == "audio":
            seconds += clips[request.clip]
        elif plan.modality == "cascade":
            words += clips[request.clip] * SPOKEN_TOKENS_A_SECOND
    if plan.modality == "cascade" and requests:  # each clip is transcribed first
        requests += len(clips)
        letters += len(clips) * len(TRANSCRIBE)
        output += len(clips) * TRANSCRIPTION_TOKENS
        seconds = sum(clips.values())
    return _estimate(plan.model, requests, letters // LETTERS_A_TOKEN + round(words), output, seconds)


def estimate_extractor(plan: Plan, card: ModelCard | None) -> Estimate | None:
    """Upper estimate of the requests to an extractor model; None if the extractor is not a model."""
    if card is None:
        return None
    requests, text, output = 0, 0, 0
    for task in plan.tasks:
        kind = kind_of(task.card)
        count = len(plan.variants[task.name]) * sum(kind.count(task, checked.clip) for checked in plan.clips)
        form = len(task.extraction_prompt("")) // LETTERS_A_TOKEN
        requests += count
        text += count * (form + task.card.generation.max_tokens)
        output += count * task.card.extraction.max_tokens
    return _estimate(card, requests, text, output, 0.0)


def _estimate(card: ModelCard, requests: int, text: int, output: int, seconds: float) -> Estimate:
    rate, prices = card.audio_tokens_per_second, card.prices
    audio = 0 if not seconds else None if rate is None else round(seconds * rate)
    cost = None
    if prices is not None and audio is not None:
        audio_price = prices.input if prices.audio is None else prices.audio
        cost = (text * prices.input + audio * audio_price + output * prices.output) / 1e6
    return Estimate(
        requests=requests,
        audio_seconds=seconds,
        text_tokens=text,
        audio_tokens=audio,
        most_output_tokens=output,
        most_cost=cost,
        currency=prices.currency if prices else None,
    )
