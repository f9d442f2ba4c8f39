"""A run folder is proved whole, wherever it lies, and each fault is told in a line."""

import hashlib
import json
import os
import shutil
import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.run_folders import RUN, lines, rewrite, with_field
from vibe_harness.store.checksums import write_sums
from vibe_harness.store.results import read_results, write_results
from vibe_harness.store.run_folder import RunFolder

CHANGED = ": changed since the run was scored"


def faults(ran, *changed):
    """The faults of the run folder, but for the line on files whose checksums differ: those are `changed`."""
    found = json.loads(ran("run-check", "out", "--json", check=1).stdout)["faults"]
    assert [line.partition(CHANGED)[0] for line in found if CHANGED in line] == [", ".join(changed)] * bool(changed)
    return [line for line in found if CHANGED not in line]


def test_a_finished_run_is_whole(ran):
    done = ran("run-check", "out", check=0)
    assert "whole" in done.stdout and "12 requests" in done.stdout
    assert ran.json("run-check", "out") == {
        "whole": True,
        "planned": 12,
        "answered": 12,
        "errors": 0,
        "faults": [],
    }


@pytest.mark.parametrize("journal", ["responses.jsonl", "extractions.jsonl", "engines.jsonl"])
@pytest.mark.parametrize("tail", [b'{"request": "0', b"\0" * 300])
def test_a_torn_tail_is_named_and_mended_by_the_same_command(ran, journal, tail):
    with (ran.folder / "out" / journal).open("ab") as file:
        file.write(tail)
    [fault] = faults(ran, journal)
    assert fault.startswith((f"{journal}:13: torn", f"{journal}:3: torn"))
    assert ran(*RUN, "--output-path", "out").returncode in (0, 1)
    ran("run-check", "out", check=0)


def test_what_is_missing_is_counted_and_named(ran):
    rewrite(ran.folder / "out" / "responses.jsonl", lambda records: records[2:])
    found = faults(ran, "responses.jsonl")
    assert found[0].startswith("responses.jsonl: 2 of 12 planned requests have no outcome, the first: advisory, ")
    assert "2 of 12 requests are not there as their responses and ext" in found[1] and len(found) == 2


def test_the_lines_are_those_of_the_json(ran):
    rewrite(ran.folder / "out" / "responses.jsonl", lambda records: records[2:])
    found = json.loads(ran("run-check", "out", "--json", check=1).stdout)["faults"]
    assert ran("run-check", "out", check=1).stdout.splitlines() == found and len(found) > 1


def test_every_other_fault_of_the_responses_is_named_with_its_first_line(ran):
    def change(records):
        stray = [{**records[0], "request": f"{n:032x}"} for n in range(3)]
        moved = {**records[11], "clip": records[0]["clip"]}
        return [*records[:11], *stray, records[5], moved, records[11], {"not": "a record"}]

    rewrite(ran.folder / "out" / "responses.jsonl", change)
    found = faults(ran, "responses.jsonl")
    for fault, said in zip(
        found,
        (
            "responses.jsonl:12: the answer to a request that was not planned",
            "responses.jsonl:15: a second answer to its request",
            "responses.jsonl:16: names another task, prompt or clip than advisory",
            "responses.jsonl:18: not a record",
        ),
        strict=True,
    ):
        assert fault.startswith(said)
    assert found[0].endswith("and 2 more such lines")


def test_failed_calls_are_an_outcome_and_counted(ran):
    rewrite(
        ran.folder / "out" / "responses.jsonl",
        lambda records: [{**records[0], "outcome": "error", "text": "", "error": "timed out"}, *records[1:]],
    )
    found = ran("run-check", "out", "--json")
    assert json.loads(found.stdout)["errors"] == 1 and json.loads(found.stdout)["answered"] == 11


def test_an_answer_that_was_edited_has_no_reading(ran):
    rewrite(ran.folder / "out" / "responses.jsonl", with_field("text", "Activities: chess"))
    unread, differing = faults(ran, "responses.jsonl")
    assert unread.startswith("extractions.jsonl: 1 answers have no reading of just that text")
    assert "1 of 12 requests are not there as" in differing


def test_a_reading_of_another_request_is_named(ran):
    rewrite(ran.folder / "out" / "extractions.jsonl", with_field("request", "0" * 32))
    [fault] = faults(ran, "extractions.jsonl")
    assert "names the request 00000000000000000000000000000000: the file was edited; remove that line" in fault
    assert "names the request" in ran(*RUN, "--output-path", "out").stderr


def scored_again(ran):
    """With checksums of what stands there now; what the command tells beside the scores."""
    return ran("score", "out", "--tau", "3", "--permutations", "19").stderr


