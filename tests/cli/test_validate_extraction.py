"""`vibe-harness validate-extraction`, as a person types it."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from tests.command_line import QuickCommand
from tests.loopback import Loopback
from vibe_harness.validation.judgments import Judge, Judgment, Verdict
from vibe_harness.validation.sample import read_sample

VERB = "validate-extraction"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run and its sample; not to be changed."""
    folder = tmp_path_factory.mktemp("ran")
    quick = QuickCommand(folder)
    quick("--model=simulated", "--tasks=advisory,story", "--limit=48", "--tau=1", "--permutations=9",
          "--output-path=run")  # fmt: skip
    done = quick(VERB, "sample", "run", "--output", "sample", check=0)
    assert "20 responses with 70 readings to judge, read by rules" in done.stdout
    return folder


@pytest.fixture
def vibe(quick: QuickCommand, ran: Path) -> QuickCommand:
    """In a copy of that folder."""
    shutil.copytree(ran, quick.folder, dirs_exist_ok=True)
    return quick


def judge_all(folder: Path, name: str, wrong: int) -> None:
    sample = read_sample(folder)
    items = [item for item, *_ in sample.items()]
    words = [Verdict.WRONG] * wrong + [Verdict.RIGHT] * (len(items) - wrong)
    Judge(folder, sample, name).add([Judgment(item, word) for item, word in zip(items, words, strict=True)])


