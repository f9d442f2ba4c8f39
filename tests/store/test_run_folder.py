"""The run folder under attack: torn, edited, moved, read-only and full; what is stored stays."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.run_folders import RUN, lines, rewrite, with_field, without
from tests.support import hears_interrupts


@pytest.mark.parametrize(
    ("journal", "change"),
    [
        ("responses.jsonl", without("outcome")),
        ("responses.jsonl", with_field("outcome", "great")),
        ("responses.jsonl", with_field("text", 5)),
        ("responses.jsonl", with_field("error", [])),
        ("responses.jsonl", lambda records: [{}, *records]),
        ("extractions.jsonl", without("key")),
        ("extractions.jsonl", with_field("readings", {"activity": "what"})),
        ("extractions.jsonl", with_field("readings", 5)),
        ("extractions.jsonl", with_field("raw", {"activity": "tennis"})),
    ],
)
def test_an_edited_record_is_named_with_its_line(ran, journal, change):
    rewrite(ran.folder / "out" / journal, change)
    before = lines(ran.folder / "out" / journal)
    assert f"{journal}:1: not a record" in ran.refuses(*RUN, "--output-path", "out")
    assert lines(ran.folder / "out" / journal) == before


def test_a_line_nested_without_end(ran):
    with (ran.folder / "out" / "responses.jsonl").open("a", encoding="utf-8") as file:
        file.write("[" * 100_000 + "]" * 100_000 + "\n")
    assert "responses.jsonl:13" in ran.refuses(*RUN, "--output-path", "out")


def test_records_of_other_requests_and_records_that_stand_twice_change_nothing(ran):
    before = json.loads((ran.folder / "out" / "results.json").read_text(encoding="utf-8"))
    rewrite(
        ran.folder / "out" / "responses.jsonl",
        lambda records: [{**records[0], "request": "f" * 32}, *reversed(records), *records[:5]],
    )
    assert ran.json(*RUN, "--output-path", "out") == before
    assert len(pd.read_parquet(ran.folder / "out" / "observations.parquet")) == 12


@pytest.mark.parametrize(("field", "value"), [("clip", "m/s1/0"), ("clip", "zzz"), ("task", "story"), ("variant", "x")])
def test_a_response_moved_to_another_clip_or_task_is_refused(ran, field, value):
    rewrite(ran.folder / "out" / "responses.jsonl", with_field(field, value))
    assert "edited" in ran.refuses(*RUN, "--output-path", "out")


def test_an_answer_stands_whatever_failed_before_or_after_it(ran):
    before = json.loads((ran.folder / "out" / "results.json").read_text(encoding="utf-8"))

    def with_errors(records):
        failed = [{**record, "outcome": "error", "text": "", "error": "timed out"} for record in records]
        return [*failed[:3], *records, *failed[6:]]

    rewrite(ran.folder / "out" / "responses.jsonl", with_errors)
    assert ran.json(*RUN, "--output-path", "out") == before


def test_a_moved_folder_goes_on(ran):
    (ran.folder / "out").rename(ran.folder / "elsewhere")
    plan = json.loads(ran(*RUN, "--output-path", "elsewhere", "--dry-run", "--json", check=0).stdout)
    assert plan["answered"] == plan["requests"] == 12


@pytest.mark.parametrize("damage", ["half", "other", "empty"])
def test_damaged_observations_are_refused_and_made_anew(ran, damage):
    path = ran.folder / "out" / "observations.parquet"
    if damage == "other":
        pd.DataFrame({"a": [1]}).to_parquet(path)
    else:
        path.write_bytes(path.read_bytes()[: 500 if damage == "half" else 0])
    said = ran.refuses("score", "out")
    assert "observations.parquet: damaged" in said and ("no column 'task'" in said) == (damage == "other")
    assert ran(*RUN, "--output-path", "out").returncode in (0, 1)
    assert len(pd.read_parquet(path)) == 12


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("run.json", "{", "run.json: not readable"),
        ("run.json", "[]", "not the record of a run"),
        ("run.json", '{"format": 99, "asked": {}, "record": {}}', "format 99"),
        ("run.json", '{"format": 2, "asked": {}, "record": {}}', "model"),
        ("results.json", "{", "results.json: not readable"),
        ("results.json", '{"format": 99}', "format 99"),
        ("results.json", "[" * 100_000, "results.json: not readable"),
        ("results.json", "[]", "results.json: not a JSON object"),
        ("results.json", None, "no scores yet"),
        ("run.json", None, "no run.json"),
    ],
)
def test_a_report_of_a_damaged_folder(ran, name, content, said):
    path = ran.folder / "out" / name
    path.unlink() if content is None else path.write_text(content, encoding="utf-8")
    assert said in ran.refuses("report", "out")


@pytest.mark.parametrize("path", ["m.csv", "m.csv/x", "n" * 300, "/dev/null", "/proc/nowhere/out"])
def test_what_is_no_folder(ran, path):
    assert len(ran.refuses(*RUN, "--output-path", path).splitlines()) == 1
    assert len(ran.refuses("report", "out", "--output", f"{path}/x.html").splitlines()) == 1


def test_a_journal_that_is_a_folder(ran):
    (ran.folder / "out" / "responses.jsonl").unlink()
    (ran.folder / "out" / "responses.jsonl").mkdir()
    assert "responses.jsonl" in ran.refuses(*RUN, "--output-path", "out")


def test_a_corpus_with_a_name_of_the_longest_kind(ran):
    (ran.folder / "m.csv").rename(ran.folder / f"{'m' * 250}.csv")
    assert ran(*RUN[:-1], f"{'m' * 250}.csv").returncode in (0, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of Unix")
def test_a_full_disk_is_told_and_the_run_goes_on_once_there_is_room(ran):
    import resource

    done = subprocess.run(
        [sys.executable, "-m", "vibe_harness", *RUN, "--output-path", "full"],
        cwd=ran.folder, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000)),
    )  # fmt: skip
    assert done.returncode == 4 and "Traceback" not in done.stderr and "File too large" in done.stderr
    assert ran.json(*RUN, "--output-path", "full") == ran.json(*RUN, "--output-path", "out")


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT])
def test_a_folder_that_takes_no_writes_is_not_the_users_mistake(ran, number, monkeypatch):
    real = Path.open

    def refusing(path, mode="r", *rest, **more):
        if "w" in mode or "a" in mode:
            raise OSError(number, os.strerror(number), str(path))
        return real(path, mode, *rest, **more)

    monkeypatch.setattr(Path, "open", refusing)
    done = ran("score", "out", check=4)
    assert os.strerror(number) in done.stderr and len(done.stderr.splitlines()) == 1


SCORES_FOR_EVER = """
import sys, time
from vibe_harness.cli.main import main
from vibe_harness.pipeline import run

def score_run(*_):
    print("scoring now", file=sys.stderr, flush=True)
    time.sleep(3600)

run.score_run = score_run
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_stopped_by_hand_a_run_goes_on(ran, number, code):
    process = subprocess.Popen(
        [sys.executable, "-c", SCORES_FOR_EVER, *RUN, "--output-path", "stopped"],
        cwd=ran.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=hears_interrupts,
    )  # fmt: skip
    assert any("scoring now" in line for line in process.stderr)
    process.send_signal(number)
    errors = process.stderr.read()
    # Python ends by the signal itself where it was caught within the program's text: 130 to a shell as well.
    assert process.wait() in (code, -number) and "Traceback" not in errors
    said = "12 answers and 12 readings are kept in stopped: the same command goes on"
    assert (said in errors) == (number is signal.SIGINT)
    assert ran.json(*RUN, "--output-path", "stopped") == ran.json(*RUN, "--output-path", "out")


def test_what_a_killed_process_left_half_written_is_cleared_away(ran):
    left = ran.folder / "out" / ".observations.parquet.12345.part"
    left.write_bytes(b"PAR1")
    assert ran(*RUN, "--output-path", "out").returncode in (0, 1)
    assert not left.exists()
