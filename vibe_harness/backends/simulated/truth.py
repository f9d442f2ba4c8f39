"""The true nTVD of the simulated model on given clips: what a perfect measurement would find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vibe_harness.backends.simulated.answers import Choices, choices_of
from vibe_harness.backends.simulated.engine import BREAKAGES, Arguments
from vibe_harness.backends.simulated.hearing import Heard
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.stats.ntvd import shift


def true_ntvd(card: ModelCard, task: Task, heard: Mapping[str, Sequence[Heard]], tau: int) -> dict[str, float | None]:
    """True nTVD of each attribute, and under "" the mean of those that have one.

    heard: group -> what the model hears in each of its clips, one answer a clip. Values whose expected count over all
    groups is under tau are left out, as the filter does with counts. P_g(v) is the expected number of times v is named
    over the group's clips, made to sum to 1 (VIBE, equations 2 to 5). Refusals and broken answers thin out the counts
    alike for every value; their rates must not depend on the voice (`refusal_shift` 0).
    """
    arguments = Arguments.model_validate(card.args)
    if arguments.refusal_shift:
        raise ValueError("the truth is known for refusals that do not hang on the voice")
    found: dict[str, float | None] = {}
    attributes = choices_of(task)
    for place, (name, choices) in enumerate(attributes.items()):
        kept = (1 - arguments.refusal_rate) * _survival(place, len(attributes), arguments.breakage_rate)
        found[name] = _attribute_truth(choices, heard, arguments.strength, kept, tau)
    defined = [value for value in found.values() if value is not None]
    found[""] = float(np.mean(defined)) if defined else None
    return found


def _attribute_truth(
    choices: Choices, heard: Mapping[str, Sequence[Heard]], strength: float, kept: float, tau: int
) -> float | None:
    counts = np.array([np.sum([choices.expected(one, strength) for one in clips], axis=0) for clips in heard.values()])
    counts = counts[:, kept * counts.sum(axis=0) >= tau]
    if counts.shape[1] < 2:
        return None
    return float(shift(counts / counts.sum(axis=1, keepdims=True)))


def _survival(place: int, attributes: int, rate: float) -> float:
    """Probability that the line at `place` is whole: one line is dropped, or unclear, or all after a line are cut."""
    dropped = unclear = 1 / attributes
    cut = place / attributes
    return 1 - rate * (dropped + unclear + cut) / len(BREAKAGES)
