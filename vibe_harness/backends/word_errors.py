"""How far a transcription is from what was said, for the hearing check."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean are written without spaces, or with spaces as writers like: a
# letter counts as a word there.
_LETTER_BY_LETTER = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)


def words_of(text: str) -> list[str]:
    """The words of a text without case, punctuation and apostrophes; the letters, in scripts without spaces."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "").replace("'", "")
    plain = "".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in plain)
    return _LETTER_BY_LETTER.sub(r" \g<0> ", plain).split()


def error_rate(said: Sequence[str], heard: Sequence[str]) -> float:
    """Substitutions, deletions and insertions over the words of `said`, against the part of `heard` that fits it best.

    What stands before and after that part ("The speaker says: ...") does not count, so that the rate is at most 1.
    Approximate matching within a text: Sellers 1980, "The theory and computation of evolutionary distances".
    """
    above = [0] * (len(heard) + 1)
    for row, word in enumerate(said, start=1):
        line = [row]
        for column, other in enumerate(heard, start=1):
            line.append(min(above[column - 1] + (word != other), above[column] + 1, line[column - 1] + 1))
        above = line
    return min(above) / len(said)
