"""The simulated engine: hears the clip, draws values for each attribute, writes them into prose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from pydantic import Field

from vibe_harness.backends.protocol import Options
from vibe_harness.backends.simulated.answers import Choices, choices_of
from vibe_harness.backends.simulated.hearing import Heard, hear_once
from vibe_harness.backends.simulated.prose import REFUSALS, answer, sentence
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError
from vibe_harness.records import Outcome, Request, Response

VERSION = 1
BREAKAGES = ("dropped", "unclear", "cut")


class Arguments(Options):
    strength: float = Field(0.7, ge=0, le=1, description="how far a voice shifts the choice of words")
    refusal_rate: float = Field(0.02, ge=0, le=1, description="share of refused requests")
    refusal_shift: float = Field(0.0, ge=-1, le=1, description="added to the rate for a high voice, less it for a low")
    breakage_rate: float = Field(0.02, ge=0, le=1, description="share of answers that break the format")


class Connection(Options):
    """There is nothing to connect to."""


class SimulatedEngine:
    """Answers from the waveform alone. The same request gives the same answer on any machine and in any order."""

    Arguments = Arguments
    Connection = Connection

    def __init__(self, card: ModelCard, tasks: Sequence[Task]) -> None:
        self.arguments = Arguments.model_validate(card.args)
        self._tasks = {task.name: task for task in tasks}
        self._choices: dict[str, dict[str, Choices]] = {task.name: choices_of(task) for task in tasks}

    def describe(self) -> Mapping[str, str]:
        return {"engine": "simulated (not a real model)", "version": str(VERSION)}

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for request in requests:
            yield self._respond(request)

    def close(self) -> None:
        return

    def _respond(self, request: Request) -> Response:
        if request.audio is None or request.task not in self._tasks:
            raise UserError("the simulated model answers tasks that come with a clip: it is no extractor")
        heard = hear_once(request.audio())
        rng = np.random.default_rng([request.generation.seed, int(request.id[:16], 16)])
        refusal = self.arguments.refusal_rate + self.arguments.refusal_shift * (2 * heard.pitch - 1) / 2
        if rng.random() < refusal:
            text = f"{sentence(REFUSALS, rng)}"
            return _response(request, Outcome.OK, text, "stop")
        return self._write(request, heard, rng)

    def _write(self, request: Request, heard: Heard, rng: np.random.Generator) -> Response:
        attributes = self._tasks[request.task].card.extraction.attributes
        lines = []
        for name, choices in self._choices[request.task].items():
            label = attributes[name].label or name.replace("_", " ").capitalize()
            lines.append((label, ", ".join(draw(choices, heard, self.arguments.strength, rng))))
        breakage = None
        if rng.random() < self.arguments.breakage_rate:
            breakage = BREAKAGES[rng.integers(len(BREAKAGES))]
        place = int(rng.integers(len(lines)))
        if breakage == "dropped":
            del lines[place]
        elif breakage == "unclear":
            lines[place] = (lines[place][0], "unclear")
        text, ends = answer(lines, rng)
        if breakage == "cut":
            return _response(request, Outcome.TRUNCATED, text[: ends[place]], "length")
        return _response(request, Outcome.OK, text, "stop")


def draw(choices: Choices, heard: Heard, strength: float, rng: np.random.Generator) -> list[str]:
    """Draw the values that one answer names, one after the other without putting back."""
    left = choices.shares(heard, strength).copy()
    found = []
    for _ in range(choices.draws):
        edges = np.cumsum(left)
        place = int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))
        place = min(place, len(left) - 1)
        found.append(choices.values[place])
        left[place] = 0.0
    return found


def _response(request: Request, outcome: Outcome, text: str, finish: str) -> Response:
    return Response(
        request.id, outcome, text, finish, output_tokens=len(text.split()), served_model=f"simulated-{VERSION}"
    )
