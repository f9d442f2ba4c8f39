"""What all pages share: the templates, their filters, and the words for numbers."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import jinja2
from markupsafe import Markup

from vibe_harness.records import Score

FOLDER = Path(__file__).with_name("templates")


def environment() -> jinja2.Environment:
    """Everything is escaped, but for the style and the scripts that stand beside the templates."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    found.filters.update(number=number, percent=percent, range=range_words)
    found.globals.update(inline=_inline, script_hash=_script_hash, script=None)
    return found


def _shown(value: object) -> object:
    """Text without what a browser or a reader would obey or stumble over: NUL, escapes, marks that turn direction."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in value
    )


def _inline(name: str) -> Markup:
    return Markup(_text(name))


def _script_hash(name: str) -> str:
    """What the page's Content-Security-Policy lets run: this script and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(_text(name).encode()).digest()).decode()}'"


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def number(value: float | None, digits: int = 1) -> str:
    """So many decimals; nothing for None."""
    return "" if value is None else f"{value:.{digits}f}"


def percent(share: float | None) -> str:
    """A share (0 to 1) in whole per cent; nothing for None."""
    return "" if share is None else f"{share:.0%}"


def value_words(score: Score, digits: int = 1) -> str:
    """A score's figure, or that it has none."""
    return "undefined" if score.value is None else number(score.value, digits)


def range_words(low: float | None, high: float | None) -> str:
    """A range that does not go below 0; nothing where an end is missing."""
    return "" if low is None or high is None else f"{min(max(low, 0.0), high):.1f} to {high:.1f}"


def p_words(p_value: float | None) -> str:
    """A p-value as tables have it."""
    return "" if p_value is None else f"{p_value:.4f}"