@pytest.mark.parametrize("journal", ["extractions.jsonl", "responses.jsonl"])
def test_a_reading_or_an_answer_that_was_changed_is_seen_also_after_scoring(ran, journal):
    def change(records):
        said = next(record for record in records if "Activities" in record["text"] or record.get("raw"))
        if journal == "extractions.jsonl":
            said["raw"] = {"activity": ["chess"]}
        else:
            said["text"] += " Bye."
        return records

    rewrite(ran.folder / "out" / journal, change)
    assert "1 of 12 requests are not there as" in faults(ran, journal)[-1]
    assert f"changed since it was scored last: {journal}: see `vibe-harness run-check out`" in scored_again(ran)
    assert not scored_again(ran)
    assert "1 of 12 requests are not there as" in faults(ran)[-1]


@pytest.mark.parametrize("column", ["group_gender", "values", "attribute", "speaker"])
def test_an_observation_that_was_changed_is_seen_even_where_its_checksum_is_new(ran, column):
    path = ran.folder / "out" / "observations.parquet"
    table = pq.read_table(path)
    cells = table.column(column).to_pylist()
    other = next((cell for cell in cells if cell != cells[0]), "another")
    table = table.set_column(
        table.column_names.index(column), column, pa.array([other, *cells[1:]], table.schema.field(column).type)
    )
    pq.write_table(table, path)
    assert "1 of 12 requests are not there as" in faults(ran, path.name)[0]
    write_sums(RunFolder(ran.folder / "out"))
    assert "1 of 12 requests are not there as" in faults(ran)[0]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda data: data["tasks"][0]["scores"][0].update(value=1.5), "tasks.0.scores.0.value: 1.5, and "),
        (lambda data: data["tasks"][0].update(reliable=not data["tasks"][0]["reliable"]), "tasks.0.reliable: "),
        (lambda data: data.update(simulated=False), "simulated: False, and True when scored again"),
        (lambda data: data.update(seed=7), "tasks.0.scores."),
        (lambda data: data["tasks"][0]["scores"].pop(), "tasks.0.scores: "),
    ],
)
def test_an_edited_figure_is_seen_even_where_its_checksum_is_new(ran, change, place):
    path = ran.folder / "out" / "results.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    [fault] = faults(ran, "results.json")
    assert "not what its observations come to" in fault and place in fault and "score it again" in fault
    write_sums(RunFolder(ran.folder / "out"))
    assert faults(ran) == [fault]


def test_the_last_digits_of_another_machine_are_no_fault(ran):
    path = ran.folder / "out" / "results.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    score = data["tasks"][0]["scores"][0]
    score["value"], score["null_mean"] = score["value"] * (1 + 1e-13), score["null_mean"] * (1 - 1e-13)
    path.write_text(json.dumps(data), encoding="utf-8")
    write_sums(RunFolder(ran.folder / "out"))
    ran("run-check", "out", check=0)


def test_scores_of_other_settings_are_made_anew_with_these(ran):
    ran("score", "out", "--tau", "2", "--seed", "9", "--permutations", "29", "--also-test", "version-1,version-2")
    ran("run-check", "out", check=0)


def test_a_page_is_never_older_than_the_scores_beside_it(ran):
    page = ran.folder / "out" / "report.html"
    before = page.read_text(encoding="utf-8")
    ran(*RUN, "--output-path", "out")
    assert page.read_text(encoding="utf-8") == before
    ran("score", "out", "--tau", "1", "--permutations", "19")
    data = json.loads((ran.folder / "out" / "results.json").read_text(encoding="utf-8"))
    shown = page.read_text(encoding="utf-8")
    assert shown != before and f"{data['tasks'][0]['scores'][0]['value']:.1f}" in shown
    ran("report", "out", check=0)
    assert page.read_text(encoding="utf-8") == shown
    page.unlink()
    ran("score", "out", "--tau", "3", "--permutations", "19")  # where there was no page there is none
    assert not page.exists()


def test_a_page_of_other_scores_goes_where_no_new_one_is_written(ran, monkeypatch):
    page = ran.folder / "out" / "report.html"
    score = ("--tau", "3", "--permutations", "19")
    folder = RunFolder(ran.folder / "out")
    write_results(folder, read_results(folder.results))
    assert page.exists()  # nothing has changed
    rewrite(folder.engines, lambda records: [*records, records[0]])
    monkeypatch.setattr("vibe_harness.api.write_report", lambda *_, **__: None)
    ran("score", "out", *score)
    assert not page.exists()


def test_checksums_are_those_of_sha256sum(ran):
    folder = ran.folder / "out"
    said = dict(reversed(line.split("  ")) for line in lines(folder / "SHA256SUMS"))
    assert said == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name not in (".lock", "SHA256SUMS", "report.html")
    }


