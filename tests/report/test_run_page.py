"""The page of a run: one file, nothing fetched, nothing that a model wrote taken for markup."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from vibe_harness import evaluate
from vibe_harness.pipeline.results import Results
from vibe_harness.pipeline.run_folder import RunFolder, RunRecord
from vibe_harness.report.figures import MAX_VALUES, distribution_svg
from vibe_harness.report.run_page import run_page

EVIL = '<script>fetch("//evil.example")</script>'
OUTSIDE = re.compile(r"""(?:src|href|action|srcset|data)\s*=\s*["']?(?!\#|data:)[^"'\s>]|url\((?!\#)|@import""")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, RunRecord]:
    folder = tmp_path_factory.mktemp("run")
    [results] = evaluate("simulated", ["advisory"], dimensions=["gender"], tau=3, permutations=99, output_path=folder)
    return results, RunFolder(folder).record()


def renamed(results: Results, value: str, name: str) -> Results:
    """The results as if the model had given `name` in place of `value`, and a speaker's group were called so too."""
    [task] = results.tasks
    scores = []
    for score in task.scores:
        detail = dict(score.detail)
        if "distribution" in detail:
            detail["distribution"] = {
                group: {name if v == value else v: share for v, share in shares.items()}
                for group, shares in detail["distribution"].items()
            }
        scores.append(dataclasses.replace(score, detail=detail))
    changed = dataclasses.replace(task, scores=scores, warnings=[*task.warnings, f"{name}: a warning"])
    return dataclasses.replace(results, tasks=[changed], bad_clips={name: "broken"})


def test_the_page_is_whole_and_fetches_nothing(ran: tuple[Results, RunRecord]) -> None:
    page = run_page(*ran)
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert not OUTSIDE.search(page), OUTSIDE.search(page)
    assert "default-src 'none'" in page and "<script" not in page and "<link" not in page
    assert "Simulated" in page and "Synthetic speech" in page
    for score in ran[0].tasks[0].scores:
        if score.metric == "ntvd" and score.value is not None:
            assert f"{score.value:.1f}" in page
    assert page == run_page(*ran)  # same results, same page


def test_figures_show_the_groups(ran: tuple[Results, RunRecord]) -> None:
    page = run_page(*ran)
    [figure] = re.findall(r"<figure.*?</figure>", page, re.DOTALL)
    assert figure.count("<svg") == 1 and "activity by gender" in figure
    for group, coverage in ran[0].tasks[0].groups.items():
        assert f"{group} (n = {coverage.readings['activity']['value']})" in figure


def test_what_a_model_wrote_is_no_markup(ran: tuple[Results, RunRecord]) -> None:
    results, record = ran
    detail = next(s.detail for s in results.tasks[0].scores if s.attribute == "activity" and s.metric == "ntvd")
    value = next(iter(next(iter(detail["distribution"].values()))))
    record = dataclasses.replace(record, tasks=[dataclasses.replace(record.tasks[0], prompts={"default": EVIL})])
    page = run_page(renamed(results, value, EVIL), record)
    assert "<script" not in page and "&lt;script" in page
    assert not OUTSIDE.search(page)


def test_a_figure_draws_the_largest_shifts_and_says_what_it_leaves_out() -> None:
    shares = {f"v{n:02}": 0.01 for n in range(30)} | {"much": 0.7, "$x^2$ \x00": 0.0}
    other = shares | {"much": 0.1, "$x^2$ \x00": 0.6}
    svg = distribution_svg("a title", {"a": shares, "b": other}, {"a": 100, "b": 50})
    assert "much" in svg and "$x^2$" in svg and f"{32 - MAX_VALUES} more values not shown" in svg
    assert "a (n = 100)" in svg and "b (n = 50)" in svg


def test_the_command_writes_the_page_into_the_run_folder(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from vibe_harness.cli.report import command

    evaluate("simulated", ["advisory"], dimensions=["gender"], limit=16, tau=1, permutations=9, output_path=tmp_path)
    done = CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0 and str(tmp_path / "report.html") in done.output
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
