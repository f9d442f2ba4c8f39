"""Where a card's weights are loaded from: the hub, a folder, or a checkpoint that comes along with the harness."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from vibe_harness.cards.digest import digest
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError
from vibe_harness.library import library_root

LIBRARY = "library:"  # ahead of a folder's path below the built-in models/, so that an id is the same on every machine


def checkpoint(card: ModelCard) -> dict[str, str | None]:
    """The name and the revision of the weights, as keyword arguments `id` and `revision` for engines.

    A checkpoint of the library has the digest of its files for its revision. Raises UserError where it is missing, or
    where a file differs from those that the card was written for.
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
            f"the model '{card.model}': the files in {folder} have the digest {found}, and its card says "
            f"{card.revision}: install vibe-harness again, or write a card of your own for other weights"
        )
    return {"id": str(folder), "revision": None}


def adapter_folder(card: ModelCard, weights: Mapping[str, str | None], name: str) -> Path:
    """The folder of a LoRA adapter that comes with a model's weights: folder `name` of them.

    weights: as `checkpoint` returns them. From the hub it is downloaded, or read from the cache. Raises UserError where
    it is not there: without it the model would be another.
    """
    folder = Path(str(weights["id"]))
    if not folder.is_dir():
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

        try:
            folder = Path(snapshot_download(card.id, revision=weights["revision"], allow_patterns=[f"{name}/*"]))
        except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
            said = " ".join(str(error).split())[:300]
            raise UserError(
                f"the model '{card.model}': its adapter '{name}' cannot be loaded from {card.id}: {said}"
            ) from None
    adapter = (folder / name).resolve()
    if not (adapter / "adapter_config.json").is_file():
        raise UserError(
            f"the model '{card.model}': there is no adapter in {adapter} (adapter_config.json); the model hears with "
            "it alone: load the whole repository of the model"
        )
    return adapter


def checkpoint_digest(folder: Path) -> str:
    """Digest (32 hex digits) of a checkpoint's files: weights, configuration, tokenizer, processor."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".safetensors", ".json", ".jinja"))
    return digest([[path.name, hashlib.sha256(path.read_bytes()).hexdigest()] for path in files])
