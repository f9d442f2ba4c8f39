"""The checkpoint of a card: from the hub, a folder, or the built-in models."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from vibe_harness.cards.digest import digest
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError
from vibe_harness.library import library_root

LIBRARY = "library:"  # prefix of a path below the built-in models/, the same on every machine
CONFIGURATIONS = ("config.json", "params.json")  # the latter in folders of Mistral's own format
WEIGHTS = (".safetensors", ".bin", ".pt")
HASHED = (*WEIGHTS, ".json", ".jinja", ".model", ".txt", ".tiktoken", ".py")
WORDS = ("tokenizer", "processor_config", "preprocessor_config", "tekken", "vocab")  # how files of a processor begin


def checkpoint(card: ModelCard) -> dict[str, str | None]:
    """The name and the revision of the weights, as keyword arguments `id` and `revision` for engines.

    The revision of a built-in checkpoint is the digest of its files. Raises UserError if it is missing, or if its
    digest is not the card's.
    """
    if card.id.startswith(LIBRARY):
        folder = _of_library(card)
        check_revision(card, folder)
        return {"id": str(folder), "revision": None}
    own = folder_of(card)
    return {"id": card.id, "revision": card.revision} if own is None else {"id": str(own), "revision": None}


def pinned(card: ModelCard) -> ModelCard:
    """The card with the digest of its files for a revision, where its id names a folder; else the card as it is.

    Raises UserError where the folder is missing or holds no whole checkpoint, and where the card names another digest.
    """
    folder = None if card.id.startswith(LIBRARY) else folder_of(card)
    if folder is None:
        return card
    check_folder(card, folder)
    if card.revision is not None:
        check_revision(card, folder)
        return card
    return card.model_copy(update={"revision": checkpoint_digest(folder)})


def folder_of(card: ModelCard) -> Path | None:
    """The folder that a card's id names; None for a name on the hub. Raises UserError for a path to no folder."""
    path = Path(card.id).expanduser()
    if path.is_dir():
        return path
    if not path.exists() and (card.id.startswith(("/", ".", "~")) or card.id.count("/") > 1 or "\\" in card.id):
        raise UserError(f"the model '{card.model}': there is no folder {card.id}")
    return None


def check_folder(card: ModelCard, folder: Path) -> None:
    """Raise UserError, in one line, where a folder does not hold a whole checkpoint."""
    names = {path.name for path in folder.iterdir()}
    if not names.intersection(CONFIGURATIONS):
        if "adapter_config.json" in names:
            what = "it holds an adapter alone: merge it into its base model, and save the whole model"
        else:
            inside = sorted(path.parent.name for path in folder.glob("*/config.json"))[:3]
            what = "it has no config.json" + (f"; its folder {', '.join(inside)} has one" if inside else "")
    elif not any(name.endswith(WEIGHTS) for name in names):
        what = f"it has no weights ({', '.join(f'*{suffix}' for suffix in WEIGHTS)})"
    elif missing := sorted(set(_shards(folder)) - names):
        what = f"it lacks {missing[0]}, which its index names: copy it whole"
    elif not any(name.startswith(WORDS) for name in names):
        what = "it has no tokenizer or processor: save that of the base model into it (processor.save_pretrained)"
    else:
        return
    raise UserError(f"the model '{card.model}': {folder} is no whole checkpoint: {what}")


def check_revision(card: ModelCard, folder: Path) -> None:
    """Raise UserError where the files have another digest than the card's revision."""
    found = checkpoint_digest(folder)
    if found != card.revision:
        again = "install vibe-harness again, or write" if card.id.startswith(LIBRARY) else "write that, or"
        raise UserError(
            f"the model '{card.model}': the files in {folder} have the digest {found}, and its card says "
            f"{card.revision}: {again} a card of your own for other weights"
        )


def checkpoint_digest(folder: Path) -> str:
    """Digest (32 hex digits) of a checkpoint's files: weights, configuration, tokenizer, processor, code.

    Files in folders below count too, such as adapters that the model loads, but not those of other checkpoints.
    """
    files = sorted(_files(folder), key=lambda path: path.relative_to(folder).as_posix())
    return digest([[path.relative_to(folder).as_posix(), _sum_of(path)] for path in files])


def _of_library(card: ModelCard) -> Path:
    models = (library_root() / "models").resolve()
    folder = (models / card.id.removeprefix(LIBRARY)).resolve()
    if not folder.is_relative_to(models) or not (folder / "config.json").is_file():
        raise UserError(f"the model '{card.model}': there is no checkpoint '{card.id}' in {models}")
    return folder


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            if not any((path / name).is_file() for name in CONFIGURATIONS):
                yield from _files(path)
        elif path.suffix in HASHED:
            yield path


def _shards(folder: Path) -> Iterator[str]:
    for index in folder.glob("*.safetensors.index.json"):
        try:
            yield from json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(f"{index}: not an index of weights") from None


def _sum_of(path: Path) -> str:
    status = path.stat()
    return _sum(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1024)
def _sum(path: Path, size: int, mtime_ns: int) -> str:
    """SHA-256 of a file in hex, computed once for each size and time of the file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
