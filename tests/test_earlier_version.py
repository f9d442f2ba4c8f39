"""Finished run folders that version 0.1.0 wrote still open: they are scored, reported, compared and put on a board."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

import vibe_harness
from tests.support import ROOT
from vibe_harness.errors import UserError
from vibe_harness.store.results import read_verified_results
from vibe_harness.store.run_folder import RunFolder


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
