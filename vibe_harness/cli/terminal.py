"""What a person sees: progress on standard error, tables on standard output."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vibe_harness.cli.output import StandardError, echo, plain, write
from vibe_harness.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from vibe_harness.store.results import Results


class TerminalProgress(Progress):
    """A bar for each stage with the time left, shown once a stage lasts longer than two seconds."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[int], None]]:
        from tqdm import tqdm

        with tqdm(total=total, desc=name, file=StandardError(), delay=2, dynamic_ncols=True, unit="") as bar:

            def tick(steps: int) -> None:
                bar.update(steps)

            yield tick

    def note(self, line: str) -> None:
        """Print a line to standard error, where it stands beside no result."""
        StandardError().write(plain(line) + "\n")


def print_json(data: Sequence[Mapping[str, Any]]) -> None:
    """Print what a program reads: one object, or an array of them where a run took several corpora."""
    echo(json.dumps(data[0] if len(data) == 1 else data, indent=2))  # ASCII: whole on any terminal


def exit_code(results: Sequence[Results]) -> int:
    """0, or 1 where a score is not reliable."""
    return 0 if all(one.reliable for one in results) else 1


def print_table(headings: list[str], rows: list[list[str]]) -> None:
    """Print a plain table that fits the terminal."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        add_row(table, row)
    print_rich(table, width=140)


def add_row(table: Table, cells: Sequence[str], bold: bool = False) -> None:
    """Add a row of words as they are: a group may be called "[/b]", and that is no markup."""
    from rich.text import Text

    table.add_row(*(Text(plain(cell)) for cell in cells), style="bold" if bold else None)


def fits(table: Table) -> bool:
    """Whether a table can be printed on this terminal without a cell being broken."""
    console = _console(None)
    return console.measure(table, options=console.options.update(width=10_000)).maximum <= console.width


def print_rich(table: Table, width: int | None = None) -> None:
    """Print a table. width: its letters where the output is no terminal; those of a terminal (80, or COLUMNS) if None.

    Through click, as all the rest: rich would end the program itself where the reader goes away.
    """
    console = _console(width)
    with console.capture() as captured:
        console.print(table)
    write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def _console(width: int | None) -> Console:
    from rich.console import Console

    if width is None or sys.stdout.isatty():
        width = max(shutil.get_terminal_size().columns, 20)
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Console(
        file=io.StringIO(), width=width, force_terminal=coloured, no_color=not coloured, highlight=False,
        color_system="standard" if coloured else None,
    )  # fmt: skip
