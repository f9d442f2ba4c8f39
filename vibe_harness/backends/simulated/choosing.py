"""Answers of the simulated model to choice tasks: it draws an option and writes its letter in one of several forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vibe_harness.backends.simulated.seeded_choice import Chance
from vibe_harness.records import Option

FORMS = (
    "{}",
    "{}.",
    "({})",
    "**{}**",
    "Answer: {}",
    "Answer: [[{}]]",
    "The answer is {}.",
    "I would choose option {}.",
    "Each of them is possible. The one that fits best is ({}).",
)
BROKEN = ("Any of them is possible.", "I would like to hear more before I say.", "It goes on like this:")


def choose(options: Sequence[Option], weights: Mapping[str, float], knows: float, chance: Chance) -> str:
    """Draw an option; returns its letter.

    knows: probability that the right option is chosen, if there is one. Otherwise an option is drawn in proportion to
    the weights, or uniformly if no offered option has a weight.
    """
    right = [option.label for option in options if option.correct]
    if chance.happens(knows) and right:
        return right[0]
    shares = [weights.get(option.content, 0.0) for option in options]
    if not any(shares):
        shares = [1.0] * len(options)
    return options[chance.weighted(shares)].label


def letter_answer(letter: str | None, chance: Chance) -> str:
    """An answer that chooses a letter, or no letter for None."""
    return chance.one_of(BROKEN) if letter is None else chance.one_of(FORMS).format(letter)
