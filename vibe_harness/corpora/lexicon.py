"""Word lists: words by topic, to find sentences that mention gender, age or race."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from vibe_harness.cards.text_file import read_text
from vibe_harness.errors import UserError

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def load_lexicon(path: Path) -> dict[str, str]:
    """Read a file with one word per line below headings (`headed_lines`); returns word -> topic.

    Raises UserError, with file and line, for a word before the first heading, more than one word in a line, a repeated
    word, and text that is not UTF-8.
    """
    lexicon: dict[str, str] = {}
    for number, topic, word in headed_lines(path):
        if not _WORD.fullmatch(word):
            raise UserError(f"{path}:{number}: '{word}' is not a single word")
        if word in lexicon:
            raise UserError(f"{path}:{number}: '{word}' is listed twice")
        lexicon[word] = topic
    return lexicon


def headed_lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line number, heading and text, in lower case, of each line of a list with headings in square brackets. "#" begins
    a comment. Raises UserError, with file and line, for text before the first heading."""
    heading = None
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        words = line.partition("#")[0].strip().casefold()
        if words.startswith("[") and words.endswith("]"):
            heading = words[1:-1].strip()
        elif words and heading is None:
            raise UserError(f"{path}:{number}: '{words}' has no heading above it: begin with one, such as [gender]")
        elif words:
            yield number, str(heading), words


def words_found(text: str, lexicon: Mapping[str, str]) -> list[str]:
    """The listed words in a text, in order, each once. Whole words only; case and a final 's are ignored."""
    found: dict[str, None] = {}
    for match in _WORD.finditer(text.casefold().replace("’", "'")):
        word = match[0]
        for form in (word, word.removesuffix("'s"), word.partition("'")[0]):
            if form in lexicon:
                found[form] = None
                break
    return list(found)
