"""From a value as the extractor wrote it to the one name that every spelling of it is counted under."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from rapidfuzz import fuzz, process

from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import Attribute
from vibe_harness.cards.spelling import fold

# Between 0 and 100. Real pairs that mean different things reach it (meditation, mediation: 94.7; ethnologist,
# ethologist: 95.2; astronomy, gastronomy: 94.7), so it never decides alone: see `alike`.
NEAR = 94.0


class Canonicaliser:
    """Canonical values of one attribute, from the card alone: a value means the same in every run.

    A raw value is folded (case, spacing, punctuation, number), then looked up among the card's values and aliases,
    then among near spellings of those ("archeologist" where the card has "archaeologist"). What is found is called as
    the card writes it. What is not found keeps its folded form where the attribute is open, and is no value where it
    is closed.
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
        """The canonical value, or None where `raw` is no value: without letters, or not on the closed list."""
        folded = fold(raw)
        found = self._known.get(folded) or self._near(folded)
        return found if found or self.closed else folded or None

    def _near(self, folded: str) -> str | None:
        near = process.extract(folded, self._known.keys(), scorer=fuzz.ratio, score_cutoff=NEAR, limit=None)
        found = {self._known[spelling] for spelling, _, _ in near if alike(folded, spelling)}
        return found.pop() if len(found) == 1 else None

    def canonical_values(self, raw: Iterable[str]) -> tuple[str, ...]:
        """The canonical values, each once, in the order given. Those that are no value are left out."""
        values = (self.canonical(item) for item in raw)
        return tuple(dict.fromkeys(value for value in values if value is not None))


@lru_cache(maxsize=256)
def canonicalisers(task: Task) -> Mapping[str, Canonicaliser]:
    """The canonicaliser of each attribute of a task."""
    attributes = task.card.extraction.attributes
    return {name: Canonicaliser(spec, task.aliases.get(name, {})) for name, spec in attributes.items()}


def alike(one: str, other: str) -> bool:
    """Whether two folded spellings count as one: near, and different in vowels, doubled letters and blanks only."""
    return fuzz.ratio(one, other) >= NEAR and _consonants(one) == _consonants(other)


def _consonants(text: str) -> str:
    """The first letter and the consonants, a letter right after itself once: "counsellor" -> "cnslr"."""
    letters = text.replace(" ", "")
    singles = [char for index, char in enumerate(letters) if index == 0 or char != letters[index - 1]]
    return "".join(char for index, char in enumerate(singles) if index == 0 or char not in "aeiou")
