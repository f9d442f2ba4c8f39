"""The checkpoint of a card: from the hub, a folder, or the built-in models."""

from __future__ import annotations

import hashlib
from pathlib import Path

from vibe_harness.cards.digest import digest
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError
from vibe_harness.library import library_root

LIBRARY = "library:"  # prefix of a path below the built-in models/, the same on every machine


def checkpoint(card: ModelCard) -> dict[str, str | None]:
    """The name and the revision of the weights, as keyword arguments `id` and `revision` for engines.

    The revision of a built-in checkpoint is the digest of its files. Raises UserError if it is missing, or if its
    digest is not the card's.
    """
    if not card.id.startswith(LIBRARY):
        return {"id": card.id, "revision": card.revision}
    models = (library_root() / "models").resolve()
    folder = (models / card.id.removeprefix(LIBRARY)).resolve()
    if not folder.is_relative_to(models) or not (folder / "config.json").is_file():
        raise UserError(f"the model '{card.model}': there is no checkpoint '{card.id}' in {models}")
    found = checkpoint_digest(folder)
    if found != card.revision:
        raise UserError(
            f"the model '{card.model}': the files in {folder} have the digest {found}, but its card has "
            f"{card.revision}: install vibe-harness again, or write a card of your own for other weights"
        )
    return {"id": str(folder), "revision": None}


def checkpoint_digest(folder: Path) -> str:
    """Digest (32 hex digits) of a checkpoint's files: weights, configuration, tokenizer, processor."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".safetensors", ".json", ".jinja"))
    return digest([[path.name, hashlib.sha256(path.read_bytes()).hexdigest()] for path in files])
