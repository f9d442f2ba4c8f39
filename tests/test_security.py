"""What SECURITY.md promises of files from strangers, promise by promise.

Archives: tests/corpora/importers/test_sources.py. Templates and cards that take too much: tests/cards, above all
tests/cards/test_sandbox.py. Manifests that climb out: tests/cli/test_bad_input.py. Pages in a real browser:
tests/report.
"""

from __future__ import annotations

import csv
import html.parser
import io
import json
import os
import socket
import time
from pathlib import Path

import pytest

from tests.choice_corpora import quiz
from tests.command_line import QuickCommand, tone
from tests.loopback import Loopback
from vibe_harness.cards.loading import CardIndex
from vibe_harness.csv_sheets import escape_formula, inert_row
from vibe_harness.errors import UserError
from vibe_harness.store.checksums import write_sums
from vibe_harness.store.run_folder import RunFolder

RUN = ("--model", "simulated", "--tau", "2", "--permutations", "19", "--corpus", "m.csv")
KEY = "sk-4f9a1c77deadbeef"

CARD = """\
task: mine
version: 1
description: hobbies
prompts: {default: mine.j2}
extraction:
  template: read.j2
  attributes: {activity: {values: open, label: Activities}}
dimensions: {gender: [m]}
"""
METRIC = """\
import pathlib
import datasets
import evaluate
pathlib.Path("RAN").write_text("code ran")
class Mine(evaluate.Metric):
    def _info(self):
        return evaluate.MetricInfo(description="mine", citation="", features=datasets.Features(
            {"predictions": datasets.Value("string")}))
    def _compute(self, predictions):
        return {"mine": float(len(predictions))}
"""


