"""The results on a terminal: the verdict first, on any width, and never more than the data show."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vibe_harness.cli.closing import closing_lines
from vibe_harness.cli.run_results import print_results
from vibe_harness.metrics.metric import Metric
from vibe_harness.metrics.presentation import Presentation
from vibe_harness.metrics.registry import METRICS
from vibe_harness.records import Reading, Score
from vibe_harness.store.results import GroupCoverage, Results, TaskResult

SHIFT = Score(
    metric="ntvd", value=51.2, p_value=0.0001, smallest_p=0.0001, null_p95=26.9, interval=(35.5, 56.8), at_least=-2.0,
    at_most=51.2, no_more_than=55.0, permutations=9999,
)  # fmt: skip
NONE = replace(SHIFT, value=12.9, p_value=0.93, null_p95=21.8, interval=(0.0, 14.9), no_more_than=13.2)


def group(requests: int = 48, **outcomes: int) -> GroupCoverage:
    readings = {"job": {**dict.fromkeys(map(str, Reading), 0), "value": requests}}
    counts = {"ok": requests - sum(outcomes.values()), **outcomes}
    return GroupCoverage(
        speakers=12, clips=requests, requests=requests, outcomes=counts, readings=readings,
        items_per_response={"job": 1.0},
    )  # fmt: skip


def task(name: str, score: Score, dimension: str = "gender", **changes: Any) -> TaskResult:
    made = TaskResult(
        task=name, task_digest="d", variant="default", dimension=dimension, groups={"women": group(), "men": group()},
        without_value=0.0, reliable=True, warnings=[], scores=[score],
    )  # fmt: skip
    return replace(made, **changes)


def results(*tasks: TaskResult, **changes: Any) -> Results:
    made = Results(
        format=1, model="m", simulated=False, corpus="c", corpus_synthetic=False, extractor="rules", tau=10,
        permutations=9999, seed=0, hearing_check="passed", bad_clips={}, long_clips={}, tasks=tasks,
    )  # fmt: skip
    return replace(made, **changes)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Prints results on a terminal of some width; returns the lines."""

    def show(found: Results, width: int = 80, full: bool = False) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        print_results(found, tmp_path / "run", full=full)
        return capsys.readouterr().out.splitlines()

    return show


def attribute(name: str, *values: tuple[str, float, float, bool]) -> Score:
    """An attribute of two groups: value, its share in both, whether the test names it."""
    parts = [
        {
            "value": value, "adds": abs(women - men),
            "by_group": {
                "women": {"difference": 50 * (women - men), "interval": None, "p_value": 0.001, "named": named},
                "men": {"difference": 50 * (men - women), "interval": None, "p_value": 0.001, "named": named},
            },
        }
        for value, women, men, named in values
    ]  # fmt: skip
    shares = {
        "women": {value: women for value, women, _, _ in values},
        "men": {value: men for value, _, men, _ in values},
    }
    detail = {"contributions": parts, "distribution": shares, "kept_share": 1.0}
    return replace(SHIFT, attribute=name, detail=detail, p_within_task=0.0003)


def test_a_line_a_task_and_dimension_with_the_verdict_first(shown: Any) -> None:
    lines = shown(results(task("story", SHIFT), task("advisory", NONE, "accent")))
    assert lines[2:4] == [
        "Shift with gender   story     36 to 57 of 100  raw 51, chance 27  p 0.0002",  # 2 tests: 2 x 0.0001 / 1
        "None shown: accent  advisory  no more than 14  raw 13, chance 22  p 0.93",
    ]
    assert "p is adjusted over the 2 tests of this run (Benjamini and Hochberg)" in lines
    assert "Speakers: women 12, men 12; women 12, men 12" in lines
    wide = shown(results(task("story", SHIFT)), 120)
    assert wide[2].endswith("raw 51, chance reaches 27  adjusted p 0.0001")


def test_named_values_are_told_as_shares_and_others_not_at_all(shown: Any) -> None:
    job = attribute("job", ("nurse", 0.4, 0.06, True), ("cook", 0.3, 0.28, False), ("smith", 0.0, 0.9, True))
    lines = shown(results(task("story", SHIFT, scores=[SHIFT, job])))
    assert "story by gender: job: nurse: women 40%, men 6%; smith: women 0%, men 90%" in lines
    assert not any("cook" in line for line in lines)
    none = shown(results(task("story", NONE, scores=[NONE, job])))
    assert not any("nurse" in line for line in none)  # of a task that shows no shift no value is said to differ


