"""A checkpoint that comes along with the harness: found from anywhere, and refused where a file has changed."""

import shutil
from pathlib import Path

import pytest

from vibe_harness.backends.local import checkpoint as module
from vibe_harness.backends.local.checkpoint import checkpoint, checkpoint_digest
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "models" / "small" / "checkpoint"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"weights")
    monkeypatch.setattr(module, "library_root", lambda: tmp_path)
    return folder


def card(name: str, revision: str | None) -> ModelCard:
    return ModelCard(model="small", backend="hf", id=name, revision=revision)


def test_the_folder_is_found_and_the_id_is_the_same_everywhere(library: Path) -> None:
    written = card("library:small/checkpoint", checkpoint_digest(library))
    assert checkpoint(written) == {"id": str(library.resolve()), "revision": None}
    assert written.identity()["id"] == "library:small/checkpoint"


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_changed_file_is_refused(library: Path, file: str) -> None:
    written = card("library:small/checkpoint", checkpoint_digest(library))
    (library / file).write_bytes(b"others")
    with pytest.raises(UserError, match=r"^the model 'small': the files in .* have the digest [0-9a-f]{32}, and its"):
        checkpoint(written)


def test_a_card_without_a_digest_is_refused(library: Path) -> None:
    with pytest.raises(UserError, match="its card says None"):
        checkpoint(card("library:small/checkpoint", None))


@pytest.mark.parametrize("name", ["library:small/gone", "library:", "library:../elsewhere"])
def test_a_missing_checkpoint_is_named(library: Path, name: str) -> None:
    shutil.copytree(library, library.parents[2] / "elsewhere")
    with pytest.raises(UserError, match="there is no checkpoint"):
        checkpoint(card(name, "0"))


def test_the_hub_s_names_pass_through() -> None:
    assert checkpoint(card("org/name", "abc")) == {"id": "org/name", "revision": "abc"}
