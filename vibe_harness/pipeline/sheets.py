"""Cells of the sheets that people fill in with a spreadsheet."""

from __future__ import annotations

ENCODING = "utf-8-sig"  # without the byte order mark Excel takes a CSV for another code page
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run


def inert(text: str) -> str:
    """The text with an apostrophe ahead where a spreadsheet would run it as a formula, and without NUL."""
    text = text.replace("\0", "")
    return "'" + text if text.lstrip(" ").startswith(_FORMULA) else text
