"""Finding a corpus by its name or by the path of its manifest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from vibe_harness.corpora.card import CARD_SUFFIXES
from vibe_harness.corpora.folders import corpus_folders, first_claims
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.corpora.own_card import load_by_card, load_with_card, manifest_of
from vibe_harness.errors import UserError
from vibe_harness.records import Clip
from vibe_harness.registry import did_you_mean

MANIFESTS = ("manifest.parquet", "manifest.csv", "manifest.jsonl")
SUFFIXES = (".csv", ".jsonl", ".ndjson", ".parquet")
AUDIO_SUFFIXES = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aiff", ".aif", ".au", ".caf", ".w64", ".m4a")


def corpus_manifests() -> dict[str, Path]:
    """Name -> manifest, for all corpora found; see `first_claims` for repeated names."""

    def manifests(root: Path) -> Iterator[tuple[str, Path]]:
        for folder in sorted(root.iterdir()) if root.is_dir() else ():
            yield from ((folder.name, folder / file) for file in MANIFESTS if (folder / file).is_file())

    return first_claims(manifests)


def find_manifest(name_or_path: str) -> Path:
    """Find a manifest by the corpus's name, the manifest's own path, or the folder that holds it.

    Raises UserError, with what was looked for, if there is none.
    """
    path = Path(name_or_path)
    if path.suffix.lower() in SUFFIXES:
        return path
    if path.suffix.lower() in CARD_SUFFIXES:
        return manifest_of(path)
    if os.sep in name_or_path or "/" in name_or_path or name_or_path in (".", ".."):
        for file in MANIFESTS:
            if (path / file).is_file():
                return path / file
        if not path.is_dir():
            raise UserError(f"{path}: no such folder")
        raise UserError(f"{path}: no manifest there (looked for {', '.join(MANIFESTS)})")
    known = corpus_manifests()
    if name_or_path not in known:
        if any((folder / f"{name_or_path}.yaml").is_file() for folder in corpus_folders()):
            raise UserError(
                f"corpus '{name_or_path}' is not prepared yet: run `vibe-harness corpus prepare {name_or_path}` with "
                "the --source that holds it"
            )
        if name_or_path and path.is_dir():
            raise UserError(
                f"unknown corpus '{name_or_path}'. The folder of that name here is given as '{name_or_path}/'"
            )
        raise UserError(
            f"unknown corpus '{name_or_path}'. {did_you_mean(name_or_path, known)} To use recordings of your own, give "
            "the path of their manifest; to make one of a published corpus, see `vibe-harness corpus prepare`."
        )
    return known[name_or_path]


def find_corpus(name_or_path: str) -> Corpus:
    """Load a corpus by name, manifest, folder or card; a card beside the manifest applies. See `find_manifest`."""
    path = Path(name_or_path)
    if path.suffix.lower() in CARD_SUFFIXES:
        return load_by_card(path)
    return load_with_card(find_manifest(name_or_path))


def find_audio(name_or_path: str) -> Corpus:
    """Load audio to check: a corpus as in `find_corpus`, or a folder of audio files without a manifest."""
    folder = Path(name_or_path)
    if folder.is_dir() and not any((folder / file).is_file() for file in MANIFESTS):
        return _folder_as_corpus(folder)
    return find_corpus(name_or_path)


def _folder_as_corpus(folder: Path) -> Corpus:
    """Every audio file below a folder, as a corpus without groups or known speakers.

    Raises UserError if no file has the extension of an audio file.
    """
    clips = tuple(
        Clip(f"{folder.name}/{path.relative_to(folder).as_posix()}", path.relative_to(folder).as_posix(), "unknown", {})
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in AUDIO_SUFFIXES
    )
    if not clips:
        raise UserError(f"{folder}: no manifest and no audio files there")
    return Corpus(folder.resolve().name, folder, clips)
