"""Run folders that were edited, mixed up or copied in part, and look whole by their checksums: a line each."""

import json
import shutil

import pytest

from tests.run_folders import lines
from vibe_harness.store.checksums import write_sums
from vibe_harness.store.run_folder import RunFolder

READERS = (
    ("report", "out"),
    ("compare", "other", "out"),
    ("compare", "out", "--max-ntvd", "advisory=50"),
    ("leaderboard", "out", "--include-simulated", "--output", "site"),
    ("validate-extraction", "sample", "out", "--output", "sample"),
)


@pytest.fixture
def two(ran):
    """The command in a folder with two run folders: out, and a copy of it, other."""
    shutil.copytree(ran.folder / "out", ran.folder / "other")
    return ran


def edited(two, name, change):
    path = two.folder / "out" / name
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")


def summed_anew(two):
    write_sums(RunFolder(two.folder / "out"))


@pytest.mark.parametrize(
    "name",
    ["run.json", "clips.parquet", "requests.parquet", "engines.jsonl", "responses.jsonl", "extractions.jsonl",
     "observations.parquet", "results.json"],
)  # fmt: skip
@pytest.mark.parametrize("verb", READERS)
def test_a_folder_that_was_copied_in_part_is_refused_by_every_verb_that_reads_its_figures(two, verb, name):
    (two.folder / "out" / name).unlink()
    said = two.refuses(*verb)
    assert "out" in said and len(said.splitlines()) <= 2


@pytest.mark.parametrize("verb", READERS)
def test_a_file_of_another_run_is_refused(two, verb):
    two("score", "other", "--tau", "1", "--permutations", "19")
    shutil.copy(two.folder / "other" / "results.json", two.folder / "out" / "results.json")
    assert "results.json: changed since the run was scored" in two.refuses(*verb)


@pytest.mark.parametrize("name", ["clips.parquet", "observations.parquet"])
def test_a_table_that_is_gone_or_empty_is_a_line_in_a_comparison(two, name):
    (two.folder / "out" / name).write_bytes(b"")
    summed_anew(two)
    assert name in two.refuses("compare", "other", "out")
    (two.folder / "out" / name).unlink()
    summed_anew(two)
    assert "out" in two.refuses("compare", "other", "out")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["record"].update(tasks=[]), "the task 'advisory' is only in 'asked' or only in 'record'"),
        (
            lambda data: data["record"]["tasks"][0]["card"].update(task="other"),
            "is only in 'asked' or only in 'record'",
        ),
        (lambda data: data["record"]["tasks"][0].update(variants=["nope"]), "lacks its prompt 'nope'"),
        (lambda data: data["record"]["tasks"][0].update(prompts={}), "lacks its prompt 'default'"),
        (lambda data: data["record"]["model"].update(model="ü" * 300), "at most 100 characters"),
        (lambda data: data["asked"].pop("model"), "it lacks 'model'"),
        (lambda data: data["asked"].update(extractor="rules"), "it lacks 'extractor'"),
    ],
)
def test_a_record_that_was_edited_is_refused_by_every_verb(two, change, said):
    edited(two, "run.json", change)
    summed_anew(two)
    for verb in (("run-check", "out"), ("score", "out"), *READERS[:2], *READERS[3:]):
        assert said in two.refuses(*verb)


def test_a_record_without_its_machine_is_shown_as_such(two):
    edited(two, "run.json", lambda data: data["record"].update(machine={}))
    summed_anew(two)
    two("report", "out", check=0)
    assert "not recorded" in (two.folder / "out" / "report.html").read_text(encoding="utf-8")
    two("leaderboard", "out", "--include-simulated", "--output", "site", check=0)


def test_a_dimension_of_the_record_that_the_run_lacks_is_a_line(two):
    edited(two, "run.json", lambda data: data["record"].update(dimensions=["nothing"]))
    assert "no such column 'nothing'" in two.refuses("score", "out")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace('"value": ', '"value": NaN, "was": ', 1), "NaN is not a number in JSON"),
        (
            lambda text: text.replace('"p_value": ', '"p_value": Infinity, "was": ', 1),
            "Infinity is not a number in JSON",
        ),
        (lambda text: json.dumps({**json.loads(text), "tasks": []}), "holds the scores of no task"),
        (lambda text: json.dumps({**json.loads(text), "format": 2}), "format 2, but this version reads 1"),
        (lambda text: "[]", "not a JSON object: score again"),
        (lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "tau"}), "tau: Field required"),
    ],
)
def test_results_that_are_none_are_refused_by_every_verb_that_shows_them(two, change, said):
    path = two.folder / "out" / "results.json"
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    summed_anew(two)
    for verb in (READERS[0], READERS[2], READERS[3]):
        assert said in two.refuses(*verb)
    assert said in two("run-check", "out", check=1).stdout


def test_a_run_that_names_no_engine_is_not_whole(two):
    (two.folder / "out" / "engines.jsonl").unlink()
    summed_anew(two)
    assert two("run-check", "out", check=1).stdout.startswith("engines.jsonl: names no engine")


@pytest.mark.parametrize("name", ["SHA256SUMS", "results.json"])
def test_a_folder_in_the_place_of_a_file_is_a_line(two, name):
    path = two.folder / "out" / name
    path.unlink()
    path.mkdir()
    assert name in two.refuses("score", "out")


@pytest.mark.parametrize("name", ["m" * 200, "模型 é\u202e", "with space"])
def test_a_run_folder_of_any_name_and_a_link_to_it(two, name):
    folder = two.folder / name
    (two.folder / "out").rename(folder)
    (two.folder / "link").symlink_to(folder, target_is_directory=True)
    for path in (name, "link"):
        two("run-check", path, check=0)
        two("report", path, check=0)
        two("leaderboard", path, "--include-simulated", "--output", f"site-{len(path)}", check=0)
    done = two("leaderboard", name, "link", "--include-simulated", "--output", "both", check=1)
    assert "the same run as" in done.stderr


def test_checksums_hold_for_files_with_a_clock_of_the_future(two):
    import os

    for path in (two.folder / "out").iterdir():
        os.utime(path, (4e9, 4e9))
    two("run-check", "out", check=0)
    assert lines(two.folder / "out" / "SHA256SUMS")
