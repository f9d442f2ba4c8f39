"""Files that cards and templates name: always inside the folders they may come from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vibe_harness.errors import UserError


def inside(root: Path, name: str) -> Path | None:
    """The file `name` below `root`, or None where there is none. Raises UserError where it leaves the folder."""
    try:
        path = (root / name).resolve()
        found = path.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # too long a name, a NUL in it, links in a circle
        raise UserError(f"'{name}' cannot name a file in {root}: {error}") from None
    if not path.is_relative_to(root.resolve()):
        raise UserError(f"'{name}' lies outside of {root}: name a file inside that folder")
    return path if found else None


def find_file(roots: Sequence[Path], name: str) -> Path:
    """The first of `roots` that holds the file. Raises UserError where none does."""
    for root in roots:
        found = inside(root, name)
        if found:
            return found
    raise UserError(f"there is no file '{name}' in {' or '.join(str(root) for root in roots)}")
