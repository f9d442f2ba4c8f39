"""The folders of corpora and their cards: the user's own, and those of installed packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from vibe_harness.errors import UserError
from vibe_harness.library import library_root, package_roots


def own_corpora() -> Path:
    """The folder of prepared corpora, which has one folder per corpus; see `data_folder`.

    Raises UserError if the user has no home folder, as in some containers.
    """
    folder = _own_corpora()
    if folder is None:
        raise UserError("this user has no home folder: name one for corpora in the variable VIBE_HARNESS_DATA")
    return folder


def data_folder() -> Path | None:
    """The folder of the user's data: $VIBE_HARNESS_DATA, or the system's default; None if the user has no home."""
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
    """The folders of corpora and cards: the user's own, if there is a home folder, then those of installed packages."""
    own = _own_corpora()
    return [*([own] if own else []), *_shipped_folders()]


def _shipped_folders() -> list[Path]:
    """The folders of corpora that come with the harness and with other packages."""
    return [root / "corpora" for root in (library_root(), *package_roots())]


def first_claims(within: Callable[[Path], Iterable[tuple[str, Path]]]) -> dict[str, Path]:
    """Name -> file over all corpus folders; `within` lists one of them. The user's own files take precedence.

    Raises UserError, naming both files, if two packages, or a package and the harness, use the same name.
    """
    found: dict[str, Path] = {}
    for root in _shipped_folders():
        for name, path in dict(reversed([*within(root)])).items():  # of a name repeated in one folder, the first counts
            if name in found:
                raise UserError(f"two corpora are named '{name}': {found[name]} and {path}: rename one")
            found[name] = path
    own = _own_corpora()
    return found | (dict(reversed([*within(own)])) if own else {})