@pytest.fixture
def vibe(tmp_path):
    """The command in a folder with a corpus and a stranger's cards in `theirs`."""
    rows = ["file,speaker,gender"]
    for speaker in range(4):
        tone(tmp_path / f"{speaker}.wav", (110, 200)[speaker % 2] + 3 * speaker)
        rows.append(f"{speaker}.wav,s{speaker},{('male', 'female')[speaker % 2]}")
    (tmp_path / "m.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    for folder in ("tasks", "templates", "models"):
        (tmp_path / "theirs" / folder).mkdir(parents=True)
    (tmp_path / "theirs/templates/mine.j2").write_text("Name three hobbies after 'Activities:'.", encoding="utf-8")
    (tmp_path / "theirs/templates/read.j2").write_text("{{ fence }} {{ response }} {{ fence }}", encoding="utf-8")
    return QuickCommand(tmp_path)


def card(vibe, *more):
    (vibe.folder / "theirs/tasks/mine.yaml").write_text(CARD + "".join(more), encoding="utf-8")
    return ("--include-path", "theirs", "--tasks", "mine")


def test_a_metrics_code_runs_only_at_the_persons_word_and_no_run_folder_brings_it_in(vibe):
    (vibe.folder / "metric.py").write_text(METRIC, encoding="utf-8")
    ran = vibe.folder / "RAN"
    theirs = card(vibe, 'metrics: ["evaluate:./metric.py"]\n')
    assert "--trust-remote-code" in vibe.refuses(*RUN, *theirs)
    assert "--trust-remote-code" in vibe("tasks", "check", "theirs").stdout + vibe("tasks", "check", "theirs").stderr
    assert not ran.exists()
    done = vibe(*RUN, *theirs, "--output-path", "out", "--trust-remote-code")
    assert done.returncode in (0, 1) and ran.exists(), done.stderr
    ran.unlink()
    assert "--trust-remote-code" in vibe.refuses("score", "out")
    vibe("report", "out", check=0)
    assert "--trust-remote-code" in vibe("run-check", "out", check=1).stdout  # what was not made anew is not proved
    assert not ran.exists()
    vibe("run-check", "out", "--trust-remote-code", check=0)
    assert vibe("score", "out", "--tau", "2", "--trust-remote-code").returncode in (0, 1)


@pytest.mark.parametrize("args", ["args: {trust_remote_code: true}", "args: {engine: {trust_remote_code: true}}"])
def test_a_models_code_runs_only_at_the_persons_word(vibe, args):
    backend = "vllm" if "engine" in args else "hf"
    text = f"model: theirs\nbackend: {backend}\nid: a/b\n{args}\nextractor: rules\n"
    (vibe.folder / "theirs/models/theirs.yaml").write_text(text, encoding="utf-8")
    (vibe.folder / "theirs/models/reader.yaml").write_text(
        text.replace("theirs", "reader").replace("extractor: rules", "audio: false"), encoding="utf-8"
    )
    options = ("--include-path", "theirs", "--tasks", "advisory", "--corpus", "m.csv", "--dry-run")
    said = vibe.refuses("--model", "theirs", *options)
    assert "'theirs'" in said and "--trust-remote-code" in said
    assert "'reader'" in vibe.refuses("--model", "simulated", "--extractor", "reader", *options)
    vibe("--model", "theirs", *options, "--trust-remote-code", check=0)


@pytest.mark.parametrize("port", [0, 9])
def test_the_command_of_a_card_runs_only_at_the_persons_word(vibe, port):
    text = (
        f"model: theirs\nbackend: openai\nid: a\nconnection: {{base_url: 'http://127.0.0.1:{port}/v1'}}\n"
        "serve: {command: 'touch RAN {port}'}\nextractor: rules\n"
    )
    (vibe.folder / "theirs/models/theirs.yaml").write_text(text, encoding="utf-8")
    options = ("--model", "theirs", "--include-path", "theirs", "--tasks", "advisory", "--corpus", "m.csv")
    for words in (("models", "show", "theirs", "--include-path", "theirs"), (*options, "--dry-run")):
        vibe(*words, check=0)
    assert "--allow-serve" in vibe(*options, check=3).stderr
    vibe(*options, "--allow-serve", "--dry-run", check=0)
    assert not (vibe.folder / "RAN").exists()
    assert "ended with code 0" in vibe(*options, "--allow-serve", check=3).stderr
    assert (vibe.folder / "RAN").exists()
    study = "study: s\nmodels: [theirs]\ntasks: [advisory]\ncorpora: [m.csv]\ninclude_path: [theirs]\n"
    (vibe.folder / "s.yaml").write_text(study + "allow_serve: true\n", encoding="utf-8")
    assert "allow_serve" in vibe.refuses("study", "s.yaml")


def test_a_study_cannot_give_the_word(vibe):
    card(vibe, 'metrics: ["evaluate:./metric.py"]\n')
    (vibe.folder / "metric.py").write_text(METRIC, encoding="utf-8")
    study = "study: s\nmodels: [simulated]\ntasks: [mine]\ncorpora: [m.csv]\ninclude_path: [theirs]\ntau: 2\n"
    (vibe.folder / "s.yaml").write_text(study + "permutations: 19\n", encoding="utf-8")
    assert "--trust-remote-code" in vibe("study", "s.yaml", check=1).stdout
    assert not (vibe.folder / "RAN").exists()
    (vibe.folder / "s.yaml").write_text(study + "trust_remote_code: true\n", encoding="utf-8")
    assert "trust_remote_code" in vibe.refuses("study", "s.yaml")


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.system('touch RAN') }}",
        "{{ ''.format.__globals__ }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{% include '../../m.csv' %}",
        "{% include '/etc/passwd' %}",
        "{% import '../tasks/mine.yaml' as x %}",
        "{% for i in range(10**9) %}a{% endfor %}",
        "{{ joiner() }}",
        "{{ [joiner()] | join }}",
        "{{ 'a' * 10**9 }}",
        "{{ 2 ** (10 ** 7) }}",
        "{{" + "(" * 5_000 + "1" + ")" * 5_000 + "}}",
        "{% if 1 %}" * 500 + "x" + "{% endif %}" * 500,
        "{% for i in [1] %}" * 40 + "x" + "{% endfor %}" * 40,
        "{% set n = namespace(s='a') %}{% for i in range(30) %}{% set n.s = n.s ~ n.s %}{% endfor %}{{ n.s }}",
    ],
)
def test_templates_run_no_code_read_nothing_else_and_stay_small(vibe, template):
    theirs = card(vibe)
    (vibe.folder / "theirs/templates/mine.j2").write_text(template, encoding="utf-8")
    said = vibe.refuses(*RUN, *theirs)
    assert "mine." in said and "root:x" not in said and "speaker" not in said
    assert not (vibe.folder / "RAN").exists()


@pytest.mark.parametrize(
    "line",
    [
        "include: ../../m.csv\n",
        "include: /etc/passwd\n",
        "notes: !!python/object/apply:os.system ['touch RAN']\n",
        "notes: !!python/name:os.system\n",
    ],
)
def test_cards_run_no_code_and_include_nothing_from_elsewhere(vibe, line):
    assert "mine.yaml" in vibe.refuses(*RUN, *card(vibe, line))
    assert not (vibe.folder / "RAN").exists()


def test_links_out_of_the_folders_are_not_followed(vibe):
    (vibe.folder / "secret.j2").write_text("secret words", encoding="utf-8")
    theirs = card(vibe)
    (vibe.folder / "theirs/templates/mine.j2").unlink()
    (vibe.folder / "theirs/templates/mine.j2").symlink_to(vibe.folder / "secret.j2")
    said = vibe.refuses(*RUN, *theirs)
    assert "is outside" in said and "secret words" not in said


