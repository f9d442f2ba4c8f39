"""The guides, followed to the letter: from the documentation alone, nothing of the package touched."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.docs.guide import follow
from tests.loopback import Loopback, texts_of
from tests.support import ROOT
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.library import library_root

pytestmark = pytest.mark.slow

LIBRARY = ("tasks", "templates", "models", "corpora", "vibe_harness")


def state() -> dict[str, float]:
    """Every file of the package, with the time it was written."""
    files = [path for folder in LIBRARY for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    return {str(path): path.stat().st_mtime for path in files if path.is_file()}


@pytest.fixture(autouse=True)
def untouched() -> object:
    before = state()
    yield
    assert state() == before


def results(folder: Path, run: str) -> dict:
    return json.loads((folder / "runs" / run / "results.json").read_text(encoding="utf-8"))


def four_speakers(folder: Path) -> None:
    """The recordings that the reader of a guide has."""
    clips = library_root() / "corpora" / "demo" / "clips"
    for speaker, voice in (("anna", "f01"), ("bea", "f02"), ("carl", "m01"), ("dan", "m02")):
        (folder / speaker).mkdir(parents=True)
        for number in (1, 2):
            shutil.copy(clips / f"{voice}_s{number}.ogg", folder / speaker / f"{number}.ogg")


def test_the_first_hour(tmp_path: Path) -> None:
    printed = follow("first-hour.md", tmp_path)
    assert (tmp_path / "runs" / "first" / "report.html").is_file()
    assert results(tmp_path, "first")["tau"] == 5
    assert "96 of 96 clips can be used" in printed and "\nntvd " in printed


def test_a_sixth_task_with_attributes_of_its_own(tmp_path: Path) -> None:
    printed = follow("adding-a-task.md", tmp_path)
    assert "nothing to mend" in printed
    [task] = results(tmp_path, "pets")["tasks"]
    assert task["task"] == "pets" and {score["attribute"] for score in task["scores"]} >= {"animal", "size", "care"}
    aliases = (tmp_path / "own" / "templates" / "pets" / "animal.yaml").read_text(encoding="utf-8")
    assert "meadow: [heath]" in aliases and "# Only true synonyms" in aliases
    assert task["alias_files"]["animal"].startswith("pets/animal.yaml@")


def test_a_choice_task(tmp_path: Path) -> None:
    four_speakers(tmp_path / "questions")
    assert "nothing to mend" in follow("adding-a-choice-task.md", tmp_path)
    [task] = results(tmp_path, "goes_on")["tasks"]
    assert task["task"] == "goes_on" and "accuracy" in {score["metric"] for score in task["scores"]}
    assert sum(group["requests"] for group in task["groups"].values()) == 16  # eight clips, two orders


def test_a_model_on_a_local_server(tmp_path: Path) -> None:
    said = texts_of(find_corpus("demo"))
    with Loopback(models=["org/name-the-server-knows", "org/text-model"], says=said) as server:
        follow("adding-a-model.md", tmp_path, {"http://localhost:8000/v1": server.url})
        heard = server.seen()["heard"]
    found = results(tmp_path, "mine")
    assert (found["model"], found["extractor"], found["hearing_check"]) == ("mine", "my-reader", "passed")
    assert len(heard) >= 32


def test_a_corpus_from_a_table(tmp_path: Path) -> None:
    four_speakers(tmp_path / "voices")
    printed = follow("adding-a-corpus.md", tmp_path)
    assert "8 of 8 clips can be used" in printed
    found = results(tmp_path, "four-voices")
    assert found["corpus"] == "voices" and found["tasks"][0]["groups"].keys() == {"female", "male"}
    # Two speakers in each of two groups: three ways to part them, as the page says.
    assert min(s["p_value"] for s in found["tasks"][0]["scores"] if s["p_value"]) >= 1 / 3


def test_a_package_with_one_of_each(tmp_path: Path) -> None:
    clips = library_root() / "corpora" / "demo" / "clips"
    (tmp_path / "recordings").mkdir()
    for clip in sorted(clips.glob("*_s[12].ogg")):
        shutil.copy(clip, tmp_path / "recordings")
    (tmp_path / "recordings" / "readme.ogg").write_bytes(b"")
    printed = follow("adding-code.md", tmp_path)
    assert "nothing to mend" in printed and "left out: 1, name is not VOICE_SENTENCE.ogg" in printed
    assert results(tmp_path, "glow")["corpus"] == "glow-recordings"
    assert results(tmp_path, "glow")["extractor"] == "glow-lines"
    bright, calm = (results(tmp_path, run)["tasks"][0] for run in ("glow", "calm"))
    scores = {score["metric"]: score for score in bright["scores"] if score["attribute"] is None}
    assert scores["answer_length"]["value"] == 1 and scores["ntvd"]["value"] > 0
    counted = [score["undefined"] for score in calm["scores"] if score["metric"] == "ntvd" and score["attribute"]]
    assert all(counted)  # every recording is calm: one value, and nothing to compare
