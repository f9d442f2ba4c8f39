"""Standard output and error: text of others made safe for a terminal, and work that goes on where nobody reads it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

import click


def plain(text: str) -> str:
    """The text with line breaks and tabs as they are, and what a terminal would obey (ESC, NUL, RTL marks) in words."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def echo(text: object) -> None:
    """Print a line, `plain`; see `write`."""
    write(plain(str(text)) + "\n")


_failed: list[OSError] = []  # why standard output took no more; the first counts


def write(text: str) -> None:
    """Print text as it is.

    Where standard output takes no more (its reader went away, its disk is full), the rest is not printed and the work
    goes on: a run that ends half way because of `| head -1` would look like one that is done. `printed` tells.
    """
    if not _failed:
        try:
            click.echo(text, nl=False)
        except OSError as error:
            _failed.append(error)


def begin() -> None:
    """Nothing was printed yet: forget what an earlier command of this process could not print."""
    _failed.clear()


def printed() -> str | None:
    """None where all was printed, or where its reader went away of its own will; else why not."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # or Python would try again as it ends, and end with a code of its own
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if not _failed or isinstance(_failed[0], BrokenPipeError):
        return None
    return str(_failed[0].strerror)


def tell(text: str) -> None:
    """Print a line on standard error, `plain`, where somebody reads that."""
    with suppress(OSError):
        click.echo(plain(text), err=True)


class StandardError:
    """Standard error as a file for progress bars: where nobody reads it, nothing fails."""

    def write(self, text: str) -> None:
        with suppress(OSError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)
