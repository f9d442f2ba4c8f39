"""Which of several runs of one question a command goes on with, and where `--fresh` starts."""

import json
from pathlib import Path

import pytest

from vibe_harness.errors import UserError
from vibe_harness.store.fresh_runs import fresh_number, fresh_run, newest_run

SAME = {"model": "m"}


def run(path: Path, *, fresh: bool = True, asked: dict[str, str] = SAME, answers: int = 1, done: bool = True) -> Path:
    """A folder as a run leaves it."""
    path.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps({"fresh": fresh, "asked": asked}), encoding="utf-8")
    (path / "responses.jsonl").write_text("{}\n" * answers, encoding="utf-8")
    if done:
        (path / "results.json").write_text("{}", encoding="utf-8")
    return path


def test_without_any_run_both_are_the_folder_itself(tmp_path: Path) -> None:
    base = tmp_path / "runs" / "r"
    assert newest_run(base, SAME) == fresh_run(base, SAME) == base
    run(base, fresh=False, answers=0, done=False)  # begun, and nothing was asked
    assert newest_run(base, SAME) == fresh_run(base, SAME) == base


def test_the_newest_is_gone_on_with_and_the_next_number_is_taken(tmp_path: Path) -> None:
    base = run(tmp_path / "r", fresh=False, done=False)
    assert fresh_run(base, SAME) == tmp_path / "r-2"
    run(tmp_path / "r-2")
    run(tmp_path / "r-10")
    assert newest_run(base, SAME) == tmp_path / "r-10" and fresh_run(base, SAME) == tmp_path / "r-11"
    (tmp_path / "r").rename(tmp_path / "old")
    assert newest_run(base, SAME) == tmp_path / "r-10"


def test_a_folder_with_such_a_name_that_was_made_otherwise_is_left_alone(tmp_path: Path) -> None:
    base = run(tmp_path / "r", fresh=False)
    run(tmp_path / "r-2", fresh=False)  # --output-path r-2
    run(tmp_path / "r-3", asked={"model": "another"})
    for name in ("r-04", "r-x", "r-1", "rr-5", "r-2-2"):
        run(tmp_path / name)
    (tmp_path / "r-6").mkdir()
    (tmp_path / "r-7").write_text("a file", encoding="utf-8")
    assert newest_run(base, SAME) == base and fresh_run(base, SAME) == tmp_path / "r-8"


def test_an_unfinished_fresh_run_is_not_paid_for_twice(tmp_path: Path) -> None:
    base = run(tmp_path / "r", fresh=False)
    begun = run(tmp_path / "r-2", answers=0, done=False)
    assert fresh_run(base, SAME) == begun  # nothing was asked in it
    (begun / "responses.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(UserError, match="r-2: this run was started with --fresh and is not finished"):
        fresh_run(base, SAME)
    assert newest_run(base, SAME) == begun


def test_a_damaged_run_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    base = run(tmp_path / "r", fresh=False)
    (run(tmp_path / "r-2") / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"run\.json"):
        newest_run(base, SAME)


def test_the_number_of_a_fresh_run_is_its_folders() -> None:
    names = {"run": 1, "run-2": 2, "run-10": 10, "run-02": 1, "a-7-b": 1, "run-": 1}
    assert {name: fresh_number(Path(name)) for name in names} == names
