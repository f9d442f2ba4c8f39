"""What a person and a program see: hostile names do no harm, any encoding will do, a closed pipe is no failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = ("--model", "simulated", "--tasks", "advisory", "--tau", "3", "--permutations", "19")


def renamed(tones, female, male):
    """The manifest of `tones` with other names for its groups and column."""
    rows = tones.read_text(encoding="utf-8").splitlines()
    rows = [row.replace("female", "F").replace("male", male).replace("F", female) for row in rows]
    tones.write_text("\n".join(["file,speaker,g[/b]", *rows[1:]]) + "\n", encoding="utf-8")
    return tones


def test_names_that_look_like_markup_or_commands_are_shown_as_they_are(quick, tones):
    manifest = renamed(tones, "[bold]red[/]", "\x1b[31mred\u202e\x07")
    done = quick(*RUN, "--corpus", manifest, "--dimension", "g[/b]", "--full")
    assert done.returncode in (0, 1), done.stderr
    assert "g[/b]" in done.stdout and "[bold]red[/]: 4 speakers" in done.stdout
    assert "\\x1b[31mred\\u202e\\x07: 4 speakers" in done.stdout
    assert not any(sign in done.stdout + done.stderr for sign in "\x1b\u202e\x07")


def test_a_table_of_scores_fits_80_letters_with_every_name_whole(quick, tones):
    quick("--model", "simulated", "--tasks", "story", "--tau", "2", "--permutations", "19", "--corpus", tones,
          "--output-path", "out")  # fmt: skip
    lines = quick("show", "out").stdout.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("story by gender "))
    assert max(map(len, lines[start - 2 : start + 7])) <= 80
    assert lines[start + 1].startswith("  economic situation ") and lines[start + 7] == ""


def test_a_name_with_a_line_break_and_controls_in_an_error(quick, tones):
    rows = tones.read_text(encoding="utf-8") + '"no\x1b[2J\u202e.wav",s0,male\n'
    speaker = next(row.split(",")[1] for row in rows.splitlines() if row.endswith(",male"))
    tones.write_text(rows.replace(",s0,male", f",{speaker},male"), encoding="utf-8")
    message = quick.refuses(*RUN, "--corpus", tones)
    assert "\\x1b[2J\\u202e.wav" in message and "\x1b" not in message


@pytest.mark.parametrize(
    ("encoding", "verb"),
    [("ascii", ("score", "out")), ("latin-1", ("score", "out")), ("latin-1", ("corpus", "show", "tones/manifest.csv"))],
)
def test_a_poor_terminal_gets_a_table_and_json_that_is_json(quick, tones, encoding, verb):
    renamed(tones, "女性", "männlich")
    told = quick.json(*RUN, "--corpus", "tones/manifest.csv", "--dimension", "g[/b]", "--output-path", "out")
    assert told["tasks"][0]["groups"].keys() == {"女性", "männlich"}
    assert quick("score", "out", "--json").stdout.isascii()
    plain = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "vibe_harness", *verb],
        cwd=quick.folder, capture_output=True, env={**os.environ, **plain}, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1) and b"nnlich" in done.stdout, done.stderr
    assert ("女性".encode() in done.stdout) == (encoding == "ascii")  # else its numbers: \\u5973\\u6027


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of Unix")
@pytest.mark.parametrize("verb", [("tasks", "list"), ("schema", "results")])
def test_a_reader_that_goes_away_is_no_failure(verb):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "vibe_harness", *verb], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_an_output_that_takes_no_more_is_said_in_a_line():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "vibe_harness", "tasks", "list"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 4
    assert done.stderr.decode().splitlines() == ["vibe-harness: standard output: No space left on device"]


@pytest.mark.skipif(os.name != "posix", reason="streams are closed by the shell")
@pytest.mark.parametrize(
    "closed",
    [pytest.param(">&-", marks=pytest.mark.slow), pytest.param("2>&-", marks=pytest.mark.slow), "<&- >&- 2>&-"],
)
def test_a_program_started_with_its_streams_closed_goes_on(vibe, tones, closed):
    words = [sys.executable, "-m", "vibe_harness", *RUN, "--corpus", str(tones), "--output-path", "out"]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *words], cwd=vibe.folder, capture_output=True, check=False
    )
    assert done.returncode in (0, 1) and b"Traceback" not in done.stderr
    vibe("run-check", "out", check=0)  # nothing that was printed went into a file


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are text")
def test_a_name_that_is_not_utf8(quick):
    said = quick.refuses(*RUN, "--output-path", os.fsdecode(b"out\xff"))
    assert "not UTF-8" in said and not list(quick.folder.iterdir())
