"""Where corpora and their cards lie: the user's own folder, and those that come along."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from vibe_harness.errors import UserError
from vibe_harness.library import library_root, package_roots


def own_corpora() -> Path:
    """Where prepared corpora lie, each in a folder of its name: in $VIBE_HARNESS_DATA, or by the system's custom.

    Raises UserError for a user without a home, as in some containers.
    """
    folder = _own_corpora()
    if folder is None:
        raise UserError("this user has no home folder: name one for corpora in the variable VIBE_HARNESS_DATA")
    return folder


def data_folder() -> Path | None:
    """The folder of the user's data: $VIBE_HARNESS_DATA, or by the system's custom; None for a user without a home."""
    if given := os.environ.get("VIBE_HARNESS_DATA"):
        return Path(given).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Application Support"
    else:
        base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    base = os.path.expanduser(base)  # noqa: PTH111 (which leaves the ~ where there is no home)
    return None if base.startswith("~") else Path(base) / "vibe-harness"


def _own_corpora() -> Path | None:
    folder = data_folder()
    return folder and folder / "corpora"


def corpus_folders() -> list[Path]:
    """Where corpora and their cards lie: the user's own (given a home), then those that come along."""
    own = _own_corpora()
    return [*([own] if own else []), *_shipped_folders()]


def _shipped_folders() -> list[Path]:
    """The folders of corpora that come with the harness and with other packages."""
    return [root / "corpora" for root in (library_root(), *package_roots())]


def first_claims(within: Callable[[Path], Iterable[tuple[str, Path]]]) -> dict[str, Path]:
    """Name -> file over all corpus folders, `within` listing one. What the user has stands before what came along.

    Raises UserError, naming both files, where two packages, or a package and the harness, claim one name.
    """
    found: dict[str, Path] = {}
    for root in _shipped_folders():
        for name, path in dict(reversed([*within(root)])).items():  # the first of a folder's own counts
            if name in found:
                raise UserError(f"two corpora are named '{name}': {found[name]} and {path}: rename one")
            found[name] = path
    own = _own_corpora()
    return found | (dict(reversed([*within(own)])) if own else {})
