"""Commented, valid skeletons for new cards: a task, a model, or the manifest of a corpus."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from vibe_harness.cards.loading import CardIndex
from vibe_harness.corpora.registry import AUDIO_SUFFIXES, MANIFESTS
from vibe_harness.errors import UserError, write_failed

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MANIFEST_COLUMNS = ("file", "speaker", "gender", "text")


def new_task(name: str, folder: Path) -> list[Path]:
    """Write a task card, two templates and an alias file into a folder of cards. Returns the files.

    Raises UserError if the name is invalid or taken, or if a file exists.
    """
    _check_name("task", name, CardIndex([folder] if folder.is_dir() else []).task_files())
    files = {
        f"tasks/{name}.yaml": "task.yaml",
        f"templates/{name}/default.j2": "prompt.j2",
        f"templates/{name}/extract.j2": "extract.j2",
        f"templates/{name}/animal.yaml": "aliases.yaml",
    }
    return _write(folder, {path: _skeleton(source, name) for path, source in files.items()})


def new_model(name: str, folder: Path) -> list[Path]:
    """Write a model card into a folder of cards; see `new_task`."""
    index = CardIndex([folder] if folder.is_dir() else [])
    _check_name("model", name, dict.fromkeys(index.model_names(), folder / "models"))
    return _write(folder, {f"models/{name}.yaml": _skeleton("model.yaml", name)})


def new_corpus(folder: Path) -> list[Path]:
    """Write the manifest of a folder of recordings, one row a recording, its corpus card, and a data card to fill in.

    The speaker of a recording is the name of its sub-folder, and empty for recordings outside sub-folders. The user
    fills in the groups. Raises UserError if there are no recordings, or if there is a manifest already.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder: put the recordings there first, as SPEAKER/CLIP.wav")
    there = next((folder / name for name in MANIFESTS if (folder / name).exists()), None)
    if there:
        raise UserError(f"{there}: there already: nothing was written")
    audio = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in AUDIO_SUFFIXES]
    if not audio:
        raise UserError(f"{folder}: no recordings there: put them there first, as SPEAKER/CLIP.wav")
    rows = [[path.relative_to(folder).as_posix(), _speaker(path, folder), "", ""] for path in audio]
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([MANIFEST_COLUMNS, *rows])
    name = folder.resolve().name
    card = _skeleton("corpus.yaml", name if _NAME.fullmatch(name) else "mine")
    return _write(
        folder,
        {"manifest.csv": table.getvalue(), "manifest.yaml": card, "README.md": _skeleton("corpus.md", name)},
    )


def _speaker(path: Path, folder: Path) -> str:
    parts = path.relative_to(folder).parts
    return parts[0] if len(parts) > 1 else ""


def _check_name(kind: str, name: str, taken: Mapping[str, Path]) -> None:
    if not _NAME.fullmatch(name):
        raise UserError(f"'{name}' is no name for a {kind}: use letters, digits, '-', '_' and '.'")
    if name in taken:
        raise UserError(f"there is a {kind} '{name}' already ({taken[name]}): choose another name")


def _skeleton(file: str, name: str) -> str:
    text = resources.files("vibe_harness.authoring").joinpath("skeleton_files", file).read_text(encoding="utf-8")
    return text.replace("NAME", name)


def _write(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write all files, or none if one of them exists."""
    paths = {folder / name: text for name, text in files.items()}
    there = [path for path in paths if path.exists()]
    if there:
        raise UserError(f"{there[0]}: there already: nothing was written")
    for path, text in paths.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise write_failed(f"{path}: cannot be written", error) from None
    return list(paths)
