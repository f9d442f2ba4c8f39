"""Which corpora a run takes where the person names none, and what they are compared by."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.card_folder import Folder
from vibe_harness.cards.loading import Task
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.errors import UserError
from vibe_harness.planning.defaults import choose_corpora, choose_dimensions


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VIBE_HARNESS_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "corpora"


def prepared(data: Path, name: str, pitch: float = 110) -> None:
    """A corpus of eight clips: four speakers, with a gender and an accent each."""
    folder = data / name
    folder.mkdir(parents=True)
    rows = ["file,speaker,gender,accent"]
    for speaker in range(4):
        for take in range(2):
            time = np.arange(8_000) / 16_000
            wave = sum(
                np.sin(2 * np.pi * (pitch + 40 * (speaker % 2) + 7 * speaker + take) * k * time) / k
                for k in range(1, 9)
            )
            soundfile.write(folder / f"{speaker}{take}.wav", 0.2 * wave, 16_000)
            rows.append(f"{speaker}{take}.wav,s{speaker},{'fm'[speaker % 2]},{'xy'[speaker // 2]}")
    (folder / "manifest.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def tasks(root: Path, **dimensions: str) -> list[Task]:
    """A task for each name, with the dimensions given as YAML."""
    folder = Folder(root / "own")
    for name, written in dimensions.items():
        path = folder.card("dimensions: {gender: [demo]}", f"dimensions: {written}", name)
        path.write_text(path.read_text(encoding="utf-8").replace("task: t", f"task: {name}"), encoding="utf-8")
    return [folder.load(name) for name in dimensions]


def chosen(*arguments: object) -> dict[str, list[str]]:
    found = choose_corpora(*arguments)  # type: ignore[arg-type]
    return {corpus.name: [task.name for task in own] for corpus, own in found}


def test_one_that_is_named_is_taken_for_all_tasks(tmp_path: Path, data: Path) -> None:
    prepared(data, "one")
    both = tasks(tmp_path, a="{gender: [one]}", b="{accent: [elsewhere]}")
    assert chosen("demo", both, []) == {"demo": ["a", "b"]}


def test_else_every_one_at_hand_that_a_task_is_meant_for(tmp_path: Path, data: Path) -> None:
    for name in ("one", "two", "stranger"):
        prepared(data, name)
    both = tasks(tmp_path, a="{gender: [absent, one], accent: [two]}", b="{accent: [two, absent]}")
    assert chosen(None, both, []) == {"one": ["a"], "two": ["a", "b"]}
    assert chosen(None, both[:1], ["gender"]) == {"one": ["a"]}


def test_a_task_without_one_is_told_what_to_type(tmp_path: Path, data: Path) -> None:
    prepared(data, "one")
    a, b = tasks(tmp_path, a="{gender: [one]}", b="{gender: [crema-d], accent: [l2-arctic]}")
    with pytest.raises(UserError, match=r"'b'.*`vibe-harness corpus prepare crema-d --source DIR`.*l2-arctic") as error:
        choose_corpora(None, [a, b], [])
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="`vibe-harness corpus prepare l2-arctic --source DIR`"):
        choose_corpora(None, [b], ["accent"])
    with pytest.raises(UserError, match="'a' names none for age"):
        choose_corpora(None, [a], ["age"])


def test_dimensions_are_those_that_the_card_means_the_corpus_for(tmp_path: Path, data: Path) -> None:
    prepared(data, "one")
    corpus = find_corpus("one")
    [a] = tasks(tmp_path, a="{gender: [two], accent: [one]}")
    assert choose_dimensions([], corpus, [a]) == ["accent"]
    assert choose_dimensions(["gender", "gender"], corpus, [a]) == ["gender"]
    [b] = tasks(tmp_path / "b", b="{gender: [two], accent: [two], age: [one]}")
    assert choose_dimensions([], corpus, [b]) == ["gender", "accent"]  # it has no age, and b is meant for others
    with pytest.raises(UserError, match="no such column"):
        choose_dimensions(["gendr"], corpus, [a])


def test_a_run_over_several_has_a_folder_and_results_for_each(tmp_path: Path, data: Path) -> None:
    from vibe_harness import evaluate

    prepared(data, "one")
    prepared(data, "two", pitch=150)
    tasks(tmp_path, a="{gender: [one], accent: [two]}")
    (tmp_path / "own" / "models" / "plain.yaml").write_text(
        "model: plain\nbackend: simulated\nid: plain\nsimulated: true\nextractor: rules\n", encoding="utf-8"
    )
    found = evaluate(
        "plain", ["a"], include_path=[tmp_path / "own"], tau=1, permutations=9, output_path=tmp_path / "out"
    )
    assert [(one.corpus, one.tasks[0].dimension) for one in found] == [("one", "gender"), ("two", "accent")]
    for name in ("one", "two"):
        assert json.loads((tmp_path / "out" / name / "results.json").read_text(encoding="utf-8"))["corpus"] == name
