"""Add aliases to an alias file. Comments and order are kept, and only valid files are written."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vibe_harness.cards.aliases import read_aliases
from vibe_harness.cards.loading import Task
from vibe_harness.cards.paths import find_file
from vibe_harness.cards.spelling import fold
from vibe_harness.errors import UserError
from vibe_harness.library import library_root, package_roots
from vibe_harness.store.atomic_files import atomic_write


def add_aliases(task: Task, attribute: str, accepted: Mapping[str, str]) -> Path:
    """Add spellings (spelling -> canonical value) to the alias file of an attribute. Returns the file.

    Raises UserError, and leaves the file unchanged, if the card names no alias file, if the file belongs to an
    installed package, or if it would be invalid: a spelling with two values, or aliases in a chain or cycle.
    """
    spec = task.card.extraction.attributes[attribute]
    if spec.aliases is None:
        raise UserError(
            f"{task.path}: the attribute '{attribute}' names no alias file: make one below templates/ (with the line "
            f"'{{}}' in it), and name it in the card: aliases: {task.name}/{attribute}.yaml"
        )
    path = find_file(task.templates.roots, spec.aliases)
    if _is_installed(path):
        raise UserError(
            f"{path}: belongs to an installed package, and is left alone: copy the task '{task.name}' into a folder of "
            "your own under another name (its card, and its folder in templates/), and go on with that"
        )
    read_aliases(path, spec)  # raises if the file is already invalid
    text = _with(path, accepted)
    with atomic_write(path) as aside:
        aside.write_text(text, encoding="utf-8")
        try:
            read_aliases(aside, spec)
        except UserError as error:
            told = str(error).replace(str(aside), str(path))
            raise UserError(f"{told}\nNothing was written") from None
    return path


def _with(path: Path, accepted: Mapping[str, str]) -> str:
    """The text of the file with the spellings added."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedSeq

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1_000_000  # keeps line breaks as they are
    data: Any = yaml.load(path.read_text(encoding="utf-8"))
    data.fa.set_block_style()  # for a file that contains only {}
    keys = {fold(key): key for key in data}
    for spelling, value in accepted.items():
        key = keys.setdefault(fold(value), value)
        if key not in data:
            data[key] = CommentedSeq()
            data[key].fa.set_flow_style()
        data[key].append(spelling)
    out = io.StringIO()
    yaml.dump(data, out)
    return out.getvalue()


def _is_installed(path: Path) -> bool:
    """Whether a file belongs to an installed package. Files of a checkout do not."""
    root = library_root()
    installed = [*package_roots(), *([root] if root.name == "library" else [])]
    return any(path.resolve().is_relative_to(folder.resolve()) for folder in installed)
