"""The simulated engine: measures the voice in a clip, draws values for each attribute, and writes prose around them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from pydantic import Field, NonNegativeFloat

from vibe_harness.backends.protocol import Options
from vibe_harness.backends.request_audio import pieces_of
from vibe_harness.backends.simulated.answers import Choices, choices_of
from vibe_harness.backends.simulated.choosing import choose, letter_answer
from vibe_harness.backends.simulated.hearing import VoiceFeatures, hear_once
from vibe_harness.backends.simulated.prose import answer, refusal
from vibe_harness.backends.simulated.seeded_choice import Chance
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError
from vibe_harness.records import Outcome, Request, Response, Waveform

VERSION = 2
BREAKAGES = ("unlabelled", "unclear", "cut")
REMEMBERED = 1_024  # cached shares, by voice features


class Arguments(Options):
    strength: float = Field(0.7, ge=0, le=1, description="how far a voice shifts the values")
    refusal_rate: float = Field(0.02, ge=0, le=1, description="share of refused requests")
    refusal_shift: float = Field(
        0.0, ge=-1, le=1, description="refusal rate of the highest voice minus that of the lowest"
    )
    breakage_rate: float = Field(0.02, ge=0, le=1, description="share of answers that break the format")
    options: dict[str, NonNegativeFloat] = Field(
        {}, description="choice tasks: option -> weight, by default 0; equal weights if none is given"
    )
    knows: float = Field(0.0, ge=0, le=1, description="choice tasks: share of right answers that are known")

    def refusal_chance(self, heard: VoiceFeatures) -> float:
        """Probability that a request with this voice is refused."""
        return min(max(self.refusal_rate + self.refusal_shift * (heard.pitch - 0.5), 0.0), 1.0)


class Connection(Options):
    """The simulated engine has no connection options."""


class SimulatedEngine:
    """Answers from the waveform alone. The same request gives the same answer on any machine and in any order.

    Everything random comes from a generator seeded by a digest of the request's seed and id.
    """

    Arguments = Arguments
    Connection = Connection

    several_clips = True

    def __init__(self, card: ModelCard, tasks: Sequence[Task]) -> None:
        self._card = card
        self._arguments = Arguments.model_validate(card.args)
        self._choices = {task.name: choices_of(task) for task in tasks}
        self._labels = {task.name: _labels(task) for task in tasks}
        self._shares = lru_cache(maxsize=REMEMBERED)(self._shares_heard)

    def describe(self) -> Mapping[str, str]:
        return {"engine": "simulated (not a real model)", "version": str(VERSION)}

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for request in requests:
            yield self._respond(request)

    def close(self) -> None:
        return

    def _respond(self, request: Request) -> Response:
        if request.audio is None:
            raise UserError("the simulated model only answers requests with a clip: name another --extractor")
        heard = hear_once(_whole(pieces_of(request, self._card)))
        chance = Chance(hashlib.sha256(f"{request.generation.seed} {request.id}".encode()).digest())
        if chance.happens(self._arguments.refusal_chance(heard)):
            return _response(request, Outcome.OK, refusal(chance), "stop")
        if request.options:
            letter = choose(request.options, self._arguments.options, self._arguments.knows, chance)
            broken = chance.happens(self._arguments.breakage_rate)
            return _response(request, Outcome.OK, letter_answer(None if broken else letter, chance), "stop")
        lists = [
            draw(choices, shares, chance)
            for choices, shares in zip(
                self._choices[request.task].values(), self._shares(request.task, heard), strict=True
            )
        ]
        return self._write(request, lists, chance)

    def _write(self, request: Request, lists: list[list[str]], chance: Chance) -> Response:
        """The answer with these values, sometimes with a broken format; see `truth.survival`."""
        lines: list[tuple[str | None, list[str]]] = list(zip(self._labels[request.task], lists, strict=True))
        breakage = chance.one_of(BREAKAGES) if chance.happens(self._arguments.breakage_rate) else None
        place = chance.below(len(lines))
        label, values = lines[place]
        if breakage == "unlabelled":
            lines[place] = (None, values)
        elif breakage == "unclear":
            lines[place] = (label, ["unclear"])
        text, ends = answer(lines, chance)
        if breakage == "cut":
            return _response(request, Outcome.TRUNCATED, text[: ends[place]], "length")
        return _response(request, Outcome.OK, text, "stop")

    def _shares_heard(self, task: str, heard: VoiceFeatures) -> list[list[float]]:
        return [choices.shares(heard, self._arguments.strength).tolist() for choices in self._choices[task].values()]


def draw(choices: Choices, shares: Sequence[float], chance: Chance) -> list[str]:
    """Draw the values of one answer, without replacement."""
    left = list(shares)
    found = []
    for _ in range(choices.draws):
        place = chance.weighted(left)
        found.append(choices.values[place])
        left[place] = 0.0
    return found


def _whole(pieces: Sequence[Waveform]) -> Waveform:
    """Pieces joined to one clip."""
    return pieces[0] if len(pieces) == 1 else Waveform(np.concatenate([p.samples for p in pieces]), pieces[0].rate)


def _labels(task: Task) -> list[str]:
    attributes = task.card.extraction.attributes
    return [spec.label or name.replace("_", " ").capitalize() for name, spec in attributes.items()]


def _response(request: Request, outcome: Outcome, text: str, finish: str) -> Response:
    return Response(
        request.id, outcome, text, finish, output_tokens=len(text.split()), served_model=f"simulated-{VERSION}"
    )
