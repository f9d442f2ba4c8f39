"""Finding a corpus by its name or by the path of its manifest."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from vibe_harness.corpora.manifest import Corpus, load_manifest
from vibe_harness.errors import UserError
from vibe_harness.library import library_root
from vibe_harness.registry import did_you_mean

MANIFESTS = ("manifest.parquet", "manifest.csv", "manifest.jsonl")


def data_folder() -> Path:
    """Where prepared corpora are kept: $VIBE_HARNESS_DATA, or the user's data folder by the system's custom."""
    if given := os.environ.get("VIBE_HARNESS_DATA"):
        return Path(given).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Application Support"
    else:
        base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "vibe-harness"


def corpus_manifests() -> dict[str, Path]:
    """Name -> manifest of every corpus at hand: those packed with the harness, then those that were prepared."""
    found: dict[str, Path] = {}
    for root in (data_folder() / "corpora", library_root() / "corpora"):
        for folder in sorted(root.iterdir()) if root.is_dir() else ():
            for file in MANIFESTS:
                if (folder / file).is_file():
                    found[folder.name] = folder / file
                    break
    return found


def find_corpus(name_or_path: str) -> Corpus:
    """The corpus of that name, or of that manifest file, or of the folder that holds one.

    Raises UserError, with what was looked for, where there is none.
    """
    path = Path(name_or_path)
    if path.suffix.lower() in (".csv", ".jsonl", ".ndjson", ".parquet"):
        return load_manifest(path)
    if os.sep in name_or_path or "/" in name_or_path or name_or_path in (".", ".."):
        for file in MANIFESTS:
            if (path / file).is_file():
                return load_manifest(path / file)
        raise UserError(f"{path}: no manifest there (looked for {', '.join(MANIFESTS)})")
    known = corpus_manifests()
    if name_or_path not in known:
        raise UserError(
            f"unknown corpus '{name_or_path}'. {did_you_mean(name_or_path, known)} To use recordings of your own, give "
            "the path of their manifest; to make one of a published corpus, see `vibe-harness corpus prepare`."
        )
    return load_manifest(known[name_or_path], name_or_path)
