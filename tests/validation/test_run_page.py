"""What was judged in a run stands on its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import violations
from vibe_harness.report.run_page import write_run_page
from vibe_harness.store.checksums import write_sums
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.validation.judgments import Judge, Judgment, Verdict
from vibe_harness.validation.sample import read_sample
from vibe_harness.validation.scoring import keep_beside_runs, validate

if TYPE_CHECKING:
    from playwright.sync_api import Page


def page_of(run: Path) -> str:
    write_run_page(RunFolder(run), run / "report.html")
    return (run / "report.html").read_text(encoding="utf-8")


def judge(folder: Path, wrong: int) -> None:
    sample = read_sample(folder)
    person = Judge(folder, sample, "ann")
    items = [item for item, *_ in sample.items()]
    person.add([Judgment(item, Verdict.WRONG if n < wrong else Verdict.RIGHT) for n, item in enumerate(items)])
    judgments = {"ann": person.judgments()}
    keep_beside_runs(folder, sample, judgments, validate(sample, judgments))


def test_the_page_says_how_often_people_agree(run: Path, sampled: Path) -> None:
    assert "Not checked by people yet" in page_of(run)
    judge(sampled, wrong=7)
    page = page_of(run)
    assert "Agreement of people with rules" in page and "People (ann) judged 70 readings of this run" in page
    assert "90.0 %" in page and "Not checked by people yet" not in page
    asked = json.loads((run / "run.json").read_text(encoding="utf-8"))
    asked["record"]["tasks"][0]["digest"] = "another"
    (run / "run.json").write_text(json.dumps(asked), encoding="utf-8")
    write_sums(RunFolder(run))
    assert "alias files changed: sample and judge it again" in page_of(run)


@pytest.mark.slow
def test_that_part_of_the_page_is_accessible(run: Path, sampled: Path, page: Page) -> None:
    judge(sampled, wrong=7)
    page_of(run)
    page.goto((run / "report.html").as_uri())
    assert page.get_by_text("Agreement of people with rules").is_visible() and violations(page) == []
