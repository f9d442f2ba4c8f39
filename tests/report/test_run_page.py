"""The page of a run: one file, nothing fetched, nothing that a model wrote taken for markup."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import re
import zlib
from pathlib import Path

import pytest

from vibe_harness import evaluate
from vibe_harness.errors import UserError
from vibe_harness.progress import Progress
from vibe_harness.report.run_page import run_page, write_run_page
from vibe_harness.report.samples import may_be_passed_on, pack_samples
from vibe_harness.report.shifts import MAX_VALUES, shifts_of
from vibe_harness.report.trust import trust_columns
from vibe_harness.report.verdict import verdict
from vibe_harness.store.results import Results
from vibe_harness.store.run_folder import RunFolder, RunRecord

EVIL = '<script>fetch("//evil.example")</script>'
OUTSIDE = re.compile(r"""(?:src|href|action|srcset|data)\s*=\s*["']?(?!\#|data:)[^"'\s>]|url\((?!\#)|@import""")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    path = tmp_path_factory.mktemp("run")
    evaluate("simulated", ["advisory"], dimensions=["gender"], tau=3, permutations=99, output_path=path)
    return RunFolder(path)


@pytest.fixture(scope="module")
def ran(folder: RunFolder) -> tuple[Results, RunRecord]:
    from vibe_harness.store.results import read_results

    return read_results(folder.results), folder.record()


def renamed(results: Results, value: str, name: str) -> Results:
    """The results as if the model had given `name` in place of `value`, and a clip were called so too."""
    [task] = results.tasks
    text = json.dumps([dataclasses.asdict(score) for score in task.scores])
    scores = [
        dataclasses.replace(score, detail=said["detail"])
        for score, said in zip(task.scores, json.loads(text.replace(json.dumps(value), json.dumps(name))), strict=True)
    ]
    changed = dataclasses.replace(task, scores=scores, warnings=[*task.warnings, f"{name}: a warning"])
    return dataclasses.replace(results, tasks=[changed], bad_clips={name: "broken"})


def markup(page: str) -> str:
    """The page without its own script."""
    return re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)


def unpacked(text: str) -> object:
    return json.loads(zlib.decompress(base64.b64decode(text), -zlib.MAX_WBITS))


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