@pytest.mark.parametrize("way", ["../secret.wav", "{}/secret.wav", "link.wav"])
def test_no_option_of_a_choice_task_is_read_from_elsewhere(vibe, way):
    tone(vibe.folder / "secret.wav", 150)
    quiz(vibe.folder / "quiz", lambda rows: rows[0].update(option_a_file=way.format(vibe.folder)), questions=1)
    (vibe.folder / "quiz/link.wav").symlink_to(vibe.folder / "secret.wav")
    said = vibe.refuses("--model", "simulated", "--tasks", "biasinear", "--corpus", "quiz/manifest.csv", "--dry-run")
    assert "column 'option_a_file'" in said and ("corpus folder" in said or "absolute path" in said)


@pytest.mark.parametrize("kind", ["tasks", "models", "corpora"])
def test_includes_that_multiply_take_no_longer_than_the_files_that_there_are(vibe, kind):
    folder = vibe.folder / "theirs" / kind
    folder.mkdir(exist_ok=True)
    for depth in range(24):
        below = f"include: [i{depth + 1}.yaml, i{depth + 1}.yaml]\n" if depth < 23 else "notes: the last\n"
        (folder / f"i{depth}.yaml").write_text(below, encoding="utf-8")
    begun = time.monotonic()
    if kind == "corpora":
        vibe.refuses("corpus", "prepare", str(folder / "i0.yaml"), "--source", ".")
    else:
        vibe(kind, "list", "--include-path", "theirs")
        assert "i0.yaml" in vibe.refuses(
            "--model", "simulated", "--tasks", str(folder / "i0.yaml"), "--corpus", "m.csv"
        )
    assert time.monotonic() - begun < 10  # 2 ** 24 files otherwise


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "name", ["run.json", "responses.jsonl", "results.json", "clips.parquet", "SHA256SUMS", ".lock"]
)
def test_a_pipe_in_a_run_folder_is_not_waited_for(vibe, name):
    assert vibe(*RUN, *card(vibe), "--output-path", "out").returncode in (0, 1)
    (vibe.folder / "out" / name).unlink(missing_ok=True)
    os.mkfifo(vibe.folder / "out" / name)
    for command in (["score", "out"], ["report", "out"], ["compare", "out", "out"], [*RUN, "--tasks", "mine",
                    "--include-path", "theirs", "--output-path", "out"]):  # fmt: skip
        said = vibe.refuses(*command)
        assert f"out/{name}: a pipe, a device or a folder" in said, (command, said)
    done = vibe("run-check", "out")
    assert done.returncode and "a pipe" in done.stdout + done.stderr
    assert "a pipe" in vibe.refuses("leaderboard", "out", "--include-simulated", "--output", "board")


def test_no_cell_of_a_leaderboard_is_a_formula_and_no_name_moves_the_terminal(vibe):
    formula, escape = '=HYPERLINK("http://evil","x")', "\x1b]0;owned\x07\x1b[31m"
    assert vibe(*RUN, *card(vibe), "--output-path", "out").returncode in (0, 1)
    for name in ("run.json", "results.json"):
        path = vibe.folder / "out" / name
        data = json.loads(path.read_text(encoding="utf-8"))
        (data["record"] if name == "run.json" else data).update(corpus=formula + escape)
        path.write_text(json.dumps(data), encoding="utf-8")
    write_sums(RunFolder(vibe.folder / "out"))
    done = vibe("leaderboard", "out", "--include-simulated", "--output", "board", check=0)
    table = (vibe.folder / "board/leaderboard.csv").read_text(encoding="utf-8")
    rows = list(csv.reader(io.StringIO(table)))
    cells = {cell for row in rows for cell in row}
    assert any(cell.startswith("'=HYPERLINK") for cell in cells) and "\x1b" not in table
    assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for cell in cells)
    assert all(float(cell) < 0 for cell in cells if cell.startswith("-"))
    shown = vibe("report", "out", check=0), vibe("run-check", "out"), vibe("compare", "out", "out")
    assert all("\x1b" not in one.stdout + one.stderr for one in (done, *shown))


@pytest.mark.parametrize("mark", ["=", "+", "-", "@", "\t", "\r", " =", "\uff1d", "\x1b="])
def test_cells_of_words_are_words(mark):
    cell = escape_formula(f"{mark}1+1")
    assert cell.startswith(("'", "\\x1b")), cell
    assert inert_row([f"{mark}x", -1.5, None, True])[1:] == [-1.5, None, True]
    assert escape_formula("caf\u00e9 \u0627 \U0001f469\u200d\U0001f52c\n= no formula") == (
        "caf\u00e9 \u0627 \U0001f469\u200d\U0001f52c\n= no formula"
    )


