"""Resolve file names written in cards and templates, only inside the allowed folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vibe_harness.errors import UserError


def inside(root: Path, name: str) -> Path | None:
    """The file `name` below `root`, or None if it does not exist. Raises UserError if it is outside `root`."""
    try:
        path = (root / name).resolve()
        found = path.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # name too long, NUL character, loop of symbolic links
        raise UserError(f"'{name}' cannot be a file name in {root}: {error}") from None
    if not path.is_relative_to(root.resolve()):
        raise UserError(f"'{name}' is outside of {root}: name a file inside that folder")
    return path if found else None


def find_file(roots: Sequence[Path], name: str) -> Path:
    """The file in the first of `roots` that contains it. Raises UserError if none does."""
    for root in roots:
        found = inside(root, name)
        if found:
            return found
    raise UserError(f"there is no file '{name}' in {' or '.join(str(root) for root in roots)}")
