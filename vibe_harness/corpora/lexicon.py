"""Word lists: which sentences speak of gender, age or race, and by which word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from vibe_harness.cards.text_file import read_text
from vibe_harness.errors import UserError

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def load_lexicon(path: Path) -> dict[str, str]:
    """Word -> the topic it stands under. The file has a word a line below headings in square brackets; # comments.

    Raises UserError, with file and line, for a word under no heading, more than one word a line, a repeated word, and
    what is not UTF-8.
    """
    lexicon: dict[str, str] = {}
    topic = None
    lines = read_text(path).splitlines()
    for number, line in enumerate(lines, start=1):
        word = line.partition("#")[0].strip().casefold()
        if not word:
            continue
        if word.startswith("[") and word.endswith("]"):
            topic = word[1:-1].strip()
        elif topic is None:
            raise UserError(f"{path}:{number}: '{word}' stands under no heading: begin with one, such as [gender]")
        elif not _WORD.fullmatch(word):
            raise UserError(f"{path}:{number}: '{word}' is not a single word")
        elif word in lexicon:
            raise UserError(f"{path}:{number}: '{word}' stands twice")
        else:
            lexicon[word] = topic
    return lexicon


def words_found(text: str, lexicon: Mapping[str, str]) -> list[str]:
    """The words of the list that a text holds, in its order, each once. Whole words; case and 's aside."""
    found: dict[str, None] = {}
    for match in _WORD.finditer(text.casefold().replace("’", "'")):
        word = match[0]
        for form in (word, word.removesuffix("'s"), word.partition("'")[0]):
            if form in lexicon:
                found[form] = None
                break
    return list(found)
