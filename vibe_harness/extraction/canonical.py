"""Canonical values: one name for all spellings of a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from rapidfuzz import fuzz, process

from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import Attribute
from vibe_harness.cards.spelling import fold

# Similarity, 0 to 100. Some pairs with different meanings reach it (meditation, mediation: 94.7; ethnologist,
# ethologist: 95.2; astronomy, gastronomy: 94.7), so it never decides alone: see `alike`.
NEAR = 94.0


class Canonicaliser:
    """Canonical values of one attribute. They depend on the card only, so a value means the same in every run.

    A raw value is folded (case, spacing, punctuation, plural), then looked up among the card's values and aliases, then
    among similar spellings of those ("archeologist" for "archaeologist"). A match takes the card's spelling. Without a
    match, the value of an open attribute is its folded form, and a closed attribute has no value.
    """

    def __init__(self, attribute: Attribute, aliases: Mapping[str, str]) -> None:
        self.closed = attribute.values != "open"
        self._known = {fold(name): name for name in (attribute.values if attribute.values != "open" else [])}
        self._known |= {fold(name): name for name in aliases.values()}
        self._known |= {fold(spelling): name for spelling, name in aliases.items()}
        self.canonical = lru_cache(maxsize=4_096)(self._canonical)

    def is_known(self, raw: str) -> bool:
        """Whether the card itself names this value or spelling."""
        return fold(raw) in self._known

    def _canonical(self, raw: str) -> str | None:
        """The canonical value, or None if `raw` is not a value: it has no letters, or is not on the closed list."""
        folded = fold(raw)
        found = self._known.get(folded) or self._near(folded)
        return found if found or self.closed else folded or None

    def _near(self, folded: str) -> str | None:
        near = process.extract(folded, self._known.keys(), scorer=fuzz.ratio, score_cutoff=NEAR, limit=None)
        found = {self._known[spelling] for spelling, _, _ in near if alike(folded, spelling)}
        return found.pop() if len(found) == 1 else None

    def canonical_values(self, raw: Iterable[str]) -> tuple[str, ...]:
        """The canonical values, each once, in the given order. Raw texts that are not values are left out."""
        values = (self.canonical(item) for item in raw)
        return tuple(dict.fromkeys(value for value in values if value is not None))


@lru_cache(maxsize=256)
def canonicalisers(task: Task) -> Mapping[str, Canonicaliser]:
    """The canonicaliser of each attribute of a task."""
    attributes = task.card.extraction.attributes
    return {name: Canonicaliser(spec, task.aliases.get(name, {})) for name, spec in attributes.items()}


def alike(one: str, other: str) -> bool:
    """Whether two folded spellings count as one: similar, and different in vowels, doubled letters and spaces only."""
    return fuzz.ratio(one, other) >= NEAR and _consonants(one) == _consonants(other)


def _consonants(text: str) -> str:
    """The first letter and the consonants, without doubled letters: "counsellor" -> "cnslr"."""
    letters = text.replace(" ", "")
    singles = [char for index, char in enumerate(letters) if index == 0 or char != letters[index - 1]]
    return "".join(char for index, char in enumerate(singles) if index == 0 or char not in "aeiou")
