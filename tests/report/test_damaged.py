"""A Parquet file with a whole footer and a damaged body is one line, whoever reads it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vibe_harness import evaluate
from vibe_harness.corpora.manifest import load_manifest
from vibe_harness.errors import UserError
from vibe_harness.metrics.metric import Settings
from vibe_harness.progress import Progress
from vibe_harness.report.board_runs import read_entries
from vibe_harness.report.run_page import write_run_page
from vibe_harness.scoring.score import score_run
from vibe_harness.store.checksums import write_sums
from vibe_harness.store.run_folder import RunFolder


def damage(path: Path) -> None:
    """Overwrite the pages of the first columns, and leave the footer."""
    data = bytearray(path.read_bytes())
    data[4 : len(data) // 2] = b"\xff" * (len(data) // 2 - 4)
    path.write_bytes(data)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    evaluate("simulated", ["advisory"], dimensions=["gender"], limit=16, tau=1, permutations=9, output_path=tmp_path)
    return RunFolder(tmp_path)


def test_scoring_says_it_in_a_line(run: RunFolder) -> None:
    damage(run.observations)
    with pytest.raises(UserError, match="damaged") as raised:
        score_run(run, Settings(permutations=9), [], Progress())
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["observations", "clips"])
def test_the_page_says_it_in_a_line(run: RunFolder, name: str) -> None:
    damage(getattr(run, name))
    with pytest.raises(UserError, match=f"{name}.parquet: changed since the run was scored"):
        write_run_page(run, run.page)
    write_sums(run)
    with pytest.raises(UserError, match=rf"{name}.parquet: damaged") as raised:
        write_run_page(run, run.path / "report.html")
    assert "\n" not in str(raised.value) and not (run.path / "report.html").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda task: task["scores"][1]["detail"].update(distribution=[1]), r"scores\.1: .*detail\.distribution: "),
        (lambda task: task["scores"][1]["detail"].update(contributions={}), r"scores\.1: .*detail\.contributions: "),
        (lambda task: task["scores"][1]["detail"].update(kept_share="most"), r"scores\.1: .*detail\.kept_share: "),
        (lambda task: task["scores"][0]["detail"].update(by_tau=3), r"scores\.0: .*detail\.by_tau: "),
        (lambda task: task["groups"]["male"]["readings"]["activity"].pop("value"), r"activity: .*'value'"),
        (lambda task: task["groups"]["male"]["readings"].clear(), r"tasks\.0: .*groups\.male\.readings.*'activity'"),
        (lambda task: task.update(task="stroy"), "did not ask the task 'stroy'"),
    ],
)
def test_results_edited_by_hand_are_a_line_even_with_sums_that_fit(
    run: RunFolder, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    data = json.loads(run.results.read_text(encoding="utf-8"))
    change(data["tasks"][0])
    run.results.write_text(json.dumps(data), encoding="utf-8")
    write_sums(run)
    with pytest.raises(UserError, match=said) as raised:
        write_run_page(run, run.page)
    assert "\n" not in str(raised.value)
    [left] = read_entries([run.path], Progress(), simulated=True)[1]
    assert left.path == run.path and "\n" not in left.why


def test_a_manifest_says_it_in_a_line(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "m.parquet"
    names = [f"{number}.wav" for number in range(1000)]
    pq.write_table(pa.table({"file": names, "speaker": names, "gender": names}), path)
    damage(path)
    with pytest.raises(UserError, match="damaged") as raised:
        load_manifest(path)
    assert "\n" not in str(raised.value)
