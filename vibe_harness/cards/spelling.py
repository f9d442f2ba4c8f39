"""Folding: two spellings of one value look the same once case, spacing, punctuation and number are taken away."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import inflection

_ASCII_JUNK = re.compile(r"[^a-z0-9+#]+|(?<![a-z0-9+#])[+#]+")

# Words that end like a plural and are none, or whose singular means something else.
_NO_PLURAL = frozenset((
    "atlas", "bias", "canvas", "chaos", "christmas", "clothes", "cosmos", "lens", "news", "pilates", "sales", "series",
    "species", "studies",
))  # fmt: skip
# Plurals that the rules of `inflection` miss or spoil.
_IRREGULAR = {
    "women": "woman", "men": "man", "children": "child", "salesmen": "salesman", "businessmen": "businessman",
    "firemen": "fireman", "policemen": "policeman", "fishermen": "fisherman", "craftsmen": "craftsman",
    "cookies": "cookie", "selfies": "selfie", "smoothies": "smoothie", "brownies": "brownie", "foodies": "foodie",
    "hoodies": "hoodie", "rookies": "rookie", "calories": "calorie", "indies": "indie", "ties": "tie", "pies": "pie",
    "canoes": "canoe", "headaches": "headache", "niches": "niche", "caches": "cache", "bases": "base", "axes": "axe",
    "lenses": "lens", "leaves": "leaf", "loaves": "loaf", "thieves": "thief",
}  # fmt: skip
_VES_TO_FE = frozenset({"wives", "housewives", "midwives", "knives", "lives"})
_VES_TO_F = frozenset({"wolves", "halves", "shelves", "bookshelves", "elves", "calves", "scarves"})


@lru_cache(maxsize=65_536)
def fold(text: str) -> str:
    """The text in the form in which spellings are compared: `fold(fold(x)) == fold(x)`.

    Compatibility characters are unified (NFKC), case, punctuation and extra blanks dropped, "&" read as "and", and the
    last word put in the singular. "+" and "#" right after a letter or digit are kept ("C++", "C#"). Empty where the
    text holds no letter, mark or digit.
    """
    if text.isascii():
        words = _ASCII_JUNK.sub(" ", text.lower().replace("'", "").replace("&", " and ")).split()
    else:
        words = _unicode_words(text)
    if not words:
        return ""
    words[-1] = _singular(words[-1])
    return " ".join(words)


def _unicode_words(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept: list[str] = []
    for char in text:
        if unicodedata.category(char)[0] in "LMN" or (char in "+#" and kept and kept[-1] != " "):
            kept.append(char)
        elif char == "&":
            kept.append(" and ")
        elif char not in "'\u2019\u02bc\u200b\u200c\u200d\u00ad\ufeff":
            kept.append(" ")
    return "".join(kept).split()


def _singular(word: str) -> str:
    """The singular of an English plural; the word itself where that is not certain."""
    once = _singular_once(word)
    return once if _singular_once(once) == once else word


def _singular_once(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.endswith("s") or word in _NO_PLURAL or word.endswith(("ics", "is", "us", "ss")):
        return word
    if word.endswith("ves"):
        if word in _VES_TO_FE:
            return word[:-3] + "fe"
        return word[:-3] + "f" if word in _VES_TO_F else word[:-1]
    return inflection.singularize(word)
