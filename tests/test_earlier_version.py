"""Finished run folders that version 0.1.0 wrote still open: they are scored, reported, compared and put on a board."""

import json
import shutil
import zipfile
from pathlib import Path

import pandas as pd
import pytest

import vibe_harness
from tests.support import ROOT
from vibe_harness.errors import UserError
from vibe_harness.store.checksums import write_sums
from vibe_harness.store.results import read_verified_results
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.studies.study import read_study
from vibe_harness.studies.study_folder import StudyFolder


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder with runs of the simulated model by version 0.1.0: `advisory`, `biasinear` and the study `voices`."""
    with zipfile.ZipFile(ROOT / "tests" / "data" / "runs-of-0.1.0.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["advisory", "biasinear", "voices/simulated/demo/advisory"])
def test_its_scores_are_read_and_made_anew(old, name):
    folder = RunFolder(old / name)
    before = read_verified_results(folder)
    after = vibe_harness.score(folder.path, tau=before.tau, permutations=before.permutations)
    scores = [{(t.dimension, s.metric, s.attribute): s.value for t in one.tasks for s in t.scores}
              for one in (before, after)]  # fmt: skip
    assert len(scores[0]) > 3 and scores[1] == {name: pytest.approx(value) for name, value in scores[0].items()}
    assert vibe_harness.write_report(folder.path).is_file()


def test_it_is_compared_and_stands_on_a_leaderboard(old):
    shutil.copytree(old / "advisory", old / "later")
    compared = vibe_harness.compare(old / "advisory", old / "later")
    assert [one.whole.difference for one in compared.compared] == [0.0] * len(compared.compared)
    vibe_harness.write_leaderboard([old / "advisory"], old / "site", include_simulated=True)
    assert "simulated" in (old / "site" / "index.html").read_text(encoding="utf-8")


def test_a_format_that_is_not_known_is_refused_by_name(old):
    path = RunFolder(old / "advisory").run_json
    data = json.loads(path.read_text(encoding="utf-8"))
    for number in (1, 99):
        path.write_text(json.dumps({**data, "format": number}), encoding="utf-8")
        with pytest.raises(UserError, match=f"format {number}"):
            RunFolder(old / "advisory").record()


def test_its_test_is_named_and_what_it_got_wrong(old, quick):
    said = quick("run-check", "--tests", old / "advisory", check=0).stdout
    assert "advisory: speakers, not studentised (version 0.1.0)" in said  # as many clips a speaker: its p stands
    assert "its p come from the test of version 0.1.0" in quick("run-check", old / "advisory", check=1).stdout
    few = pd.read_parquet(old / "advisory" / "observations.parquet")
    few["reading"] = few["reading"].astype(str).where(few["speaker"] != few["speaker"].iloc[0], "none")
    few["reading"] = few["reading"].astype("category")
    few.to_parquet(old / "advisory" / "observations.parquet")
    write_sums(RunFolder(old / "advisory"))
    done = quick("run-check", "--tests", old / "advisory", check=1)
    assert "p is wrong for advisory/default by gender: answers a speaker vary by" in done.stdout
    quick("score", old / "advisory", "--tau", 2, "--permutations", 99)
    assert "studentised-speakers" in quick("run-check", "--tests", old / "advisory", check=0).stdout


def test_runs_of_two_tests_stand_on_no_one_board_and_are_not_merged(old):
    later = old / "later"
    shutil.copytree(old / "advisory", later)
    vibe_harness.score(later, tau=2, permutations=99)
    vibe_harness.write_leaderboard([old / "advisory", later], old / "site", include_simulated=True)
    page = (old / "site" / "index.html").read_text(encoding="utf-8")
    assert "another run of the same question as later" in page
    other = old / "other"
    vibe_harness.evaluate("simulated", "advisory", limit=8, tau=1, permutations=99, output_path=other)
    vibe_harness.write_leaderboard([old / "advisory", other], old / "site", include_simulated=True)
    page = (old / "site" / "index.html").read_text(encoding="utf-8")
    assert "scored by another test than the others" in page
    shutil.copytree(old / "voices", old / "shard")
    vibe_harness.score(old / "shard" / "simulated" / "demo" / "advisory", tau=2, permutations=99)
    study = read_study(old / "voices.yaml")
    with pytest.raises(UserError, match="scored by the test 'studentised-speakers'"):
        StudyFolder(old / "voices", study).merge(old / "shard")
