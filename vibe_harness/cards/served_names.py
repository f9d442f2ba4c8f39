"""Whether the name that a server gives in its replies is that of the model on the card."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

_WILD = re.compile(r"\[[^]]*\]|[*?]")
_LATEST = re.compile(r"[-:]latest$")
_VERSION = re.compile(
    r"""[-:@](
        (19|20)\d\d-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])  # 2024-08-06, 20240806
        | (0[1-9]|1[0-2])-(20)\d\d                           # 09-2025
        | (0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])              # 05-20
        | \d{3,4}                                            # 001, 0613, 2507
        | v\d+(\.\d+)*(:\d+)?                                # v1, v2.1, v1:0
        | (?<=@)[0-9a-f]{7,40}                               # a commit
        | latest
    )$""",
    re.VERBOSE,
)  # not "-7b" or ".1": those name another model
LEAST_LETTERS = 3  # letters or digits in a row that a pattern needs, so that it does not match anything


def is_served_as(asked: str, served: str, allowed: Sequence[str] = ()) -> bool:
    """Whether a server that answers as `served` answers with the model that was asked for.

    asked: the card's id. allowed: further names, with the wildcards of `fnmatch`; see `check_pattern`. Names agree
    whatever their case, with or without the owner ("org/name", "models/name"), and where the server adds a date or a
    version. A server that gives another owner, another date or less than the version that was asked for is not it.
    """
    name, own = _folded(served), _folded(asked)
    if any(fnmatchcase(name, _folded(pattern)) for pattern in allowed):
        return True
    longer, shorter = sorted((name.split("/"), own.split("/")), key=len, reverse=True)
    if longer[-len(shorter) : -1] != shorter[:-1]:
        return False
    last, base = name.rsplit("/", 1)[-1], own.rsplit("/", 1)[-1]
    base = _LATEST.sub("", base)
    rest = last.removeprefix(base)
    return last.startswith(base) and (not rest or _VERSION.fullmatch(rest) is not None)


def check_pattern(pattern: str) -> None:
    """Raise ValueError if a pattern of served names would match nearly any name, or none."""
    if not pattern.strip():
        raise ValueError("an empty name: write the name that the server gives in its replies")
    literal = max((len(run) for run in re.findall(r"[^\W_]+", _WILD.sub(" ", pattern))), default=0)
    if _WILD.search(pattern) and literal < LEAST_LETTERS:
        raise ValueError(f"'{pattern}' matches any name: write the name that the server gives in its replies")


def _folded(name: str) -> str:
    return name.strip().casefold().rstrip("/").removeprefix("models/")
