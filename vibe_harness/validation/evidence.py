"""Find the passages of a text that mention an extracted value. The judge's page highlights them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from vibe_harness.validation.sample import Claim

NEAR = 85.0  # between 0 and 100; only where the words as written are not found
SHORTEST = 4  # letters of a spelling that is looked for inexactly
_WORD = re.compile(r"[\w+#]+")

Span = tuple[int, int]


def spans(text: str, claim: Claim) -> list[Span]:
    """Positions (start, end) in the text with a value of the claim, an alias of it, or a similar word."""
    found = [span for words in {*claim.values, *claim.spellings} for span in _exact(text, words)]
    for raw in claim.raw:
        exact = list(_exact(text, raw))
        found += exact or ([] if found else list(_near(text, raw)))
    return sorted(set(found))


def segments(text: str, claims: Mapping[str, Claim]) -> list[tuple[str, list[str]]]:
    """The text in pieces, each with the items (id -> claim) whose evidence it belongs to. The pieces are the text."""
    marked = {item: spans(text, claim) for item, claim in claims.items()}
    cuts = sorted({0, len(text), *(place for found in marked.values() for span in found for place in span)})
    pieces = []
    for start, end in pairwise(cuts):
        owners = [item for item, found in marked.items() if any(s <= start and end <= e for s, e in found)]
        pieces.append((text[start:end], owners))
    return pieces


def _exact(text: str, spelling: str) -> Iterator[Span]:
    """The words of a spelling one after the other, in any case, with any punctuation between, also in the plural.

    A single letter, such as a choice task has for a value, counts as it is written.
    """
    words = _WORD.findall(spelling)
    if words:
        pattern = r"[\W_]{0,3}".join(map(re.escape, words))
        ending, flags = ("(?:e?s)?", re.IGNORECASE) if len(spelling) > 1 else ("", re.NOFLAG)
        for match in re.finditer(rf"(?<!\w){pattern}{ending}(?!\w)", text, flags):
            yield match.span()


def _near(text: str, spelling: str) -> Iterator[Span]:
    from rapidfuzz import fuzz

    if len(spelling) < SHORTEST or len(spelling) > len(text):
        return
    alignment = fuzz.partial_ratio_alignment(_lower(spelling), _lower(text), score_cutoff=NEAR)
    if alignment is None:
        return
    begin, end = alignment.dest_start, alignment.dest_end
    words = [w.span() for w in _WORD.finditer(text) if 2 * (min(end, w.end()) - max(begin, w.start())) > len(w[0])]
    if words:  # whole ones, which is what the eye looks for
        yield words[0][0], words[-1][1]


def _lower(text: str) -> str:
    """In lower case, letter for letter: places in it are places in the text."""
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