def fill(folder: Path, **words: str) -> Path:
    """The sheet, filled: column -> what to write into its first rows."""
    with (folder / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for column, word in words.items():
        for row in rows[:10]:
            row[column] = word
    path = folder / "filled.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_sheet_page_and_score_go_together(vibe: QuickCommand) -> None:
    folder = vibe.folder / "sample"
    sheet = fill(folder, judgment="Wrong")
    said = vibe(VERB, "import", "sample", sheet, "--judge=ben", check=0).stdout
    assert "10 new, 0 changed, 0 already stored" in said and "60 rows without a judgment, 0 readings without" in said
    assert "0 new, 0 changed, 10 already" in vibe(VERB, "import", "sample", sheet, "--judge=ben", check=0).stdout
    part = vibe(VERB, "score", "sample", check=1)
    assert "NOT COMPLETE" in part.stdout and "SIMULATED" in part.stdout
    judge_all(folder, "ann", wrong=7)
    said = vibe(VERB, "score", "sample", check=0).stdout
    assert "judged by ann (70), ben (10)" in said and "ann and ben, on 10 readings: 70.0% the same" in said
    found = vibe.json(VERB, "score", "sample", "--judge=ann")
    assert found["extractors"][0]["overall"]["share"] == 0.9 and found["complete"]
    assert json.loads((folder / "validation.json").read_text(encoding="utf-8")) == found
    kept = json.loads((vibe.folder / "run" / "validation.json").read_text(encoding="utf-8"))
    assert kept["validation"] == found and len(kept["judged"]) == 70
    assert vibe("score", "run", "--permutations=9").returncode in (0, 1)  # the run is a run as before


def test_the_page_of_a_run_shows_the_agreement_that_lies_beside_it(vibe: QuickCommand) -> None:
    page = vibe.folder / "run" / "report.html"
    vibe("report", "run", check=0)
    assert "Not checked by people yet" in page.read_text(encoding="utf-8")
    judge_all(vibe.folder / "sample", "ann", wrong=7)
    vibe(VERB, "score", "sample", check=0)
    assert "Agreement of people with rules" in page.read_text(encoding="utf-8")
    with (vibe.folder / "run" / "engines.jsonl").open("a", encoding="utf-8") as file:
        file.write("{}\n")
    done = vibe(VERB, "score", "sample", "--seed=1", check=0)
    assert not page.exists() and "vibe-harness: no page: " in done.stderr and "engines.jsonl" in done.stderr


def test_another_extractor_is_compared_over_the_same_responses(vibe: QuickCommand) -> None:
    with Loopback(rates={"bad_request": 0.1}, seed=2) as server:
        card = vibe.folder / "reads.yaml"
        card.write_text(
            f"model: reads\nbackend: openai\nid: loopback\naudio: false\nconnection: {{base_url: '{server.url}'}}\n",
            encoding="utf-8",
        )
        said = vibe(VERB, "sample", "run", "--output", "both", "--extractor", card, check=0).stdout
    assert "read by rules, reads" in said and "readings failed, and cannot be judged" in said
    folder = vibe.folder / "both"
    sample = read_sample(folder)
    alike = {
        item: Verdict.RIGHT if "rules" in claim.extractors else Verdict.WRONG for item, _, _, claim in sample.items()
    }
    Judge(folder, sample, "ann").add([Judgment(item, word) for item, word in alike.items()])
    found = vibe.json(VERB, "score", "both")
    [two] = found["comparisons"]
    assert (two["first"], two["second"]) == ("rules", "reads") and two["first_share"] == 1
    assert two["second_not_read"] > 0 and two["judged"] + two["second_not_read"] + two["first_not_read"] <= 70
    assert two["difference"] > 0.5 and two["p_value"] < 0.01 and two["interval"][0] > 0
    assert "rules less reads, on" in vibe(VERB, "score", "both", check=0).stdout


def test_a_broken_sheet_is_told_by_row_and_nothing_is_taken(vibe: QuickCommand) -> None:
    sheet = fill(vibe.folder / "sample", judgment="right", wrong_items="nonsense")
    before = sheet.read_bytes()
    told = vibe.refuses(VERB, "import", "sample", sheet, "--judge=ann")
    assert "row 2: 'nonsense' is not among" in told and told.count("\n  row ") == 10
    assert sheet.read_bytes() == before and not list((vibe.folder / "sample").glob("judge-*"))


def test_a_sheet_that_was_filled_in_is_not_written_over(vibe: QuickCommand) -> None:
    folder = vibe.folder / "sample"
    filled = fill(folder, judgment="right").replace(folder / "sheet.csv").read_bytes()
    vibe(VERB, "sample", "run", "--output", "sample", check=0)
    assert (folder / "sheet.csv").read_bytes() == filled


def test_judgments_of_another_run_are_refused(vibe: QuickCommand) -> None:
    vibe("--model=simulated", "--tasks=story", "--limit=48", "--seed=5", "--tau=1", "--permutations=9",
         "--output-path=other")  # fmt: skip
    vibe(VERB, "sample", "other", "--output", "others", check=0)
    folder, others = vibe.folder / "sample", vibe.folder / "others"
    judge_all(others, "ann", wrong=0)
    stray = folder / "judge-ann.jsonl"
    stray.write_bytes((others / "judge-ann.jsonl").read_bytes())
    told = vibe.refuses(VERB, "score", "sample")
    assert "judge-ann.jsonl:1: a judgment of the sample" in told and read_sample(others).id in told
    stray.unlink()
    told = vibe.refuses(VERB, "import", "sample", fill(others, judgment="right"), "--judge=ann")
    assert f"row 2: of the sample '{read_sample(others).id}'" in told and not stray.exists()


def test_other_mistakes_are_told(vibe: QuickCommand) -> None:
    assert "holds another sample" in vibe.refuses(VERB, "sample", "run", "--output", "sample", "--seed=3")
    assert "not a run folder" in vibe.refuses(VERB, "sample", "sample", "--output", "new")
    assert "no judgments yet" in vibe.refuses(VERB, "score", "sample")
    assert "holds no sample" in vibe.refuses(VERB, "judge", "run", "--judge=ann")
    assert "small letters" in vibe.refuses(VERB, "judge", "sample", "--judge=Ann Lee")
    judge_all(vibe.folder / "sample", "ann", wrong=0)
    assert "Did you mean 'ann'" in vibe.refuses(VERB, "score", "sample", "--judge=anne")
    (vibe.folder / "run").rename(vibe.folder / "elsewhere")
    done = vibe(VERB, "score", "sample", check=0)
    assert "not written to a run folder" in done.stderr and "run.json" in done.stderr
