"""What all pages share: the templates, their filters, and the words for numbers."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score
from vibe_harness.store.results import TaskResult

FOLDER = Path(__file__).with_name("templates")
SETTINGS = {
    "answer by": "answered by", "clips": "clips with the digest", "extractor": "read by",
    "permuted within": "speakers exchanged within",
}  # fmt: skip
LONGEST_SETTING = 24  # letters that are shown of a setting's value


@cache
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
    found.filters.update(
        number=number,
        percent=percent,
        range=range_words,
        words=value_words,
        shift=shift_words,
        interval=interval_words,
        no_intervals=no_intervals,
        task_words=task_words,
        nobreak=nobreak,
        counted=counted,
        settings=settings_words,
    )
    found.filters["digits"] = score_digits
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


@cache
def _text(name: str) -> str:
    """A file beside the templates, without the blanks that indent it: it stands in every page."""
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return "\n".join(line.strip() for line in lines)


def number(value: float | None, digits: int = 1) -> str:
    """So many decimals; nothing for None."""
    return "" if value is None else f"{value:.{digits}f}"


def nobreak(text: str) -> Markup:
    """Text whose numbers stay with their per cent sign."""
    return Markup(str(escape(_shown(text))).replace(" %", "&nbsp;%"))


def counted(count: int, what: str) -> str:
    """ "1 speaker", "1,200 speakers"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def percent(share: float | None) -> str:
    """A share (0 to 1) in whole per cent; nothing for None."""
    return "" if share is None else f"{share:.0%}"


def score_digits(score: Score) -> int:
    """How many decimals a score is shown with, by its metric."""
    return presentation_of(score.metric).decimals_of(score)


def value_words(score: Score) -> str:
    """A score's figure, or that it has none."""
    return "undefined" if score.value is None else number(score.value, score_digits(score))


def range_words(low: float | None, high: float | None, digits: int = 1) -> str:
    """A range; nothing where an end is missing."""
    return "" if low is None or high is None else f"{low:.{digits}f} to {high:.{digits}f}"


def shift_words(score: Score) -> str:
    """The bracket of the true shift, in order; an end that chance puts under 0 is told as 0 (docs/statistics.md)."""
    if score.bracket is None:
        return ""
    low, high = score.bracket
    return range_words(max(low, 0.0), max(high, 0.0))


def interval_words(score: Score) -> str:
    """A score's 95 % interval; "none" where there is one but for a reason, which `no_intervals` tells."""
    if score.interval is None:
        return "none" if score.detail.get("no_interval") else ""
    return range_words(*score.interval, score_digits(score))


def no_intervals(scores: Sequence[Score]) -> list[str]:
    """Why scores of a task have no interval, a line for each reason: "No interval for pay, vibe: REASON"."""
    found: dict[str, list[str]] = {}
    for score in scores:
        if score.interval is None and (reason := score.detail.get("no_interval")):
            found.setdefault(reason, []).append((score.attribute or "all attributes").replace("_", " "))
    return [f"No interval for {', '.join(names)}: {reason}" for reason, names in found.items()]


def task_words(task: TaskResult, by: bool = True) -> str:
    """A task, the prompt where it is not the usual one, and what its groups are groups of."""
    name = task.task if task.variant in ("default", "standard") else f"{task.task} ({task.variant})"
    return f"{name} by {task.dimension}" if by else name


def settings_words(settings: Mapping[str, str]) -> str:
    """A block's settings on a line: "read by rules (version 2); tau 10". Digests are cut short."""
    values: dict[str, str] = {}
    parts: dict[str, list[str]] = {}  # "extractor.version" is a part of the extractor
    for key, value in settings.items():
        if value in ("nothing", "generate"):  # nothing evened out, say: as usual
            continue
        name, _, part = key.replace("_", " ").partition(".")
        short = value[:LONGEST_SETTING] + ("..." if len(value) > LONGEST_SETTING else "")
        if part:
            parts.setdefault(name, []).append(f"{part} {short}")
        else:
            values[name] = short
    return "; ".join(
        f"{SETTINGS.get(name, name)} {values.get(name, '')}".rstrip()
        + (f" ({', '.join(parts[name])})" if name in parts else "")
        for name in dict.fromkeys([*values, *parts])
    )


def p_words(p_value: float | None) -> str:
    """A p-value as tables have it."""
    return "" if p_value is None else f"{p_value:.4f}"