def test_no_network_is_touched_by_a_run_a_score_and_a_page(vibe, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert vibe(*RUN, *card(vibe), "--output-path", "out").returncode in (0, 1)
    assert vibe("score", "out", "--tau", "2").returncode in (0, 1)
    vibe("report", "out", check=0)


def everything_written(folder: Path) -> str:
    return "\n".join(
        path.read_bytes().decode("utf-8", "replace") for path in sorted(folder.rglob("*")) if path.is_file()
    )


@pytest.mark.parametrize("given", [KEY, f"  {KEY}\n", KEY[:-1]])
def test_a_key_is_in_nothing_that_is_written_or_said(vibe, monkeypatch, given):
    monkeypatch.setenv("THEIR_KEY", given)
    with Loopback(key=KEY, rates={"bad_request": 0.3, "broken": 0.3}) as server:
        text = (
            "model: served\nbackend: openai\nid: loopback\nextractor: rules\n"
            f"connection: {{base_url: '{server.url}', api_key_env: THEIR_KEY}}\n"
        )
        (vibe.folder / "theirs/models/served.yaml").write_text(text, encoding="utf-8")
        options = (
            "--tau",
            "1",
            "--permutations",
            "19",
            "--corpus",
            "m.csv",
            "--include-path",
            "theirs",
            "--no-hearing-check",
        )
        done = vibe("--model", "served", "--tasks", "story,advisory", *options, "--output-path", "out")
        assert done.returncode in ((0, 1) if given.strip() == KEY else (3,)), done.stderr
        if (vibe.folder / "out/results.json").exists():
            vibe("report", "out", check=0)
    assert given.strip() not in done.stdout + done.stderr + everything_written(vibe.folder)


class Scripts(html.parser.HTMLParser):
    """Scripts, handlers and addresses of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith(("javascript:", "http://evil")):
                self.found.append(f"{tag} {name}={value}")
        if tag in ("iframe", "object", "embed", "base") or ("evil", None) in attrs:
            self.found.append(tag)


HOSTILE = "</script><script evil>alert(1)</script><img src=x onerror=alert(1)><a href=javascript:alert(1)>x</a>\u2028"


def test_pages_run_nothing_that_an_answer_a_value_or_a_name_holds(vibe):
    assert vibe(*RUN, *card(vibe), "--output-path", "out").returncode in (0, 1)
    for name in ("responses.jsonl", "extractions.jsonl"):
        path = vibe.folder / "out" / name
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for record in records:
            record["text"] = HOSTILE
            if "raw" in record:
                record.update(raw={"activity": [HOSTILE]}, readings={"activity": "value"}, refused=False)
            else:
                record.update(error=HOSTILE, served_model=HOSTILE)
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    asked = vibe.folder / "out/run.json"
    data = json.loads(asked.read_text(encoding="utf-8"))
    data["record"]["tasks"][0]["card"]["description"] = HOSTILE
    data["record"]["corpus_licence"] = data["record"]["corpus"] = HOSTILE
    asked.write_text(json.dumps(data), encoding="utf-8")
    results = vibe.folder / "out/results.json"
    data = json.loads(results.read_text(encoding="utf-8"))
    data["corpus"] = HOSTILE
    data["tasks"][0]["warnings"] = [HOSTILE]
    results.write_text(json.dumps(data), encoding="utf-8")
    write_sums(RunFolder(vibe.folder / "out"))
    vibe("report", "out", check=0)
    vibe("leaderboard", "out", "--include-simulated", "--output", "board")
    pages = [*(vibe.folder / "out").glob("*.html"), *(vibe.folder / "board").rglob("*.html")]
    assert pages
    for page in pages:
        scripts = Scripts()
        scripts.feed(page.read_text(encoding="utf-8"))
        assert scripts.found == [], page


def test_the_cards_that_come_along_ask_for_trust_only_where_they_say_so():
    index = CardIndex()
    asking = {name for name in index.model_names() if "trust_remote_code" in json.dumps(index.model(name).args)}
    for name in asking:
        from vibe_harness.planning.config import RunConfig
        from vibe_harness.planning.prepare import prepare
        from vibe_harness.progress import Progress

        with pytest.raises(UserError, match="--trust-remote-code"):
            prepare(RunConfig(model=name, tasks=["advisory"], corpus="demo"), Progress())
    assert all(not task.card.metrics or "evaluate:" not in str(task.card.metrics) for task in index.tasks(["*"]))