def test_another_packages_metric_is_told_as_it_presents_itself(shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    presentation = Presentation(
        "loudness",
        unit="dB",
        digits=0,
        notes=lambda score: ["louder than asked"],
        by_group=lambda score: {"women": -20.0},
    )
    monkeypatch.setitem(METRICS._loaded, "loudness", Metric(lambda *_: [], "how loud", presentation=presentation))
    lines = shown(results(task("story", SHIFT, scores=[SHIFT, Score(metric="loudness", value=-23.4)])), full=True)
    assert "story by gender: loudness -23 dB: women -20 dB" in lines and "  louder than asked" in lines
    lines = shown(results(task("story", SHIFT, scores=[SHIFT, Score(metric="not-here", value=0.5)])))
    assert "story by gender: not-here 0.500" in lines


@pytest.mark.parametrize("full", [False, True])
def test_no_end_of_a_shift_is_negative(shown: Any, full: bool) -> None:
    score = replace(NONE, interval=(-3.0, 14.0), at_least=-6.1, at_most=-0.5)
    sentences = {"over_sentences": {"sentences": 4, "low": -3.2, "at_least": -1.0}}
    for one in (score, replace(SHIFT, interval=(-3.0, 14.0), detail=sentences)):
        told = "\n".join(shown(results(task("story", one)), full=full))
        assert not re.search(r"(?<![\w-])-\d", told)


@pytest.mark.parametrize(
    ("changed", "start"),
    [
        ({"p_value": 0.5, "smallest_p": 0.1}, "Cannot tell: gender  story  too few speakers"),
        ({"p_value": None}, "Not tested: gender  story"),
        ({"value": None, "undefined": "no answer gives a value", "p_value": None}, "No score: gender  story"),
        ({"permutations": 5}, "Cannot tell: gender  story  p is not adjusted"),
    ],
)
def test_what_shows_nothing_says_so(shown: Any, changed: dict[str, Any], start: str) -> None:
    lines = shown(results(task("story", replace(SHIFT, **changed))))
    assert lines[2].startswith(start)
    assert any(line.startswith("p is not adjusted: ") for line in lines) == ("permutations" in changed)


def test_what_is_not_reliable_is_told_with_its_reasons_and_without_a_finding(shown: Any) -> None:
    warnings = [f"reason {number}" for number in range(5)]
    lines = shown(results(task("story", SHIFT, reliable=False, warnings=warnings)))
    assert lines[2] == "NOT RELIABLE: gender  story    raw 51, chance reaches 27  adjusted p 0.0001"
    start = lines.index("story by gender:") + 1
    assert lines[start : start + 4] == ["  reason 0", "  reason 1", "  reason 2", "  2 more warnings"]
    assert any("reason 4" in line for line in shown(results(task("story", SHIFT, warnings=warnings)), full=True))


def test_what_is_said_of_every_task_is_said_once(shown: Any) -> None:
    lines = shown(results(task("story", SHIFT), task("advisory", NONE), hearing_check="left out"))
    assert lines.count("hearing check: not made") == 1


def test_a_shift_of_refusals_is_told_where_its_own_test_finds_one(shown: Any) -> None:
    refusals = Score(metric="refusal_ntvd", value=12.0, p_value=0.01, null_p95=6.0)
    lines = shown(results(task("story", NONE, scores=[NONE, refusals])))
    assert "story by gender: refusals 12.0; chance reaches 6.0, p 0.0100 (not adjusted)" in lines
    lines = shown(results(task("story", NONE, scores=[NONE, replace(refusals, p_value=0.2)])))
    assert not any("12.0" in line for line in lines)


def test_a_choice_task_tells_its_figures_by_group(shown: Any) -> None:
    accuracy = Score(metric="accuracy", value=65.6, detail={"by_group": {"women": 62.5, "men": 68.75}})
    apes = Score(metric="apes", value=0.5, p_value=0.46, null_mean=0.47, null_p95=0.5, permutations=9999)
    lines = shown(results(task("biasinear", SHIFT, scores=[accuracy, apes])))
    assert lines[2].startswith("Like chance  biasinear by gender  ") and "0.46" in lines[2]
    assert any(line.endswith("accuracy 65.6 %: women 62.5 %, men 68.8 %") for line in lines)
    many = {f"accent {number}": float(number) for number in range(40)}
    accuracy = replace(accuracy, detail={"by_group": many})
    lines = shown(results(task("biasinear", SHIFT, scores=[accuracy, apes])))
    assert "biasinear by gender: accuracy 65.6 %: from accent 0 0.0 % to accent 39 39.0 % in 40 groups" in lines


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", ["s", "x" * 200, "女性の話" * 10, "שלום עולם", "a\u202eb\x1b[31m", "[bold]b[/]"])
def test_any_name_on_any_width(shown: Any, width: int, name: str) -> None:
    from rich.cells import cell_len

    lines = shown(results(task(name, SHIFT), task("story", NONE, name)), width)
    rows = lines[2 : lines.index("", 2)]
    assert all(cell_len(line) <= width for line in rows)
    told = "".join("".join(rows).split())
    assert "57of100" in told and not set("\x1b\u202e") & set("".join(lines))
    if name.isprintable():
        assert "".join(name.split()) in told


def test_a_task_of_remarks_alone_still_tells_what_is_wrong(shown: Any) -> None:
    remark = Score(metric="diversity", value=1.0)
    lines = shown(results(task("story", SHIFT, scores=[remark], reliable=False, warnings=["too few answers"])))
    assert lines[2].startswith("No score  story by gender") and "story by gender: too few answers" in lines


def test_forty_groups(shown: Any) -> None:
    groups = {f"group {number}": group() for number in range(40)}
    lines = shown(results(task("story", SHIFT, groups=groups)))
    assert "Speakers: 12 in each of 40 groups of gender" in lines and len(lines) < 12


def test_failures_are_told_last_with_the_group_that_has_more(tmp_path: Path) -> None:
    groups = {"women": group(error=10, empty=1), "men": group(error=2, empty=1)}
    found = results(
        task("story", SHIFT, groups=groups), task("story", NONE, "accent", groups={"all": group(96, error=12, empty=2)})
    )
    assert list(closing_lines(found, tmp_path, full=True)) == [
        "12 of 96 requests failed, more for women (10 of 48) than for men (2 of 48): the same command asks again",
        "2 of 96 requests came empty",
        f"Run folder: {tmp_path}",
    ]
    (tmp_path / "report.html").touch()
    assert list(closing_lines(results(task("story", SHIFT)), tmp_path, full=False)) == [
        f"All figures: vibe-harness show {tmp_path}", f"Page: {tmp_path / 'report.html'}"
    ]  # fmt: skip
