"""The leaderboard as data: what may stand in one column, what is marked, what is left out."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, pearsonr, spearmanr

from tests.command_line import QuickCommand
from tests.report.boards import M, entry, small_run, task
from vibe_harness import evaluate, score
from vibe_harness.progress import Progress
from vibe_harness.records import Score
from vibe_harness.report.board import Board
from vibe_harness.report.board_building import build_board
from vibe_harness.report.board_runs import Entry, read_entries
from vibe_harness.report.board_tables import as_csv, as_markdown
from vibe_harness.report.latex import scores_latex
from vibe_harness.report.leaderboard import make_leaderboard
from vibe_harness.report.relations import beside_choice, corpus_agreement, task_relations, tau_rows
from vibe_harness.report.site import write_site
from vibe_harness.store.run_folder import RunFolder, RunRecord


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return small_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def record(run: RunFolder) -> RunRecord:
    return run.record()


def column(board: Board, label: str) -> dict[str, Any]:
    [block] = board.blocks
    [index] = [i for i, one in enumerate(block.columns) if one.label == label]
    return {row.model: row.cells[index] for row in block.rows}


def test_the_highest_and_lowest_are_marked_where_their_intervals_are_apart(record: RunRecord) -> None:
    spans = {"a": (60.0, 70.0), "b": (20.0, 40.0), "c": (25.0, 45.0), "d": (1.0, 9.0)}
    entries = [
        entry(record, name, [task("story", {"x": sum(span) / 2}, interval=span)]) for name, span in spans.items()
    ]
    odd = [
        entry(record, "e", [task("story", {"x": 90.0}, reliable=False, interval=(85.0, 95.0))]),
        entry(record, "f", [task("story", {"x": 90.0}, interval=(85.0, 95.0))]),
        entry(record, "g", [task("story", {"x": 90.0}, interval=(85.0, 95.0), identical=0.97)]),
    ]
    deaf = dataclasses.replace(odd[1], results=dataclasses.replace(odd[1].results, hearing_check="left out"))
    marks = {name: cell.mark for name, cell in column(build_board([*entries, odd[0], deaf, odd[2]]), "story").items()}
    assert marks == {"a": "highest", "b": "", "c": "", "d": "lowest", "e": "", "f": "", "g": ""}
    assert not any(cell.mark for cell in column(build_board(entries[1:3]), "story").values())


def test_the_hearing_check_is_that_of_the_run_that_asked_the_task(record: RunRecord) -> None:
    first = entry(record, "a", [task("story", {"x": 9.0}, interval=(8.0, 9.0))])
    second = entry(record, "a", [task("casting", {"x": 9.0}, interval=(8.0, 9.0))])
    second = dataclasses.replace(second, results=dataclasses.replace(second.results, hearing_check="left out"))
    other = entry(record, "b", [task(name, {"x": 1.0}, interval=(0.0, 1.0)) for name in ("story", "casting")])
    board = build_board([first, second, other])
    assert [column(board, name)["a"].mark for name in ("story", "casting")] == ["highest", ""]


def test_stars_are_of_the_p_adjusted_over_the_whole_family(record: RunRecord) -> None:
    p_values = [0.0001, 0.002, 0.04, 0.3]
    entries = [
        entry(record, "a", [task("story", {"x": 1.0}, p_values[0]), task("advisory", {"y": 1.0}, p_values[1])]),
        entry(record, "b", [task("story", {"x": 2.0}, p_values[2]), task("advisory", {"y": 3.0}, p_values[3])]),
    ]
    board = build_board(entries)
    found = [
        column(board, name)[model]
        for model, name in (("a", "story"), ("a", "advisory"), ("b", "story"), ("b", "advisory"))
    ]
    assert [cell.adjusted_p for cell in found] == pytest.approx(false_discovery_control(p_values).tolist())
    assert [cell.stars for cell in found] == ["**", "*", "", ""]  # 0.0004, 0.004, 0.053, 0.3


def test_too_few_permutations_give_no_stars_and_say_so(record: RunRecord) -> None:
    entries = [entry(record, f"m{n}", [task("story", {"x": float(n)}, 1 / (M + 1))]) for n in range(3)]
    enough = build_board(entries)
    assert all(cell.stars == "**" for cell in column(enough, "story").values())
    few = [dataclasses.replace(s, permutations=59) for s in entries[0].results.tasks[0].scores]
    poor = dataclasses.replace(entries[0].results, tasks=[dataclasses.replace(entries[0].results.tasks[0], scores=few)])
    board = build_board([dataclasses.replace(entries[0], results=poor), *entries[1:]])
    assert "No stars: too few permutations" in board.family.words and "--permutations 60" in board.family.words
    assert not any(cell.stars for cell in column(board, "story").values())


@pytest.mark.parametrize(
    "changes",
    [
        {"tau": 5},
        {"extractor": {"extractor": "qwen3-8b"}},
        {"clips": "others"},
        {"modality": "transcript"},
        {"answer_by": "likelihood"},
    ],
)
def test_runs_of_other_settings_stand_in_a_table_of_their_own(record: RunRecord, changes: dict[str, Any]) -> None:
    one = entry(record, "a", [task("story", {"x": 1.0})])
    board = build_board([one, entry(record, "b", [task("story", {"x": 2.0})], **changes)])
    assert [[row.model for row in block.rows] for block in board.blocks] == [["a"], ["b"]]
    names = [block.name for block in board.blocks]
    assert len(set(names)) == 2 and all(next(iter(changes)).replace("_", " ") in name for name in names), names


def test_another_card_is_another_column(record: RunRecord) -> None:
    board = build_board([
        entry(record, "a", [task("story", {"x": 1.0})]),
        entry(record, "b", [task("story", {"x": 2.0}, task_digest="9f other")]),
    ])  # fmt: skip
    [block] = board.blocks
    assert [one.label for one in block.columns] == ["story (card story-)", "story (card 9f oth)"]
    assert [[cell and cell.value for cell in row.cells] for row in block.rows] == [[1.0, None], [None, 2.0]]
    assert [row.mean for row in block.rows] == [None, None]


def test_values_counted_under_other_aliases_are_another_column(record: RunRecord) -> None:
    other = task("story", {"x": 2.0}, alias_files={"x": "story/x.yaml@99"})
    board = build_board([entry(record, "a", [task("story", {"x": 1.0})]), entry(record, "b", [other])])
    assert [len([cell for cell in row.cells if cell]) for row in board.blocks[0].rows] == [1, 1]
    assert len({one.label for one in board.blocks[0].columns}) == 2


def test_a_choice_task_is_one_test_however_many_figures_it_has(record: RunRecord) -> None:
    figures = [
        Score(metric="slifs", value=90.0),
        *(Score(metric=m, value=8.0, p_value=0.01) for m in ("slbs", "parity")),
    ]
    board = build_board(
        [entry(record, "a", [task("stereoset", {}, scores=figures), task("advisory", {"x": 1.0}, 0.04)])]
    )
    assert board.family.tests == 2
    assert {cell.adjusted_p for cell in board.blocks[0].rows[0].cells if cell} == {None, 0.02, 0.04}


def test_two_runs_of_one_model_are_told_apart_by_what_differs(record: RunRecord) -> None:
    cool = {"model": {"name": "a", "id": "a", "args": {"quantization": "int4"}}}
    board = build_board(
        [entry(record, "a", [task("story", {"x": 1.0})]), entry(record, "a", [task("story", {"x": 2.0})], **cool)]
    )
    assert set(column(board, "story")) == {"a (args.quantization not set)", "a (args.quantization int4)"}


def test_tables_of_several_extractors_are_headed_by_their_names(record: RunRecord) -> None:
    def read(reader: str, run: str, **extractor: object) -> Entry:
        one = entry(record, run, [task("story", {"x": 1.0})], extractor=extractor)
        return dataclasses.replace(one, results=dataclasses.replace(one.results, extractor=reader))

    server = {"backend": "openai", "layout": {"before": ""}}
    rules = read("rules", "a", extractor="rules", version=2)
    first = read("mine", "b", model={"id": "organisation/reader-7b", **server}, unknown_words="f" * 32)
    other = read("mine", "c", model={"id": "organisation/reader-8b", **server}, unknown_words="f" * 32)
    assert {one.apart for one in build_board([rules, first]).blocks} == {"read by rules", "read by mine"}
    assert {one.apart for one in build_board([rules, first, other]).blocks} == {
        "read by rules",
        "read by mine, extractor model id organisation/reader-7b",
        "read by mine, extractor model id organisation/reader-8b",
    }


def test_means_over_different_attributes_are_not_compared(record: RunRecord) -> None:
    board = build_board([
        entry(record, "a", [task("story", {"x": 1.0, "y": 9.0})]),
        entry(record, "b", [task("story", {"x": 4.0, "y": None})]),
        entry(record, "c", [task("story", {"x": 2.0, "y": 3.0})]),
    ])  # fmt: skip
    [block] = board.blocks
    assert [(one.label, one.compared) for one in block.columns] == [("story", False), ("story, over x", True)]
    own, common = column(board, "story"), column(board, "story, over x")
    assert not any(cell.mark for cell in own.values()) and own["a"].value == 5.0
    assert {model: cell.value for model, cell in common.items()} == {"a": 1.0, "b": 4.0, "c": 2.0}
    assert all(cell.p_value is None and not cell.stars and not cell.mark for cell in common.values())


def test_what_a_mean_is_over_is_told_in_every_format(record: RunRecord, tmp_path: Path) -> None:
    entries = [
        entry(record, "a", [task("story", {"x": 1.0, "y": 9.0}), task("advisory", {"z": 2.0})]),
        entry(record, "b", [task("story", {"x": 4.0, "y": None}), task("advisory", {"z": 3.0})]),
    ]
    write_site(tmp_path, build_board(entries), entries, (), Progress())
    texts = {
        path.suffix: path.read_text(encoding="utf-8")
        for path in (*tmp_path.glob("leaderboard.*"), tmp_path / "index.html")
    }
    rows = list(csv.DictReader(io.StringIO(texts[".csv"])))
    found = [(row["model"], row["task"], row["mean_over"], row["over"], float(row["value"])) for row in rows]
    assert found[:3] == [("a", "story", "own", "x y", 5.0), ("a", "story", "shared", "x", 1.0),
                         ("a", "advisory", "all", "z", 2.0)]  # fmt: skip
    columns = json.loads(texts[".json"])["blocks"][0]["columns"]
    assert [one["mean_over"] for one in columns] == ["own", "shared", "all"]
    heads = ["story (not compared)", "story, over x (shared attributes)", "advisory"]
    assert f"| model | {' | '.join(heads)} |" in texts[".md"]
    assert all(rf"\emph{{{head}}}" in texts[".tex"] for head in heads)
    assert all(f">{head}</th>" in texts[".html"] for head in heads)


def test_an_attribute_that_no_model_has_a_score_of_is_named_where_the_mean_stands(record: RunRecord) -> None:
    def entries(y: float | None, **asked: Any) -> list[Entry]:
        return [
            entry(record, name, [task("story", {"x": x, "y": y}, 0.001)], **asked)
            for name, x in zip("abc", (1.0, 4.0, 2.0), strict=True)
        ]

    board = build_board(entries(None))
    assert [(one.heading, one.mean_over) for one in board.blocks[0].columns] == [("story (without y)", "shared")]
    [alike] = corpus_agreement(build_board([*entries(None), *entries(None, corpus="ravdess")]).blocks)
    assert len(alike.tasks) == 1
    unlike = corpus_agreement(build_board([*entries(None), *entries(3.0, corpus="ravdess")]).blocks)
    assert not any(pair.tasks for pair in unlike)  # means over other attributes rank nothing alike


def test_scores_evened_out_over_other_columns_stand_in_a_table_of_their_own(record: RunRecord) -> None:
    one, other = (entry(record, name, [task("story", {"x": 1.0})]) for name in "ab")
    other = dataclasses.replace(other, record=dataclasses.replace(other.record, strata=["emotion"]))
    board = build_board([one, other])
    assert [[row.model for row in block.rows] for block in board.blocks] == [["a"], ["b"]]
    assert board.blocks[1].name.endswith("(evened out over emotion)")


def site(runs: Sequence[Path], output: Path) -> dict[str, bytes]:
    make_leaderboard(runs, output, Progress(), include_simulated=True, include_published=True, include_answers=True)
    return {path.relative_to(output).as_posix(): path.read_bytes() for path in output.rglob("*.*")}


@pytest.fixture(scope="module")
def many(run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Runs to set beside one another: copies of one, the same scored otherwise, other seeds, and some to leave out."""
    folder = tmp_path_factory.mktemp("many")
    paths = [folder / name for name in ("copy", "copy-2", "few", "fewer", "other-dimension", "unscored")]
    for path in paths:
        shutil.copytree(run.path, path)
    score(paths[2], tau=1, permutations=49)
    score(paths[3], tau=1, permutations=19)
    score(paths[4], tau=1, permutations=99, dimensions=["gender", "accent"])
    (paths[5] / "results.json").unlink()
    for seed in (1, 2):
        paths.append(folder / f"seed-{seed}")
        evaluate("simulated", ["advisory"], dimensions=["gender"], limit=16, tau=1, permutations=99, seed=seed,
                 model_args={"strength": 0.9}, output_path=paths[-1])  # fmt: skip
    return paths


