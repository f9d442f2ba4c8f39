"""A metric of another package on leaderboard, model page and exports: shown as it says itself."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.report.boards import entry, small_run, task
from vibe_harness.metrics.metric import Metric
from vibe_harness.metrics.presentation import ExtraColumn, Presentation
from vibe_harness.metrics.registry import METRICS
from vibe_harness.progress import Progress
from vibe_harness.records import Score
from vibe_harness.report.board_building import build_board
from vibe_harness.report.board_tables import as_csv, as_markdown, attributes_csv
from vibe_harness.report.latex import attributes_latex, scores_latex
from vibe_harness.report.relations import tau_rows
from vibe_harness.report.site import write_site

RANK = Presentation(
    "rank shift", "shift", digits=2, scale=(0, 2), neutral=0,
    columns=(ExtraColumn("pairs", lambda score: str(score.detail.get("pairs", ""))),),
)  # fmt: skip
WORDS = Presentation("words an answer", unit="words", digits=0, scale=(0, 500))


@pytest.fixture(autouse=True)
def metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, shown in (("their_rank", RANK), ("their_words", WORDS)):
        monkeypatch.setitem(METRICS._loaded, name, Metric(lambda *_: [], "theirs", presentation=shown))


def scores(value: float) -> list[Score]:
    return [
        Score(metric="their_rank", value=value, p_value=0.001, permutations=10_000, interval=(value - 0.1, value + 0.1),
              null_p95=0.3, detail={"by_tau": {"10": value}}),
        Score(metric="their_rank", attribute="pay", value=value, detail={"pairs": 12}),
        Score(metric="their_words", value=120 + value, interval=(100.0, 140.0)),
        Score(metric="not_installed", value=7.25),
    ]  # fmt: skip


def test_it_stands_on_the_leaderboard_the_model_page_and_in_the_exports(tmp_path: Path) -> None:
    record = small_run(tmp_path / "run").record()
    entries = [
        entry(record, name, [task("story", {}, scores=scores(value))]) for name, value in (("a", 0.5), ("b", 1.5))
    ]
    board = build_board(entries)
    [block] = board.blocks
    assert [column.label for column in block.columns] == [
        "story", "story: words an answer", "story: not installed",
    ]  # fmt: skip
    assert block.axes() == [(0, 1.6), (0, 500), None]
    assert [row.cells[0].mark for row in block.rows if row.cells[0]] == ["lowest", "highest"]
    assert block.rows[0].cells[0] is not None and block.rows[0].cells[0].attributes == ("pay",)
    page = write_site(tmp_path / "site", board, entries, (), Progress(), figures=True).read_text(encoding="utf-8")
    assert (
        "<b>0.50</b>" in page and "0.40 to 0.60" in page and "<b>120</b>" in page and "story: words an answer" in page
    )
    model = (tmp_path / "site/models/a.html").read_text(encoding="utf-8")
    assert "rank shift 0.50" in model and "words an answer 120" in model and "not installed" in model
    assert "nTVD" not in model
    assert r"rank shift; 0: no shift" in scores_latex(board) and r"\underline{0.50} & 0.40 to 0.60" in scores_latex(
        board
    )
    assert "_0.50_" in as_markdown(board) and "| story: pay | a | 0.50 |" in as_markdown(board)
    assert "pairs" in attributes_latex(board)
    rows = list(csv.DictReader(io.StringIO(attributes_csv(board))))
    assert [row["pairs"] for row in rows] == ["12", "12"]
    assert {row["metric"] for row in csv.DictReader(io.StringIO(as_csv(board)))} == {
        "their_rank", "their_words", "not_installed",
    }  # fmt: skip
    svg = (tmp_path / "site/figures/1-gender-crema-d-two-columns.svg").read_text(encoding="utf-8")
    assert "rank shift, 0 to 2" in svg
    assert [row.label for row in tau_rows(block)] == ["story"]


def test_two_measures_of_a_shift_stand_apart_and_have_no_mean(tmp_path: Path) -> None:
    record = small_run(tmp_path / "run").record()
    own = task("story", {"pay": 40.0}, interval=(30.0, 50.0))
    both = task("casting", {}, scores=scores(0.5))
    [block] = build_board([entry(record, "a", [own, both])]).blocks
    assert {"story: nTVD", "casting: rank shift"} <= {column.label for column in block.columns}
    assert block.rows[0].mean is None
