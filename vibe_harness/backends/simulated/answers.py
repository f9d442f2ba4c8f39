"""The values that the simulated model may name for each attribute, and their probabilities given the voice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, ValidationError

from vibe_harness.backends.simulated.hearing import VoiceFeatures
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import Attribute, Card, Lax
from vibe_harness.cards.yaml_file import read_yaml
from vibe_harness.errors import UserError

Floats = NDArray[np.float64]
ANSWERS = Path(__file__).with_name("answers.yaml")
OPEN_WORDS = (
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heath",
    "island",
    "juniper",
    "lagoon",
    "meadow",
)


class _AttributeCard(Card):
    """moved_by: the feature. draws: values per answer. values: value -> weights (base, low, high), above 0."""

    moved_by: Literal["pitch", "timbre"]
    draws: int = Field(1, ge=1, le=3)
    values: dict[str, Annotated[tuple[PositiveFloat, PositiveFloat, PositiveFloat], Lax]]


@dataclass(frozen=True, eq=False)
class Choices:
    """One attribute: its values, and their shares at strength 0 (base) and at strength 1 for a low and a high voice.

    draws: number of different values in one answer, drawn without replacement.
    """

    moved_by: str
    values: tuple[str, ...]
    base: Floats  # (V,); each of the three sums to 1
    low: Floats
    high: Floats
    draws: int

    def shares(self, heard: VoiceFeatures, strength: float) -> Floats:
        """Probability (V,) of each value in the first draw: (1 - s) base + s ((1 - h) low + h high)."""
        h = heard.pitch if self.moved_by == "pitch" else heard.timbre
        mixed: Floats = (1 - strength) * self.base + strength * ((1 - h) * self.low + h * self.high)
        return mixed

    def expected(self, heard: VoiceFeatures, strength: float) -> Floats:
        """Expected number (V,) of times each value is named in one answer; sums to `draws`."""
        return inclusion(self.shares(heard, strength), self.draws)


def inclusion(shares: Floats, draws: int) -> Floats:
    """Probability (V,) that each value is among `draws` drawn without replacement, by enumeration."""
    if draws == 1:
        return shares
    orders = _orders(len(shares), draws)
    left = np.ones(len(orders))
    chance = np.ones(len(orders))
    for place in range(draws):
        drawn = shares[orders[:, place]]
        chance *= drawn / left
        left -= drawn
    counts = np.zeros(len(shares))
    for place in range(draws):
        np.add.at(counts, orders[:, place], chance)
    return counts


@lru_cache(maxsize=16)
def _orders(values: int, draws: int) -> NDArray[np.int64]:
    return np.array(list(permutations(range(values), draws)), dtype=np.int64)


def choices_of(task: Task) -> dict[str, Choices]:
    """The choices of each attribute of a task, from answers.yaml or, if that has none, made up from the card.

    answers.yaml applies to a card with the same task and attribute whose values are open or the same.
    """
    written = _answers().get(task.name, {})
    found = {}
    for name, spec in task.card.extraction.attributes.items():
        choices = written.get(name)
        if choices is None or (spec.values != "open" and set(spec.values) != set(choices.values)):
            choices = _made_up(spec)
        found[name] = replace(choices, draws=min(choices.draws, spec.up_to))
    return found


def _made_up(attribute: Attribute) -> Choices:
    """Equal shares at strength 0; the first values are more likely for a low voice, the last for a high one."""
    values = OPEN_WORDS if attribute.values == "open" else tuple(attribute.values)
    rising = np.arange(1.0, len(values) + 1)
    rising /= rising.sum()
    base = np.full(len(values), 1 / len(values))
    return Choices("pitch", values, base, rising[::-1], rising, draws=min(3, len(values)))


@lru_cache(maxsize=1)
def _answers() -> Mapping[str, Mapping[str, Choices]]:
    tasks = {}
    for task, attributes in read_yaml(ANSWERS).data.items():
        try:
            cards = {name: _AttributeCard.model_validate(data) for name, data in attributes.items()}
        except ValidationError as error:
            raise UserError(f"{ANSWERS}: {task}: {error}") from None
        tasks[task] = {name: _choices(card) for name, card in cards.items()}
    return tasks


def _choices(card: _AttributeCard) -> Choices:
    weights = np.array(list(card.values.values()))
    base, low, high = (weights / weights.sum(axis=0)).T
    return Choices(card.moved_by, tuple(card.values), base, low, high, card.draws)
