"""Words that prompts should avoid: they name a demographic attribute, mention the voice, or suggest an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from vibe_harness.corpora.lexicon import headed_lines, load_lexicon
from vibe_harness.library import library_root

MAY_STAND = "may stand"
LEADS = "leads the answer"


@dataclass(frozen=True)
class PromptWords:
    """Words and phrases, with the reason for each."""

    reasons: Mapping[str, str]  # word, phrase or "beginning*" -> why prompts should avoid it

    def find(self, text: str) -> list[tuple[str, str]]:
        """The listed words in a text, as written there, with the reason; in order of appearance, each once."""
        words = sorted(self.reasons, key=len, reverse=True)  # "mother tongue" before "mother"
        found: dict[str, str] = {}
        for match in _pattern(tuple(words)).finditer(text):
            found.setdefault(match[0].casefold(), self.reasons[words[int(str(match.lastgroup)[1:])]])
        return list(found.items())


@lru_cache(maxsize=4)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    parts = []
    for number, word in enumerate(words):
        spelled = r"\s+".join(map(re.escape, word.removesuffix("*").split()))
        ending = r"\w*" if word.endswith("*") else ""
        parts.append(f"(?P<w{number}>{spelled}{ending})")
    return re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)", re.IGNORECASE)


@lru_cache(maxsize=1)
def prompt_words() -> PromptWords:
    """The built-in lists: templates/prompt_words.txt and the words of corpora/lexicons/demographic.txt."""
    lines = headed_lines(library_root() / "templates" / "prompt_words.txt")
    own = {word: reason for _, reason, word in lines}
    allowed = {word for word, reason in own.items() if reason == MAY_STAND}
    demographic = load_lexicon(library_root() / "corpora" / "lexicons" / "demographic.txt")
    reasons = {word: f"is a word of {topic}" for word, topic in demographic.items()}
    reasons |= own
    return PromptWords({word: reason for word, reason in reasons.items() if word not in allowed})
