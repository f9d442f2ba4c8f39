"""How the simulated model answers a choice task: it draws an option, and writes its letter in one way or another."""

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
    """The letter of the option that is drawn.

    knows: probability that the right one is taken, where the task has a right one; otherwise one is drawn in proportion
    to the weights of the contents, all alike where no content that is offered has a weight.
    """
    right = [option.label for option in options if option.correct]
    if chance.happens(knows) and right:
        return right[0]
    shares = [weights.get(option.content, 0.0) for option in options]
    if not any(shares):
        shares = [1.0] * len(options)
    return options[chance.weighted(shares)].label


def letter_answer(letter: str | None, chance: Chance) -> str:
    """An answer that settles on a letter; one that settles on none where it is None."""
    return chance.one_of(BROKEN) if letter is None else chance.one_of(FORMS).format(letter)