def test_the_only_script_that_may_run_is_the_pages_own(folder: RunFolder, tmp_path: Path) -> None:
    write_run_page(folder, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in page or f"script-src 'sha256-{digest}'" in page
    assert not OUTSIDE.search(markup(page))


def test_every_answer_is_in_the_page_with_what_was_read_in_it(folder: RunFolder) -> None:
    record = folder.record()
    samples = pack_samples(folder, record, folder.path, Progress())
    index = unpacked(samples.index)
    texts = [answer for pack in samples.packs for answer in unpacked(pack)]
    stored = [json.loads(line) for line in folder.responses.read_text(encoding="utf-8").splitlines()]
    assert {(request, text) for request, text, _ in texts} == {(one["request"], one["text"]) for one in stored}
    assert samples.answers == len(stored) == len(index["task"])
    for place, (request, _, raw) in enumerate(texts):
        read = {
            index["attributes"][name]: [index["words"][w] for w in words] for name, *words in index["values"][place]
        }
        asked = next(one for one in stored if one["request"] == request)
        assert index["clips"]["id"][index["clip"][place]] == asked["clip"]
        assert set(read) == {"activity"}
        assert raw == [[]] if read["activity"][0].startswith("(") else len(raw[0]) >= len(read["activity"])
    assert (folder.path / index["sound"] / index["clips"]["file"][0]).is_file()  # where the page looks for a clip


def test_a_clip_that_may_not_be_passed_on_is_not_played(folder: RunFolder) -> None:
    closed = dataclasses.replace(folder.record(), corpus_licence="all rights reserved")
    assert unpacked(pack_samples(folder, closed, folder.path, Progress()).index)["sound"] is None
    for licence, may in {
        "Apache-2.0": True, "ODbL 1.0": True, "CC BY-NC-SA": True, "CC BY-NC 4.0; Apache-2.0": True, None: False,
        "none stated": False, "CC BY 4.0; see its page on the hub": False,
    }.items():  # fmt: skip
        assert may_be_passed_on(licence) is may, licence


def test_groups_stand_by_their_bars_with_their_numbers(ran: tuple[Results, RunRecord]) -> None:
    [shift] = shifts_of(ran[0].tasks[0])
    assert shift.groups == tuple(ran[0].tasks[0].groups)
    score = next(s for s in ran[0].tasks[0].scores if s.attribute == "activity" and s.metric == "ntvd")
    for rows in (shift.named, [row for row in shift.rows if not row.is_named]):
        spread = [abs(row.shares[0] - row.shares[1]) for row in rows]
        assert spread == sorted(spread, reverse=True)  # of two groups, what carries the shift is what differs most
    assert list(shift.rows[: len(shift.named)]) == shift.named  # those that are named stand first
    for row in shift.rows:
        assert row.shares == tuple(score.detail["distribution"][group].get(row.value, 0.0) for group in shift.groups)
    page = run_page(*ran)
    for group, coverage in ran[0].tasks[0].groups.items():
        counted = f"n = {coverage.readings['activity']['value']}, {score.detail['kept_share_by_group'][group]:.0%} kept"
        assert f"<bdi>{group}</bdi> {counted}" in page  # the shares are of the kept values alone
    assert len(shift.rows) <= MAX_VALUES


def test_what_a_model_wrote_is_no_markup(ran: tuple[Results, RunRecord]) -> None:
    results, record = ran
    detail = next(s.detail for s in results.tasks[0].scores if s.attribute == "activity" and s.metric == "ntvd")
    value = detail["contributions"][0]["value"]
    record = dataclasses.replace(record, tasks=[dataclasses.replace(record.tasks[0], prompts={"default": EVIL})])
    page = run_page(renamed(results, value, EVIL), record)
    assert "<script" not in page and page.count("&lt;script") >= 4
    assert not OUTSIDE.search(page)
    page = run_page(renamed(results, value, "a\x00b\u202ec\ud800"), record)
    assert not any(sign in page for sign in "\x00\u202e")


def test_words_in_place_of_the_clip_are_said(ran: tuple[Results, RunRecord]) -> None:
    page = run_page(dataclasses.replace(ran[0], modality="transcript"), ran[1])
    assert "the model was given words in place of the clip" in page
    assert "in place of the clip" not in run_page(*ran)


def test_answers_by_likelihood_are_said(ran: tuple[Results, RunRecord]) -> None:
    page = run_page(dataclasses.replace(ran[0], answer_by="likelihood"), ran[1])
    assert "likelihood: the option whose letter the model gives the highest probability" in page
    assert "likelihood:" not in run_page(*ran)


def test_a_task_of_which_the_card_asks_no_score_is_there_with_its_coverage(ran: tuple[Results, RunRecord]) -> None:
    [task] = ran[0].tasks
    bare = dataclasses.replace(task, scores=[score for score in task.scores if score.metric == "diversity"])
    page = run_page(dataclasses.replace(ran[0], tasks=[bare]), ran[1])
    assert "No score for advisory by gender: no metric of its card scores the task as a whole" in page
    assert "Coverage of advisory by gender" in page


def test_verdict_values_and_trust_stand_on_the_page(ran: tuple[Results, RunRecord]) -> None:
    results = dataclasses.replace(ran[0], hearing_check="left out")
    page = html.unescape(run_page(results, ran[1]))
    [task] = results.tasks
    lead = next(score for score in task.scores if score.metric == "ntvd" and score.attribute is None)
    assert verdict(task, lead, lead.p_value).words in page.replace("\xa0", " ")  # one test: its p is the adjusted one
    for heading, words, _ in trust_columns(results, task):
        assert heading in page and words in page
    [shift] = shifts_of(task)
    assert page.count('<span class="star">named</span>') == len(shift.named) + 1  # and once where it is explained


def test_no_end_of_a_shift_is_told_under_0(ran: tuple[Results, RunRecord]) -> None:
    [task] = ran[0].tasks
    scores = [dataclasses.replace(score, at_least=-8.4, at_most=-0.2, interval=(0.0, 3.0)) for score in task.scores]
    page = run_page(dataclasses.replace(ran[0], tasks=[dataclasses.replace(task, scores=scores)]), ran[1])
    assert "-8.4" not in page and "-0.2" not in page and "0.0 to 0.0" in page


def test_a_run_without_scores_has_no_page(folder: RunFolder, tmp_path: Path) -> None:
    empty = RunFolder(tmp_path)
    empty.run_json.write_bytes(folder.run_json.read_bytes())
    with pytest.raises(UserError, match="no scores yet"):
        write_run_page(empty, tmp_path / "page.html")


def test_the_command_writes_the_page_into_the_run_folder(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from vibe_harness.cli.report import command

    evaluate("simulated", ["advisory"], dimensions=["gender"], limit=16, tau=1, permutations=9, output_path=tmp_path)
    done = CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0 and str(tmp_path / "report.html") in done.output
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with RunFolder(tmp_path).locked(), pytest.raises(UserError, match="another process"):
        CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)