@pytest.fixture(scope="module")
def in_order(many: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return site(many, tmp_path_factory.mktemp("site"))


@given(data=st.data())
@settings(max_examples=6)
def test_a_leaderboard_does_not_hang_on_the_order_of_its_runs(
    many: list[Path], in_order: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    assert site(data.draw(st.permutations(many)), tmp_path_factory.mktemp("site")) == in_order


def test_of_two_runs_of_one_question_the_one_that_says_more_is_shown(many: list[Path]) -> None:
    entries, left_out = read_entries(many, Progress(), simulated=True)
    assert {one.path.name for one in entries if one.asked["seed"] == 0} == {"copy-2", "other-dimension"}
    told = {one.path.name: one.why for one in left_out}
    assert told["copy"] == "the same run as copy-2, which is shown"
    assert told["few"] == told["fewer"] == "another run of the same question as copy-2, which is shown"


def test_correlations_tau_and_corpora_are_those_of_scipy(record: RunRecord) -> None:
    story, advisory, there = [1.0, 5.0, 2.0, 7.0], [3.0, 4.0, 9.0, 1.0], [2.0, 4.0, 1.0, 3.0]
    entries = []
    for number, (x, y, z) in enumerate(zip(story, advisory, there, strict=True)):
        entries.append(entry(record, f"m{number}", [task("story", {"x": x}), task("advisory", {"y": y})]))
        entries.append(entry(record, f"m{number}", [task("story", {"x": z})], corpus="ravdess"))
    board = build_board(entries)
    first = next(block for block in board.blocks if block.corpus == "crema-d")
    found = task_relations(first)
    assert found is not None and found.values[0][1].value == pytest.approx(pearsonr(story, advisory).statistic)
    [pair] = corpus_agreement(board.blocks)
    assert pair.tasks[0][1].value == pytest.approx(spearmanr(story, there).statistic)
    row = next(row for row in tau_rows(first) if row.label == "story")
    assert row.means[0] == pytest.approx(sum(story) / 4 + 1) and row.agreement[0].value == pytest.approx(1.0)
    assert not math.isnan(row.means[-1] or math.nan)


def test_choice_benchmarks_stand_beside(record: RunRecord) -> None:
    chosen = task("stereoset", {}, scores=[Score(metric="slbs", value=54.0)])
    board = build_board([entry(record, name, [task("advisory", {"x": 1.0}), chosen]) for name in ("a", "b")])
    [beside] = beside_choice(board.blocks)
    assert beside.headings == (("open-ended", "advisory on crema-d"), ("choice", "stereoset: slbs on crema-d"))
    assert [[cell and cell.value for cell in cells] for _, cells in beside.rows] == [[1.0, 54.0], [1.0, 54.0]]


def test_open_ended_and_choice_rank_models_alike_or_not(record: RunRecord, tmp_path: Path) -> None:
    scores = {"a": (1.0, 52.0), "b": (2.0, 51.0), "c": (3.0, 53.0), "d": (4.0, 54.0)}
    entries = [
        entry(record, name, [
            task("story", {"x": free}), task("stereoset", {}, scores=[Score(metric="slbs", value=forced)])
        ])
        for name, (free, forced) in scores.items()
    ]  # fmt: skip
    entries.append(entry(record, "e", [task("story", {"x": 0.5})]))  # was not asked the other
    board = build_board(entries)
    [(free, [(choice, ranks)])] = beside_choice(board.blocks)[0].ranks
    assert (free, choice) == ("story on crema-d", "stereoset: slbs on crema-d")
    assert ranks.value == pytest.approx(0.8) and ranks.models == 4  # 1 - 6 * 2 / (4 * 15)
    page = write_site(tmp_path, board, entries, (), Progress()).read_text(encoding="utf-8")
    assert "Do the two rank the models alike?" in page and "0.80 <small>n = 4</small>" in page


def test_the_pages_show_choice_benchmarks_with_their_intervals(record: RunRecord, tmp_path: Path) -> None:
    chosen = task("stereoset", {}, scores=[Score(metric="slbs", value=54.0, interval=(48.5, 59.5))])
    entries = [entry(record, name, [task("advisory", {"x": 1.0}), chosen]) for name in ("a", "b")]
    index = write_site(tmp_path, build_board(entries), entries, (), Progress())
    page = index.read_text(encoding="utf-8")
    assert "Beside choice benchmarks" in page and page.count("48.5 to 59.5") == 4  # in its table, and beside
    assert {path.name for path in (tmp_path / "models").iterdir()} == {"a.html", "b.html"}


def test_figures_that_run_to_one_have_three_decimals(record: RunRecord) -> None:
    figures = [Score(metric="kappa", value=-0.0125, interval=(-0.04, 0.02)), Score(metric="accuracy", value=51.25)]
    board = build_board([entry(record, name, [task("stereoset", {}, scores=figures)]) for name in ("a", "b")])
    assert "| -0.013 [-0.040 to 0.020] |" in as_markdown(board)
    assert "51.2" in as_markdown(board) and board.blocks[0].axes() == [None, (0, 100)]


def test_tables_hold_the_same_figures_and_are_not_broken_by_names(record: RunRecord) -> None:
    names = {"a_b|c": 1.0, "100 % & {x}$": 22.25}
    tasks = {name: [task("story", {"x": v}, 0.00001, interval=(v - 0.5, v + 0.5))] for name, v in names.items()}
    board = build_board([entry(record, name, tasks[name], corpus='cor"pus, one') for name in names])
    rows = list(csv.DictReader(io.StringIO(as_csv(board))))
    assert {row["model"]: float(row["value"]) for row in rows} == names
    assert rows[0]["corpus"] == 'cor"pus, one' and rows[0]["adjusted_p"] == "1e-05"
    markdown, latex = as_markdown(board), scores_latex(board)
    assert "| a\\_b\\|c | _1.0_\\*\\* [0.5 to 1.5], chance 5.0 |" in markdown and "**22.2**" in markdown
    assert r"100 \% \& \{x\}\$ & \textbf{22.2} &" in latex and r"a\_b\textbar{}c & \underline{1.0} &" in latex


def test_what_cannot_be_shown_is_a_line_each_and_the_rest_is_shown(run: RunFolder, tmp_path: Path) -> None:
    def copied(name: str) -> Path:
        return Path(shutil.copytree(run.path, tmp_path / name))

    good, unscored, newer, broken, half, edited, mixed, old = map(
        copied, ("good", "unscored", "newer", "broken", "half", "edited", "mixed", "old")
    )
    results = json.loads((edited / "results.json").read_text(encoding="utf-8"))
    results["tasks"][0]["scores"][0]["value"] = 1.0
    (edited / "results.json").write_text(json.dumps(results), encoding="utf-8")
    with (mixed / "responses.jsonl").open("a", encoding="utf-8") as file:
        file.write("{}\n")
    (old / "SHA256SUMS").unlink()
    (unscored / "results.json").unlink()
    asked = json.loads((newer / "run.json").read_text(encoding="utf-8"))
    (newer / "run.json").write_text(json.dumps(asked | {"format": 99}), encoding="utf-8")
    (broken / "results.json").write_text('{"format": 1, "model": 3}', encoding="utf-8")
    for name in ("results.json", "observations.parquet", "extractions.jsonl"):
        (half / name).unlink()
    paths = [tmp_path / "nothing", unscored, newer, broken, half, edited, mixed, old, good, good]
    entries, left_out = read_entries(paths, Progress(), simulated=True)
    assert [one.path for one in entries] == [good]
    told = {one.path.name: one.why for one in left_out}
    assert "not a run folder" in told["nothing"] and "no scores yet" in told["unscored"]
    assert "format 99" in told["newer"] and "results.json" in told["broken"] and "no scores yet" in told["half"]
    assert told["edited"].startswith("results.json: changed since the run was scored")
    assert told["mixed"].startswith("responses.jsonl: changed since the run was scored")
    assert "score it again with `vibe-harness score" in told["old"] and "SHA256SUMS" in told["old"]
    assert told["good"] == "the same run as good, which is shown"
    assert len(left_out) == len(paths) - 1 and not any("\n" in one.why for one in left_out)
    entries, left_out = read_entries([good], Progress(), simulated=False)
    assert not entries and "--include-simulated" in left_out[0].why


def test_the_command_builds_what_it_can(run: RunFolder, tmp_path: Path, quick: QuickCommand) -> None:
    site = tmp_path / "a site"
    done = quick("leaderboard", run.path, "nowhere", "--output", site, "--include-simulated", check=1)
    assert "left out: nowhere: not a run folder" in done.stderr and "Traceback" not in done.stderr
    page = (site / "index.html").read_text(encoding="utf-8")
    assert "nowhere: not a run folder" in page and str(run.path.parent) not in page
    text = next(run.responses.open(encoding="utf-8"))
    answer = json.loads(text)["text"]
    for file in site.rglob("*.*"):
        if file.suffix not in (".pdf", ".svg"):
            assert answer[:40] not in file.read_text(encoding="utf-8"), file  # aggregates only
    quick("leaderboard", run.path, "--output", site, "--include-simulated", "--include-answers", check=0)
    [page] = (site / "answers").iterdir()
    assert f'href="answers/{page.name}"' in (site / "index.html").read_text(encoding="utf-8")
    assert "nothing to show" in quick.refuses("leaderboard", "--output", site)
