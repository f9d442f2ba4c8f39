"""Checksums of a run folder, written when it is scored. They show whether its files changed since.

They detect accidents: a file that was edited, damaged, partly copied or left over from another run. They do not detect
forgery, because anyone can write new checksums.
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
    """Write SHA256SUMS in the format of `sha256sum --check`."""
    sums = {path.name: _sum_of(path) for path in folder.checksummed()}
    lines = [f"{sha256}  {name}\n" for name, sha256 in sums.items() if sha256 is not None]
    with atomic_write(folder.sums) as aside:
        aside.write_text("".join(lines), encoding="utf-8", newline="\n")


def changed_files(folder: RunFolder) -> Sequence[str]:
    """Names of the files that were changed, removed or added since the run was scored.

    Raises UserError if there are no checksums or they cannot be read.
    """
    before = dict(_read(folder))
    return [path.name for path in folder.checksummed() if _sum_of(path) != before.get(path.name)]


def check_sums(folder: RunFolder) -> None:
    """Raise UserError if files changed since the run was scored."""
    if changed := changed_files(folder):
        raise UserError(
            f"{folder.path}: {', '.join(changed)}: changed since the run was scored (edited, damaged, partly copied, "
            f"or the run is still going on): see `vibe-harness run-check {folder.path}`; if that finds nothing else, "
            f"score it again with `vibe-harness score {folder.path}`"
        )


def same_answers(one: RunFolder, other: RunFolder) -> bool:
    """Whether two scored run folders hold the very same responses, extractions and observations: a run and its copy."""
    sums = [dict(_read(folder)) for folder in (one, other)]
    names = [path.name for path in (one.responses, one.extractions, one.observations)]
    return all(sums[0].get(name) == sums[1].get(name) for name in names)


def _read(folder: RunFolder) -> Iterator[tuple[str, str]]:
    try:
        lines = folder.sums.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise UserError(
            f"{folder.path}: has no {folder.sums.name}: it was scored by an earlier version, or only partly copied: "
            f"score it again with `vibe-harness score {folder.path}`"
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"{folder.sums}: cannot be read: {error}") from None
    for line in lines:
        if match := _LINE.fullmatch(line):
            yield match[2], match[1]


def _sum_of(path: Path) -> str | None:
    """SHA-256 of a file in hex; None if there is no such file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def run_digest(folder: RunFolder) -> str:
    """Digest of a run's identity and of its tasks (cards, templates and alias files)."""
    return digest([folder.identity(), [task.digest for task in folder.record().tasks]])
