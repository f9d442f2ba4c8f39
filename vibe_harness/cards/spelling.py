"""Normalise spellings: ignore case, spacing, punctuation and number (singular or plural)."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import inflection

_ASCII_JUNK = re.compile(r"[^a-z0-9+#]+")
_LOOSE_SIGN = re.compile(r"(?<!\S)[+#]+")
_DROPPED = dict.fromkeys(map(ord, "'\u2019\u02bc\u200b\u200c\u200d\u00ad\ufeff"))  # apostrophes, and what has no width

# Words that end like a plural but are not one, or whose singular means something else.
_NO_PLURAL = frozenset((
    "atlas", "bias", "canvas", "chaos", "christmas", "clothes", "cosmos", "lens", "news", "pilates", "sales", "series",
    "species", "studies",
))  # fmt: skip
# Plurals that the rules of `inflection` get wrong.
_IRREGULAR = {
    "men": "man", "children": "child", "firemen": "fireman", "policemen": "policeman", "fishermen": "fisherman",
    "cookies": "cookie", "selfies": "selfie", "smoothies": "smoothie", "brownies": "brownie", "foodies": "foodie",
    "hoodies": "hoodie", "rookies": "rookie", "calories": "calorie", "indies": "indie", "ties": "tie", "pies": "pie",
    "canoes": "canoe", "headaches": "headache", "niches": "niche", "caches": "cache", "bases": "base", "axes": "axe",
    "lenses": "lens", "leaves": "leaf", "loaves": "loaf", "thieves": "thief",
}  # fmt: skip
_VES_TO_FE = frozenset({"wives", "housewives", "midwives", "knives", "lives"})
_VES_TO_F = frozenset({"wolves", "halves", "shelves", "bookshelves", "elves", "calves", "scarves"})


@lru_cache(maxsize=16_384)
def fold(text: str) -> str:
    """The normalised form of a text, in which spellings are compared. Idempotent: `fold(fold(x)) == fold(x)`.

    Applies NFKC, ignores case, punctuation and extra spaces, replaces "&" by "and", and puts the last word into the
    singular. Keeps "+" and "#" directly after a letter or digit ("C++", "C#"). Empty if the text contains no letter,
    combining mark or digit.
    """
    plain = _plain_ascii(text) if text.isascii() else _plain(text)
    words = _LOOSE_SIGN.sub("", plain).split()
    if not words:
        return ""
    words[-1] = _singular(words[-1])
    return " ".join(words)


def _plain_ascii(text: str) -> str:
    return _ASCII_JUNK.sub(" ", text.lower().replace("'", "").replace("&", " and "))


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold().translate(_DROPPED)
    text = unicodedata.normalize("NFKC", text).replace("&", " and ")
    return "".join(char if char in "+#" or unicodedata.category(char)[0] in "LMN" else " " for char in text)


def _singular(word: str) -> str:
    """The singular of an English plural, or the word itself if the singular is uncertain."""
    once = _singular_once(word)
    return once if _singular_once(once) == once else word


def _singular_once(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith(("women", "smen")):  # sportswomen, salesmen
        return word[:-2] + "an"
    if len(word) < 4 or not word.endswith("s") or word in _NO_PLURAL or word.endswith(("ics", "is", "us", "ss")):
        return word
    if word.endswith("ves"):
        if word in _VES_TO_FE:
            return word[:-3] + "fe"
        return word[:-3] + "f" if word in _VES_TO_F else word[:-1]
    return inflection.singularize(word)
