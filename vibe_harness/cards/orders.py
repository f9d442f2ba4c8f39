"""Orders of the options in a choice task."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from vibe_harness.registry import did_you_mean

LETTERS = "ABCDEFGH"
DIGITS = "12345678"
MOST = 5  # most options for which all permutations are used: 120 orders
# BiasInEar (arXiv 2602.01030), section 3.1 and appendix C.2; name -> contents reversed, letters reversed. The paper
# defines the first two. The other two follow from their names: the letters, or both, are reversed.
NAMED = {
    "original": (False, False),  # A:a B:b C:c D:d
    "reversed": (True, False),  # A:d B:c C:b D:a
    "token_backward": (False, True),  # D:a C:b B:c A:d
    "order_backward": (True, True),  # D:d C:c B:b A:a
}


@dataclass(frozen=True, slots=True)
class Order:
    """One order of the options. contents: index of the option at each position. letters: letter at each position."""

    name: str
    contents: tuple[int, ...]
    letters: tuple[str, ...]


def find_order(name: str, count: int) -> Order:
    """A named order of `count` options, or a permutation written as digits: "213" puts the second option first.

    Raises ValueError, with a suggestion, for any other name.
    """
    digits = DIGITS[:count]
    letters = tuple(LETTERS[:count])
    if name in NAMED:
        contents_back, letters_back = NAMED[name]
        contents = tuple(reversed(range(count))) if contents_back else tuple(range(count))
        return Order(name, contents, letters[::-1] if letters_back else letters)
    if sorted(name) == list(digits):
        return Order(name, tuple(int(digit) - 1 for digit in name), letters)
    raise ValueError(f"unknown order '{name}'. {did_you_mean(name, NAMED)} Or digits: '{digits[::-1]}'.")


def find_orders(names: str | Sequence[str], count: int) -> tuple[Order, ...]:
    """The orders of a card: the named ones, or for "all" every permutation in lexical order. Raises ValueError."""
    return _find_orders(names if isinstance(names, str) else tuple(names), count)


@lru_cache(maxsize=64)
def _find_orders(names: str | tuple[str, ...], count: int) -> tuple[Order, ...]:
    if names == "all":
        if count > MOST:
            raise ValueError(f"{count} options have too many permutations: list the orders to use")
        names = tuple("".join(order) for order in itertools.permutations(DIGITS[:count]))
    orders = [find_order(name, count) for name in names]
    if len({order.name for order in orders}) < len(orders) or not orders:
        raise ValueError("list at least one order, and each order once")
    return tuple(orders)
