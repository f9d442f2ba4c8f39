"""Skeletons: valid as they stand, and never over what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.corpora.sounds import speechlike, write
from vibe_harness.authoring.skeletons import new_corpus, new_model, new_task
from vibe_harness.backends.protocol import check_options
from vibe_harness.cards.loading import CardIndex
from vibe_harness.corpora.card import CorpusCard
from vibe_harness.corpora.manifest import load_manifest
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.errors import UserError


def test_a_task_loads(tmp_path: Path) -> None:
    new_task("hats.v2", tmp_path)
    [task] = CardIndex([tmp_path]).tasks(["hats.v2"])
    assert task.card.prompts == {"default": "hats.v2/default.j2"}
    assert task.aliases["animal"]["kitty"] == "cat"


def test_a_model_loads_and_its_backend_takes_it(tmp_path: Path) -> None:
    new_model("mine", tmp_path)
    card = CardIndex([tmp_path]).model("mine")
    check_options(card)
    assert card.connection["concurrency"] == 8


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", "-x", "x" * 101, "é"])
def test_names_that_are_none(tmp_path: Path, name: str) -> None:
    for new in (new_task, new_model):
        with pytest.raises(UserError, match="is no name for a"):
            new(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_taken(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is a task 'story' already"):
        new_task("story", tmp_path)
    with pytest.raises(UserError, match="there is a model 'qwen2-audio' already"):
        new_model("qwen2-audio", tmp_path)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    kept = tmp_path / "templates" / "pets" / "extract.j2"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match="there already: nothing was written"):
        new_task("pets", tmp_path)
    assert kept.read_text(encoding="utf-8") == "mine"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [kept]


def test_a_folder_of_recordings(tmp_path: Path) -> None:
    for name in ("anna/1.wav", "anna/deep/2.wav", "ben/1.wav"):
        write(tmp_path / "voices" / name, speechlike(0.3, seed=len(name)))
    new_corpus(tmp_path / "voices")
    corpus = load_manifest(tmp_path / "voices" / "manifest.csv")
    assert [(clip.file, clip.speaker) for clip in corpus.clips] == [
        ("anna/1.wav", "anna"), ("anna/deep/2.wav", "anna"), ("ben/1.wav", "ben"),
    ]  # fmt: skip
    assert find_corpus(str(tmp_path / "voices" / "manifest.csv")).clips == corpus.clips
    card = (tmp_path / "voices" / "manifest.yaml").read_text(encoding="utf-8")
    assert card.splitlines()[1] == "corpus: voices"
    everything = "\n".join(re.sub("^# ", "", line) for line in card.splitlines()[1:])  # as a person fills it in
    assert CorpusCard.model_validate(yaml.safe_load(everything)).select.min_speakers == 2
    assert "# voices" in (tmp_path / "voices" / "README.md").read_text(encoding="utf-8")
    with pytest.raises(UserError, match="there already: nothing was written"):
        new_corpus(tmp_path / "voices")


def test_a_recording_of_nobody_known_is_left_to_fill_in(tmp_path: Path) -> None:
    write(tmp_path / "voices" / "1.wav", speechlike(0.3))
    new_corpus(tmp_path / "voices")
    with pytest.raises(UserError, match=r"manifest.csv:2: 'speaker' is empty"):
        load_manifest(tmp_path / "voices" / "manifest.csv")


def test_folders_without_recordings(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(UserError, match=r"put (them|the recordings) there first, as SPEAKER/CLIP\.wav"):
            new_corpus(folder)
