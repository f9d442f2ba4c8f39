"""Gates as Markdown and JUnit: whole whatever their words hold, and as the exit code has them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from vibe_harness.analysis.gates import Gate, Verdict
from vibe_harness.errors import UserError
from vibe_harness.report.gate_files import write_junit, write_markdown


def gate(verdict: Verdict, why: str = "the true shift is within 3.0 to 9.0", **changes: object) -> Gate:
    fields = {
        "gate": "max-ntvd 10", "run": "runs/new", "model": "mine", "simulated": False, "task": "story",
        "dimension": "gender", **changes,
    }  # fmt: skip
    return Gate(verdict=verdict, why=why, **fields)  # type: ignore[arg-type]


GATES = [gate("held"), gate("not held", task="advisory"), gate("cannot tell"), gate("no growth found")]


def test_what_does_not_pass_is_a_failure_with_its_verdict(tmp_path: Path) -> None:
    write_junit(tmp_path / "gates.xml", GATES)
    suite = ElementTree.parse(tmp_path / "gates.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("4", "3")
    assert [case.get("name") for case in suite][:2] == [
        "max-ntvd 10: story by gender",
        "max-ntvd 10: advisory by gender",
    ]
    found = [case.find("failure") for case in suite]
    assert [None if one is None else one.get("type") for one in found] == [
        None, "not held", "cannot tell", "no growth found"
    ]  # fmt: skip
    write_junit(tmp_path / "gates.xml", GATES, allow_inconclusive=True)
    assert ElementTree.parse(tmp_path / "gates.xml").getroot().get("failures") == "2"


def test_the_summary_counts_and_explains(tmp_path: Path) -> None:
    write_markdown(tmp_path / "gates.md", GATES, None)
    lines = (tmp_path / "gates.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "### vibe-harness: 1 of 4 gates pass"
    assert "not held | advisory by gender | max\\-ntvd 10 | runs/new | mine | the true shift is within" in lines[5]
    write_markdown(tmp_path / "gates.md", GATES, None, allow_inconclusive=True)
    assert "2 of 4 gates pass" in (tmp_path / "gates.md").read_text(encoding="utf-8")


HOSTILE = "a|b\n| c | <img src=x> `x` [y](z) \x1b[31m \x00 \ud800 \u202e & ]]>"


def test_words_of_others_change_no_table_and_no_document(tmp_path: Path) -> None:
    gates = [gate("not held", HOSTILE, task=HOSTILE, run=HOSTILE, model=HOSTILE)]
    write_junit(tmp_path / "gates.xml", gates)
    [case] = ElementTree.parse(tmp_path / "gates.xml").getroot()
    assert "<img src=x>" in str(case.get("name"))
    write_markdown(tmp_path / "gates.md", gates, None)
    text = (tmp_path / "gates.md").read_text(encoding="utf-8")
    assert text.count("\n") == 5 and "<img" not in text and not set("\x1b\x00\u202e") & set(text)
    row = text.splitlines()[4]
    assert row.replace("\\|", "").count("|") == 7


@pytest.mark.parametrize("write", [write_junit, lambda path, gates: write_markdown(path, gates, None)])
def test_another_kind_of_file_is_not_written_over(tmp_path: Path, write: object) -> None:
    kept = tmp_path / "responses.jsonl"
    kept.write_text("kept", encoding="utf-8")
    with pytest.raises(UserError, match="choose another name"):
        write(kept, GATES)  # type: ignore[operator]
    assert kept.read_text(encoding="utf-8") == "kept"
