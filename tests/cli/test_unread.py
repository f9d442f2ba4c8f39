"""Where nobody reads what a command prints, its work is done all the same, and its exit code says what it found."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import QuickCommand
from tests.run_folders import RUN
from vibe_harness.cli.main import main
from vibe_harness.store.run_folder import RunFolder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes of Unix")


def unread(ran: QuickCommand, *arguments: object, stream: str = "stdout") -> int:
    """Run a command whose standard output (or error) goes into a pipe that nobody reads; its exit code."""
    reading, writing = os.pipe()
    os.close(reading)
    redirect = contextlib.redirect_stdout if stream == "stdout" else contextlib.redirect_stderr
    with os.fdopen(writing, "w", encoding="utf-8") as out, redirect(out), contextlib.chdir(ran.folder):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            return int(end.code or 0)
    raise AssertionError("main ends the program")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_run_is_finished_with_its_page_and_says_how_it_ended(ran, stream):
    code = ran(*RUN, "--output-path", "read").returncode
    assert unread(ran, *RUN, "--output-path", "unread", stream=stream) == code
    folder = RunFolder(ran.folder / "unread")
    assert folder.page.is_file()
    ran("run-check", "unread", check=0)
    assert folder.results.read_bytes() == (ran.folder / "read" / "results.json").read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        ("run-check", "out"),
        ("compare", "out", "--max-ntvd", "advisory=0"),
        ("leaderboard", "out", "nowhere", "--include-simulated", "--output", "site"),
        ("study", "s.yaml"),
    ],
)
def test_what_does_not_hold_is_exit_code_1_whoever_reads_it(ran, arguments):
    study = "study: s\nmodels: [simulated]\ntasks: [advisory]\ncorpora: [m.csv]\nlimit: 1\n"  # of one group: it fails
    (ran.folder / "s.yaml").write_text(study, encoding="utf-8")
    if arguments[0] == "run-check":
        (ran.folder / "out" / "SHA256SUMS").unlink()
    assert ran(*arguments).returncode == unread(ran, *arguments) == 1
    assert arguments[0] != "leaderboard" or (ran.folder / "site" / "index.html").is_file()


def test_figures_are_drawn_whoever_reads_their_names(ran):
    ran("score", "out", "--tau", "1", "--permutations", "19")
    assert unread(ran, "report", "out", "--figures", "figures") == 0
    assert len(list((ran.folder / "figures").iterdir())) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["score", "--help"]])
def test_help_that_finds_the_disk_full_is_a_line(arguments, capsys):
    with (
        Path("/dev/full").open("w", encoding="utf-8") as full,
        contextlib.redirect_stdout(full),
        pytest.raises(SystemExit) as end,
    ):
        main(arguments)
    assert end.value.code == 4 and "No space left" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_the_output_ends_no_run_half_way(ran):
    with (
        Path("/dev/full").open("w", encoding="utf-8") as full,
        contextlib.redirect_stdout(full),
        contextlib.chdir(ran.folder),
        pytest.raises(SystemExit) as end,
    ):
        main([*RUN, "--output-path", "full"])
    assert end.value.code == 4 and (ran.folder / "full" / "report.html").is_file()


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("--version",)])
def test_help_that_nobody_reads_is_no_traceback(ran, arguments):
    assert unread(ran, *arguments) in (0, 2)


def stopped_while(monkeypatch, ran, place, *arguments):
    """What the command says when a person stops it at `place`."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, stop)
    done = ran(*arguments)
    assert done.returncode == 130 and len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("vibe_harness.planning.prepare._checked", "stopped before anything was asked"),
        ("vibe_harness.pipeline.run._started", "stopped before anything was answered: nothing is kept"),
        (
            "vibe_harness.pipeline.run.run_extraction",
            "stopped. 12 answers are kept in new: the same command goes on from there",
        ),
        ("vibe_harness.pipeline.run.score_run", "stopped. 12 answers and 12 readings are kept in new"),
        ("vibe_harness.report.run_page.run_page", "stopped. 12 answers and 12 readings are kept in new"),
    ],
)
def test_a_run_that_is_stopped_says_what_is_kept_at_each_stage(ran, monkeypatch, place, said):
    assert f"vibe-harness: {said}" in stopped_while(monkeypatch, ran, place, *RUN, "--output-path", "new")


def test_a_study_that_is_stopped_says_what_is_kept(ran, monkeypatch):
    study = "study: s\nmodels: [simulated]\ntasks: [advisory]\ncorpora: [m.csv]\n"
    (ran.folder / "s.yaml").write_text(study, encoding="utf-8")
    place = "vibe_harness.studies.study_folder.prepare"
    assert "before anything was answered" in stopped_while(monkeypatch, ran, place, "study", "s.yaml")
    monkeypatch.undo()
    place = "vibe_harness.studies.study_folder.run_extraction"
    assert "12 answers are kept in runs/s" in stopped_while(monkeypatch, ran, place, "study", "s.yaml")


def test_a_verb_that_keeps_nothing_says_no_more_than_stopped(ran, monkeypatch):
    before = (ran.folder / "out" / "results.json").read_bytes()
    said = stopped_while(monkeypatch, ran, "vibe_harness.api.score_run", "score", "out")
    assert said == "vibe-harness: stopped\n"
    assert (ran.folder / "out" / "results.json").read_bytes() == before
    monkeypatch.undo()
    ran("run-check", "out", check=0)


@pytest.mark.slow
def test_a_run_into_head_is_finished(ran):
    """As a person does it: `vibe-harness run ... | head -1`."""
    shutil.rmtree(ran.folder / "out")
    run = subprocess.Popen(
        [sys.executable, "-m", "vibe_harness", *RUN, "--output-path", "out"], cwd=ran.folder, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert run.stdout is not None and run.stdout.readline()
    run.stdout.close()
    assert run.wait() in (0, 1) and (ran.folder / "out" / "report.html").is_file()
