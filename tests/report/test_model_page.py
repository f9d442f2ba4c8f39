"""The page of one model: every figure under its own name, and once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.choice_corpora import quiz
from vibe_harness import evaluate
from vibe_harness.progress import Progress
from vibe_harness.report.board_building import build_board
from vibe_harness.report.board_page import board_environment
from vibe_harness.report.board_runs import read_entries
from vibe_harness.report.model_page import model_context
from vibe_harness.report.stars import Family


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("model")
    evaluate("simulated", ["biasinear"], quiz(folder / "quiz"), permutations=9, output_path=folder / "choice")
    evaluate("simulated", ["advisory"], dimensions=["gender"], limit=4, tau=1, permutations=9, output_path=folder / "x")
    entries, _ = read_entries([folder / "choice", folder / "x"], Progress(), simulated=True)
    assert len({entry.identity for entry in entries}) == 1
    return model_context(entries[0].identity, build_board(entries), entries)


def test_each_figure_of_a_choice_task_stands_once_under_its_own_name(context: dict[str, Any]) -> None:
    [part] = [part for part in context["parts"] if part["block"] == "gender on quiz"]
    names = [row["name"] for row in part["rows"]]
    assert len(set(names)) == len(names)
    assert {"biasinear: accuracy", "biasinear: APES", "APES: CA"} <= set(names)
    assert {row["name"] for row in part["rows"] if row["whole"]} == {name for name in names if name[:9] == "biasinear"}
    assert len(part["outcomes"]) == 1 and part["outcomes"][0][0] == "biasinear"
    group, told = part["outcomes"][0][1][0]
    assert group == "female" and "24 requests" not in told and "4 requests, 1 speaker: " in told
    assert len(set(part["warnings"])) == len(part["warnings"])


def rendered(context: dict[str, Any], family: Family) -> str:
    return board_environment().get_template("model.html.j2").render(model=context, family=family, version="0")


def test_a_p_is_called_adjusted_only_where_it_is(context: dict[str, Any]) -> None:
    assert "One p of each task is adjusted" in rendered(context, Family(2, (0.1, None)))
    page = rendered(context, Family(2, (None, None), "too few permutations"))
    assert "No p is adjusted" in page and "No stars: too few permutations" in page


def test_a_missing_interval_is_said_with_its_reason(context: dict[str, Any]) -> None:
    [part] = [part for part in context["parts"] if part["block"] == "gender on demo"]
    assert [row["name"] for row in part["rows"]] == [
        "advisory",
        "activity",
        "advisory: refusals",
        "advisory: diversity",
        "diversity: activity",
    ]
    page = rendered(context, Family(2, (0.1, None)))
    assert part["no_intervals"]
    for line in part["no_intervals"]:
        assert line.startswith("advisory: No interval for ") and line in page
