"""All five tasks, end to end, on the demo corpus and on real recordings where they are at hand."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from tests.support import SHARED, needs_recordings
from vibe_harness import evaluate
from vibe_harness.store.results import Results

TASKS = {"story": 6, "advisory": 1, "candidate": 4, "casting": 4, "shopper": 4}  # attributes of each
FIRST_LANGUAGES = {"amharic", "arabic", "bulgarian", "cantonese", "dutch", "russian"}


def check(results: Results, dimensions: dict[str, int], clips: int) -> None:
    """Every task compared by every dimension, every clip accounted for, and no score without a value or a reason.

    dimensions: name -> number of its groups.
    """
    assert {(task.task, task.dimension) for task in results.tasks} == {(t, d) for t in TASKS for d in dimensions}
    for task in results.tasks:
        assert len(task.groups) == dimensions[task.dimension]
        assert sum(group.requests for group in task.groups.values()) == clips
        for group in task.groups.values():
            assert sum(group.outcomes.values()) == group.requests
            assert all(sum(readings.values()) == group.requests for readings in group.readings.values())
        whole, *attributes = [score for score in task.scores if score.metric == "ntvd"]
        assert whole.attribute is None and len(attributes) == TASKS[task.task]
        assert any(score.metric == "refusal_ntvd" for score in task.scores)
        for score in (whole, *attributes):
            assert (score.value is None) == (score.undefined is not None)
            assert score.value is None or (0 <= score.value <= 100 and score.p_value and score.permuted)
        left_out = whole.detail["attributes_left_out"]
        assert set(left_out) == {score.attribute for score in attributes if score.value is None}
        values = [score.value for score in attributes if score.value is not None]
        assert whole.value == pytest.approx(sum(values) / len(values))  # the plain mean (VIBE, equation 5)


@pytest.mark.slow
def test_all_tasks_on_the_demo_corpus(tmp_path: Path) -> None:
    [results] = evaluate("simulated", list(TASKS), tau=3, permutations=99, output_path=tmp_path)
    assert results.simulated and results.corpus_synthetic and results.corpus == "demo"
    check(results, {"gender": 2, "accent": 4}, clips=96)


@needs_recordings
def test_all_tasks_on_real_recordings_of_actors(tmp_path: Path) -> None:
    manifest = SHARED / "corpora" / "ravdess" / "manifest.csv"
    [results] = evaluate("simulated", list(TASKS), manifest, tau=3, permutations=99, output_path=tmp_path)
    assert not results.corpus_synthetic
    check(results, {"gender": 2}, clips=48)


def accent_archive(folder: Path) -> Path:
    """A manifest of the recordings of the Speech Accent Archive at hand, out of its own table."""
    source = SHARED / "corpora" / "saa"
    shutil.copytree(source / "recordings" / "recordings", folder / "recordings")
    recordings = {path.stem: path.name for path in (folder / "recordings").iterdir()}
    with (source / "speakers_all.csv").open(encoding="utf-8", newline="") as file:
        speakers = [row for row in csv.DictReader(file) if row["filename"] in recordings]
    path = folder / "manifest.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "speaker", "accent", "gender"])
        for row in speakers:
            name = f"recordings/{recordings[row['filename']]}"
            writer.writerow([name, row["speakerid"], row["native_language"], row["sex"]])
    return path


@pytest.mark.slow  # 72 clips of half a minute; the actors above are real recordings too
@needs_recordings
def test_all_tasks_on_real_recordings_of_accents(tmp_path: Path) -> None:
    manifest = accent_archive(tmp_path)
    [results] = evaluate(
        "simulated", list(TASKS), manifest, dimensions=["accent", "gender"], tau=3, permutations=99,
        output_path=tmp_path / "run",
    )  # fmt: skip
    check(results, {"accent": 6, "gender": 2}, clips=72)
    assert set(results.tasks[0].groups) == FIRST_LANGUAGES
