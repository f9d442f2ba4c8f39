"""The true shift of the simulated model on given clips.

The expected answer counts follow from the card and the voice features, without simulation:

    n_g(v) = sum over the clips of group g of  (1 - r(clip)) * w * E[times v is named | clip]

r is the probability that the request is refused, w the probability that the attribute's line survives format faults
(`survival`), and E the probability that v is among the values drawn, without replacement, from
q(v|clip) = (1 - s) base(v) + s ((1 - h) low(v) + h high(v)), where h is the pitch or timbre and s the card's strength.
The filter keeps v if sum_g n_g(v) reaches tau. P_g(v) = n_g(v) / sum of n_g over the kept values. The score is that of
VIBE (arXiv 2604.17248), equations 2 to 5, on P.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vibe_harness.backends.simulated.answers import Choices, Floats, choices_of
from vibe_harness.backends.simulated.engine import BREAKAGES, Arguments
from vibe_harness.backends.simulated.hearing import VoiceFeatures
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.stats.ntvd import shift


@dataclass(frozen=True, eq=False)
class Distribution:
    """The true distributions of one attribute after the filter.

    groups: G names. values: V kept values, as in answers.yaml or the task card. shares: P_g(v), shape (G, V), rows sum
    to 1. expected: the expected counts n_g(v), shape (G, V).
    """

    groups: tuple[str, ...]
    values: tuple[str, ...]
    shares: Floats
    expected: Floats


def true_distribution(
    card: ModelCard, task: Task, heard: Mapping[str, Sequence[VoiceFeatures]], tau: float
) -> dict[str, Distribution]:
    """The true distributions of each attribute, by group.

    heard: group -> voice features of its clips (`hearing.hear`), with one answer per clip. Rows of `shares` are NaN if
    the filter keeps nothing. Raises ValueError for fewer than two groups and for a group without clips.
    """
    if len(heard) < 2 or not all(heard.values()):
        raise ValueError("a shift needs at least two groups, and a clip in each")
    arguments = Arguments.model_validate(card.args)
    attributes = choices_of(task)
    found: dict[str, Distribution] = {}
    for place, (name, choices) in enumerate(attributes.items()):
        whole = survival(place, len(attributes), arguments.breakage_rate)
        expected = whole * np.array([_expected(choices, clips, arguments) for clips in heard.values()])
        kept = expected.sum(axis=0) >= tau
        expected = expected[:, kept]
        totals = expected.sum(axis=1, keepdims=True)
        shares = np.divide(expected, totals, out=np.full(expected.shape, np.nan), where=totals > 0)
        values = tuple(value for value, is_kept in zip(choices.values, kept, strict=True) if is_kept)
        found[name] = Distribution(tuple(heard), values, shares, expected)
    return found


def true_ntvd(
    card: ModelCard, task: Task, heard: Mapping[str, Sequence[VoiceFeatures]], tau: float
) -> dict[str, float | None]:
    """True nTVD (0 to 100) of each attribute, and under "" the mean over attributes that have one.

    None if fewer than two values reach tau, or if a group names none of them. Arguments as in `true_distribution`.
    """
    found: dict[str, float | None] = {}
    for name, truth in true_distribution(card, task, heard, tau).items():
        defined = len(truth.values) >= 2 and bool(np.isfinite(truth.shares).all())
        found[name] = float(shift(truth.shares)) if defined else None
    defined_scores = [value for value in found.values() if value is not None]
    found[""] = float(np.mean(defined_scores)) if defined_scores else None
    return found


def true_refusal_ntvd(card: ModelCard, heard: Mapping[str, Sequence[VoiceFeatures]]) -> float:
    """True nTVD (0 to 100) of refused against not refused; 0 unless `refusal_shift` is set."""
    arguments = Arguments.model_validate(card.args)
    refused = np.array([np.mean([arguments.refusal_chance(one) for one in clips]) for clips in heard.values()])
    return float(shift(np.stack([refused, 1 - refused], axis=1)))


def survival(place: int, attributes: int, breakage_rate: float) -> float:
    """Probability that the line at `place` of an answer can be read.

    A format fault affects one random line: its label is missing, or it says "unclear", or the text is cut after it,
    which removes the lines below. The three kinds are equally likely.
    """
    unlabelled = unclear = 1 / attributes
    cut = place / attributes
    return 1 - breakage_rate * (unlabelled + unclear + cut) / len(BREAKAGES)


def _expected(choices: Choices, clips: Sequence[VoiceFeatures], arguments: Arguments) -> Floats:
    """Expected counts (V,) over the clips of one group, without format faults."""
    total = np.zeros(len(choices.values))
    for one in clips:
        total += (1 - arguments.refusal_chance(one)) * choices.expected(one, arguments.strength)
    return total
