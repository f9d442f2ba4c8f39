"""Standard output: text of others made safe for a terminal, and a failure to print kept apart from any other."""

from __future__ import annotations

import click


class OutputError(Exception):
    """Standard output takes no more: its reader went away, or its disk is full."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause.strerror)
        self.reader_gone = isinstance(cause, BrokenPipeError)


def plain(text: str) -> str:
    """The text with line breaks and tabs as they are, and what a terminal would obey (ESC, NUL, RTL marks) in words."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def echo(text: object) -> None:
    """Print a line, `plain`. Raises OutputError where standard output takes no more."""
    write(plain(str(text)) + "\n")


def write(text: str) -> None:
    """Print text as it is. Raises OutputError where standard output takes no more."""
    try:
        click.echo(text, nl=False)
    except OSError as error:
        raise OutputError(error) from error