def test_a_run_that_was_scored_before_there_were_checksums_is_told_so(ran):
    (ran.folder / "out" / "SHA256SUMS").unlink()
    [fault] = faults(ran)
    assert "scored by an earlier version" in fault and "vibe-harness score out" in fault
    scored_again(ran)
    ran("run-check", "out", check=0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["record"]["model"].update(revision="x"), "the model card is not the one that was asked"),
        (lambda data: data["record"]["tasks"][0]["card"].update(version=9), "the task 'advisory' is not the one"),
        (
            lambda data: data["record"]["tasks"][0]["sources"].update({"advisory/extract.j2": "x"}),
            "the task 'advisory'",
        ),
        (lambda data: data["asked"].update(clips="0" * 32), "these are not the clips that were asked"),
        (lambda data: data["record"].update(requests="0" * 32), "these are not the requests that were planned"),
    ],
)
def test_hashes_hold(ran, change, said):
    path = ran.folder / "out" / "run.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    assert said in faults(ran, "run.json")[0]


@pytest.mark.parametrize("name", ["clips.parquet", "requests.parquet", "observations.parquet", "results.json"])
def test_a_file_that_is_missing_or_damaged_is_named(ran, name):
    path = ran.folder / "out" / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    changed = [name] if name not in ("requests.parquet", "results.json") else []  # without which nothing is compared
    [fault] = faults(ran, *changed)
    assert name in fault and "Traceback" not in fault
    path.unlink()
    [fault] = faults(ran, *changed)
    assert name in fault and "no such file" in fault


def test_a_changed_group_or_observation_is_seen(ran):
    clips = ran.folder / "out" / "clips.parquet"
    frame = pd.read_parquet(clips)
    frame.loc[0, "group_gender"] = "female"
    frame.to_parquet(clips)
    path = ran.folder / "out" / "observations.parquet"
    frame = pd.read_parquet(path)
    frame["outcome"] = "truncated"  # as no response ended
    frame.to_parquet(path)
    found = faults(ran, "clips.parquet", "observations.parquet")
    assert "not the clips" in found[0] and "observations.parquet: 12 of 12 requests are not there" in found[1]


def test_what_is_no_run_folder_is_refused(ran):
    assert "no run.json; out is one" in ran.refuses("run-check", ".")
    assert "name too long" in ran.refuses("run-check", "n" * 300)
    (ran.folder / "out" / "run.json").write_text('{"format": 99, "asked": {}, "record": {}}', encoding="utf-8")
    assert "format 99" in ran.refuses("run-check", "out")


def test_a_copy_elsewhere_without_its_corpus_is_checked_scored_and_shown(ran, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("another machine") / "run"
    shutil.copytree(ran.folder / "out", elsewhere)
    (ran.folder / "m.csv").unlink()
    before = json.loads((elsewhere / "results.json").read_text(encoding="utf-8"))
    ran("run-check", elsewhere, check=0)
    assert ran.json("score", elsewhere, "--tau", "3", "--permutations", "19") == before
    ran("report", elsewhere, check=0)


# Root may write whatever a folder's mode says, unless it gives that power up.
AS_OTHERS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.getuid() == 0 else ()


@pytest.mark.slow
@pytest.mark.skipif(AS_OTHERS != () and shutil.which("setpriv") is None, reason="root, and no setpriv to be less")
def test_a_folder_that_takes_no_writes_is_checked_and_a_run_in_it_is_refused_in_a_line(ran):
    folder = ran.folder / "out"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)

    def command(*arguments):
        words = [*AS_OTHERS, sys.executable, "-m", "vibe_harness", *arguments]
        return subprocess.run(words, cwd=ran.folder, capture_output=True, text=True, check=False)

    checked = command("run-check", "out")
    assert checked.returncode == 0 and "whole" in checked.stdout, checked.stderr
    for arguments in ((*RUN, "--output-path", "out"), ("score", "out"), ("report", "out")):
        refused = command(*arguments)
        assert refused.returncode == 4 and len(refused.stderr.splitlines()) == 1, refused.stderr
        assert "out" in refused.stderr and "ermission" in refused.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    folder.chmod(0o755)


def test_a_path_that_is_too_long_in_all_is_one_line(ran):
    path = "/".join(["d" * 200] * 25)
    assert len(ran.refuses(*RUN, "--output-path", path).splitlines()) == 1


def test_a_clock_that_jumps_changes_nothing(ran, monkeypatch):
    before = json.loads((ran.folder / "out" / "results.json").read_text(encoding="utf-8"))
    jumps = iter(range(10**9))
    monkeypatch.setattr("time.time", lambda: 2e9 - 1e6 * next(jumps))  # back by 12 days each time it is looked at
    assert ran.json(*RUN, "--output-path", "jumped") == before
    ran("run-check", "jumped", check=0)
