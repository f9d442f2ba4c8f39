"""Alias files that change: nothing is asked anew, every answer is read anew, and the scores say which file it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.card_folder import Folder
from vibe_harness import evaluate
from vibe_harness.pipeline import run as stages
from vibe_harness.store.results import Results
from vibe_harness.store.run_folder import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "own")
    folder.card("{values: open}", "{values: open, aliases: a.yaml}")
    folder.template("a.yaml", "cedar: [ochre]")
    return folder


def ask(folder: Folder) -> Results:
    [results] = evaluate(
        "simulated", ["t"], dimensions=["gender"], limit=48, tau=1, permutations=9, include_path=[folder.root],
        output_path=folder.root / "run",
    )  # fmt: skip
    return results


def values(folder: Folder) -> set[str]:
    import pandas as pd

    frame = pd.read_parquet(folder.root / "run" / "observations.parquet")
    return set(frame["values"].explode().dropna())


def test_answers_are_kept_and_read_anew(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = ask(folder)
    assert {"cedar", "birch"} <= values(folder)
    responses = (folder.root / "run" / "responses.jsonl").read_bytes()
    folder.template("a.yaml", "cedar: [ochre, birch]")
    monkeypatch.setattr(stages, "generate", None)  # asking anything would fail
    after = ask(folder)
    assert (folder.root / "run" / "responses.jsonl").read_bytes() == responses
    assert "birch" not in values(folder) and "cedar" in values(folder)
    assert before.tasks[0].task_digest != after.tasks[0].task_digest
    files = [results.tasks[0].alias_files["a"] for results in (before, after)]
    assert files[0] != files[1] and all(file.startswith("a.yaml@") for file in files)


def test_a_comment_in_an_alias_file_changes_nothing(folder: Folder) -> None:
    before = ask(folder)
    folder.template("a.yaml", "# other names\ncedar: [ochre]")
    assert ask(folder) == before


def test_observations_of_other_aliases_are_not_scored_under_the_new_ones(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(folder)
    folder.template("a.yaml", "cedar: [ochre, birch]")

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stages, "extract", stopped)
    with pytest.raises(KeyboardInterrupt):
        ask(folder)
    assert not RunFolder(folder.root / "run").observations.exists()
