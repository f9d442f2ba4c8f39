"""Checksums of a run folder, taken when it was scored: whether its files are still those the scores were made of.

They tell an accident: a file that was edited, damaged, copied in part or left from another run. They stop no forger,
who can write new ones.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from vibe_harness.cards.digest import digest
from vibe_harness.errors import UserError
from vibe_harness.store.atomic_files import atomic_write
from vibe_harness.store.run_folder import RunFolder

_LINE = re.compile(r"([0-9a-f]{64})  (\S+)")


def write_sums(folder: RunFolder) -> None:
    """Write SHA256SUMS, a line for each file, as `sha256sum --check` reads it."""
    sums = {path.name: _sum_of(path) for path in folder.checksummed()}
    lines = [f"{found}  {name}\n" for name, found in sums.items() if found is not None]
    with atomic_write(folder.sums) as aside:
        aside.write_text("".join(lines), encoding="utf-8", newline="\n")


def changed_files(folder: RunFolder) -> Sequence[str]:
    """Names of the files that are not what they were when the run was scored: changed, gone or new.

    Reads each file once, and nothing of it is kept. Raises UserError where no checksums were written, or where they
    cannot be read.
    """
    before = dict(_read(folder))
    return [path.name for path in folder.checksummed() if _sum_of(path) != before.get(path.name)]


def check_sums(folder: RunFolder) -> None:
    """Raise UserError, saying what to do, where the files are not those that the run's scores were made of."""
    if changed := changed_files(folder):
        raise UserError(
            f"{folder.path}: {', '.join(changed)}: not as when the run was scored (edited, damaged, copied in part, or "
            f"being run): see `vibe-harness run-check {folder.path}`; where that finds nothing else, score it again "
            f"with `vibe-harness score {folder.path}`"
        )


def _read(folder: RunFolder) -> Iterator[tuple[str, str]]:
    try:
        lines = folder.sums.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise UserError(
            f"{folder.path}: scored by an earlier version, or copied in part: it has no {folder.sums.name} to tell "
            f"whether its scores are of its data: score it again with `vibe-harness score {folder.path}`"
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"{folder.sums}: cannot be read: {error}") from None
    for line in lines:
        if found := _LINE.fullmatch(line):
            yield found[2], found[1]


def _sum_of(path: Path) -> str | None:
    """SHA-256 of a file in hex; None where there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def run_digest(folder: RunFolder) -> str:
    """Digest of what a run asked and of how it is read: its cards with their templates and alias files."""
    return digest([folder.identity(), [task.digest for task in folder.record().tasks]])
