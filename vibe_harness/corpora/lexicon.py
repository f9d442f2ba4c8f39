"""Word lists: which sentences speak of gender, age or race, and by which word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from vibe_harness.cards.text_file import read_text
from vibe_harness.errors import UserError

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def load_lexicon(path: Path) -> dict[str, str]:
    """Word -> the topic it stands under, of a file with a word a line (`headed_lines`).

    Raises UserError, with file and line, for a word under no heading, more than one word a line, a repeated word, and
    what is not UTF-8.
    """
    lexicon: dict[str, str] = {}
    for number, topic, word in headed_lines(path):
        if not _WORD.fullmatch(word):
            raise UserError(f"{path}:{number}: '{word}' is not a single word")
        if word in lexicon:
            raise UserError(f"{path}:{number}: '{word}' stands twice")
        lexicon[word] = topic
    return lexicon


def headed_lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """Number, heading and words, in small letters, of each line of a list below headings in square brackets; #
    begins a comment. Raises UserError, with file and line, for words under no heading."""
    heading = None
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        words = line.partition("#")[0].strip().casefold()
        if words.startswith("[") and words.endswith("]"):
            heading = words[1:-1].strip()
        elif words and heading is None:
            raise UserError(f"{path}:{number}: '{words}' stands under no heading: begin with one, such as [gender]")
        elif words:
            yield number, str(heading), words


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
