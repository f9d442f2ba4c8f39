"""Tables for papers and programs: the same figures and columns of trust in every format."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.report.boards import GROUP, entry, small_run, task
from vibe_harness.report.board import Board
from vibe_harness.report.board_building import build_board
from vibe_harness.report.board_tables import as_csv, as_json, as_markdown, attributes_csv
from vibe_harness.report.latex import attributes_latex, escaped, scores_latex, trust_latex
from vibe_harness.report.published_figures import published_blocks
from vibe_harness.store.run_folder import RunRecord

HOSTILE = '100 % & {x}$ _a_ #1 \\input{y} ~^ <b> "q" |'
TRUST = {
    "hearing check", "identical answers", "values kept", "kept by group", "speakers a group", "confounds",
    "failed requests",
}  # fmt: skip


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return small_run(tmp_path_factory.mktemp("run")).record()


def board_of(record: RunRecord, names: tuple[str, ...] = ("a", HOSTILE), published: bool = False) -> Board:
    entries = []
    for number, name in enumerate(names):
        value = 20.0 + 30 * number
        tasks = [
            task("story", {"pay_level": value, "job": value + 1}, 0.0002, interval=(value - 5, value + 5)),
            task("casting", {"billing": None}, None, reliable=False, warnings=["too few answers were read"]),
        ]
        entries.append(entry(record, name, tasks, corpus="crema_d & more"))
    return build_board(entries, published=published_blocks() if published else ())


def test_the_columns_of_trust_are_the_same_in_every_format(record: RunRecord) -> None:
    board = board_of(record)
    headings = board.blocks[0].trust_headings
    assert set(headings) > TRUST
    names = [heading.replace(" ", "_") for heading in headings]
    for text in (as_csv(board), attributes_csv(board)):
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [name for name in rows[0] if name in names] == names
        assert {row["hearing_check"] for row in rows} == {"passed"}
        assert {row["failed_requests"] for row in rows} == {"0 of 8"}
    [block] = json.loads(as_json(board, [], [], [], []))["blocks"]
    cell = block["models"][0]["cells"][0]
    assert [one["heading"] for one in cell["trust"]] == headings
    assert {"heading": "hearing check", "words": "passed", "ok": True} in cell["trust"]
    assert f"| model | task | {' | '.join(headings)} |" in as_markdown(board)
    assert f"Model & {' & '.join(headings)} " in trust_latex(board)


def test_what_speaks_against_a_score_is_bold(record: RunRecord) -> None:
    deaf = entry(record, "a", [task("story", {"job": 20.0}, identical=0.97)])
    deaf = dataclasses.replace(deaf, results=dataclasses.replace(deaf.results, hearing_check="left out"))
    board = build_board([deaf])
    assert "**not made**" in as_markdown(board) and "**97%**" in as_markdown(board)
    assert r"\textbf{not made}" in trust_latex(board) and r"\textbf{97\%}" in trust_latex(board)


def test_a_row_has_score_interval_chance_p_and_speakers(record: RunRecord) -> None:
    latex = scores_latex(board_of(record))
    assert r"a & \underline{20.5} & 15.0 to 25.0 & 5.0 & 0.0002 & 2/2 \\" in latex
    assert r"a & undefined$^\dagger$ & -- & 5.0 & -- & 2/2 \\" in latex
    caption = re.search(r"\\caption\{(.*)\}\n", latex)
    assert caption is not None
    for words in ("gender on crema\\_d \\& more", "nTVD", "over 2 tests", "Tau = 10", "read by rules"):
        assert words in caption[1], words


def test_attributes_stand_in_tables_of_their_own(record: RunRecord) -> None:
    board = board_of(record)
    rows = list(csv.DictReader(io.StringIO(attributes_csv(board))))
    found = [(row["model"], row["task"], row["attribute"], row["value"]) for row in rows]
    assert found == [
        (HOSTILE, "story", "pay_level", "50.0"), ("a", "story", "pay_level", "20.0"),
        (HOSTILE, "story", "job", "51.0"), ("a", "story", "job", "21.0"),
        (HOSTILE, "casting", "billing", ""), ("a", "casting", "billing", ""),
    ]  # fmt: skip
    assert "story: pay level" in attributes_latex(board) and "| story: pay level | a | 20.0 |" in as_markdown(board)
    [block] = json.loads(as_json(board, [], [], [], []))["blocks"]
    assert [one["value"] for one in block["attributes"] if one["model"] == "a" and "value" in one] == [20.0, 21.0]


def test_latex_of_any_name_has_as_many_cells_in_each_row_and_closes_what_it_opens(record: RunRecord) -> None:
    forty = {f"group_{n} & more": GROUP for n in range(40)}
    many = build_board([entry(record, "مودل", [task("story", {"x": 9.0}, groups=forty, dimension="a:b")])])
    for board in (board_of(record, published=True), many):
        for text in (scores_latex(board), attributes_latex(board), trust_latex(board)):
            check_latex(text)


def check_latex(text: str) -> None:
    """Environments and braces are closed; every row of a table has the cells that its columns ask for."""
    opened, closed = (sorted(re.findall(rf"\\{word}\{{(\w+\*?)\}}", text)) for word in ("begin", "end"))
    assert opened and opened == closed
    plain = re.sub(r"\\[\\{}&%$#_]", "", text)
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0 and not re.search(r"(?<!\\)%(?! needs)", text)
    for table in re.findall(r"\\toprule\n(.*?)\\bottomrule", text, re.DOTALL):
        rows = [line for line in table.splitlines() if line.endswith("\\\\") and "multicolumn" not in line]
        cells = {len(re.sub(r"\\&", "", row).split("&")) for row in rows}
        assert len(cells) == 1


def test_text_is_escaped_once() -> None:
    assert escaped("a_b & c\n100 %") == r"a\_b \& c 100 \%"
    assert escaped("\\x{}") == r"\textbackslash{}x\{\}"
    assert escaped("a\x07\u202eb") == "ab"


@pytest.mark.slow
def test_latex_compiles(record: RunRecord, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdfLaTeX with booktabs (Debian's texlive-latex-recommended)")
    board = board_of(record, published=True)
    for name, text in (
        ("scores", scores_latex(board)),
        ("attributes", attributes_latex(board)),
        ("trust", trust_latex(board)),
    ):
        (tmp_path / f"{name}.tex").write_text(text, encoding="utf-8")
    (tmp_path / "paper.tex").write_text(
        "\\documentclass[twocolumn]{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
        "\\input{scores}\\input{attributes}\\input{trust}\n\\end{document}\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"], cwd=tmp_path, capture_output=True,
        text=True, encoding="latin-1", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000
