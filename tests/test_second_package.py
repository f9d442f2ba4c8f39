"""Another package adds one of each kind and runs; where names collide, one line says which two things claim them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

ENTRY_POINTS = """\
[vibe_harness.backends]
choir = choir.things:Engine

[vibe_harness.metrics]
values_read = choir.things:VALUES_READ
pairs = choir.things:PAIRS

[vibe_harness.extractors]
choir-lines = choir.things:Lines

[vibe_harness.corpora]
choir = choir.things:IMPORTER

[vibe_harness.kinds]
closings = choir.things:CLOSINGS

[vibe_harness.cards]
choir = choir
"""

THINGS = """\
from pathlib import Path

import numpy as np

from functools import partial

from vibe_harness.backends.protocol import Options
from vibe_harness.kinds.base import PromptInstance, TaskKind
from vibe_harness.store.run_tables import read_frame
from vibe_harness.corpora.importers.base import Importer, Listing
from vibe_harness.metrics.metric import Metric
from vibe_harness.records import Clip, Extraction, Outcome, Reading, Response, Score


class Engine:
    Arguments = Connection = Options

    def __init__(self, card, tasks):
        pass

    def describe(self):
        return {"engine": "choir", "version": "1"}

    def generate(self, requests):
        for request in requests:
            wave = request.audio()
            crossings = int(np.count_nonzero(np.diff(np.signbit(wave.samples))))
            mood = "bright" if crossings / len(wave.samples) * wave.rate / 2 > 150 else "calm"
            yield Response(request.id, Outcome.OK, f"{crossings} turns.\\nMood={mood}")

    def close(self):
        pass


class Lines:
    def __init__(self, tasks):
        pass

    @staticmethod
    def identity():
        return {"extractor": "choir-lines"}

    def describe(self):
        return {"engine": "choir-lines"}

    def extract(self, responses):
        for task, response in responses:
            yield Extraction(response.request, {"mood": Reading.VALUE}, {"mood": (response.text.split("=")[1],)})

    def close(self):
        pass


def values_read(frame, settings):
    return [Score(metric="values_read", value=float((frame["reading"] == "value").sum()))]


VALUES_READ = Metric(values_read, "number of readings that gave a value", kinds=("open_ended", "closings"))
PAIRS = Metric(lambda frame, settings: [], "needs answers in pairs", kinds=("choice",))


def read(source, folder, name):
    files = sorted(path.name for path in source.glob("*.wav"))
    clips = [Clip(f"{name}/{f[0]}/{f[:-4]}", f, f[:2], {"register": "low" if f[0] == "l" else "high"}) for f in files]
    return Listing(source, clips)


IMPORTER = Importer("the choir", "CC0-1.0", "WAV files", read)


class Closings(TaskKind):
    variables = frozenset({"closing"})

    def check_card(self, card):
        if not (card.settings or {}).get("closings"):
            raise ValueError("settings.closings: name at least one")

    def context(self, card):
        return {"closing": card.settings["closings"][0]}

    def prompts(self, task, styles, checked, rate, *, sound=True):
        for style in styles:
            for number, closing in enumerate(task.card.settings["closings"]):
                prompt = partial(task.prompt, style, checked.clip.text, {"closing": closing})
                yield PromptInstance(f"{style}.{number}", prompt, checked)

    def count(self, task, clip):
        return len(task.card.settings["closings"])

    def meaning(self, card, variant, values):
        return tuple(f"{value} {variant.partition('.')[2]}" for value in values)

    def frame(self, path, card, style, dimension):
        import pandas as pd

        numbers = range(len(card.settings["closings"]))
        return pd.concat([read_frame(path, card.task, f"{style}.{n}", dimension) for n in numbers], ignore_index=True)


CLOSINGS = Closings()
"""

TASK = """\
task: mood
version: 1
description: The mood of a singer
prompts: {default: mood/default.j2}
extraction:
  template: mood/extract.j2
  attributes:
    mood: {values: [calm, bright]}
dimensions: {register: [choir-tones]}
metrics: [ntvd, values_read]
"""

KIND = "task: closing_mood\nkind: closings\nsettings: {closings: [now, later]}"
KIND_TASK = TASK.replace("task: mood", KIND).replace("mood/default.j2", "mood/closing.j2").replace("ntvd, ", "")

FILES = {
    "choir/tasks/closing_mood.yaml": KIND_TASK,
    "choir/templates/mood/closing.j2": "What is the mood, {{ closing }}?",
    "choir/__init__.py": "",
    "choir/things.py": THINGS,
    "choir/tasks/mood.yaml": TASK,
    "choir/models/choir.yaml": "model: choir\nbackend: choir\nid: choir\nextractor: choir-lines\n",
    "choir/templates/mood/default.j2": "What is the mood?",
    "choir/templates/mood/extract.j2": "{{ response }}",
    "choir/corpora/choir-archive.yaml": "corpus: choir-archive\nversion: 1\ndescription: tones\nimporter: choir\n",
}


def dist_info(name: str, entry_points: str) -> dict[str, str]:
    """The metadata files of an installed package, by path."""
    return {
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{name}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}-1.0.dist-info/entry_points.txt": entry_points,
    }


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def tones(folder: Path) -> None:
    """Twelve clips: three singers in each of two registers, two clips each, and their manifest."""
    folder.mkdir(parents=True)
    rows = ["file,speaker,register"]
    time = np.arange(8_000) / 16_000
    for register, pitch in (("low", 100), ("high", 220)):
        for singer in range(3):
            for take in range(2):
                name = f"{register[0]}{singer}{take}.wav"
                soundfile.write(folder / name, 0.2 * np.sin(2 * np.pi * (pitch + 7 * singer + take) * time), 16_000)
                rows.append(f"{name},{register[0]}{singer},{register}")
    (folder / "manifest.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pip installed the package into, from a wheel made here."""
    made = tmp_path_factory.mktemp("made")
    write(made, {**FILES, **dist_info("choir", ENTRY_POINTS)})
    tones(made / "choir" / "corpora" / "choir-tones")
    files = [path.relative_to(made).as_posix() for path in sorted(made.rglob("*")) if path.is_file()]
    record = "choir-1.0.dist-info/RECORD"
    (made / record).write_text("".join(f"{name},,\n" for name in [*files, record]), encoding="utf-8")
    wheel = made.parent / "choir-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in [*files, record]:
            archive.write(made / name, name)
    target = tmp_path_factory.mktemp("installed")
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile")
    subprocess.run([*pip, "--target", target, wheel], check=True, capture_output=True)
    return target


def vibe(cwd: Path, *arguments: str, path: tuple[Path, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vibe_harness", *arguments],
        cwd=cwd, capture_output=True, text=True, encoding="utf-8", check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "VIBE_HARNESS_DATA": str(cwd / "data")},
    )  # fmt: skip


def test_one_of_each_kind_runs_together(installed: Path, tmp_path: Path) -> None:
    done = vibe(tmp_path, "--model", "choir", "--tasks", "mood", "--tau", "1", "--json", path=(installed,))
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert (results["model"], results["corpus"], results["extractor"]) == ("choir", "choir-tones", "choir-lines")
    scores = {score["metric"]: score for score in results["tasks"][0]["scores"] if score["attribute"] is None}
    assert scores["values_read"]["value"] == 12
    assert scores["ntvd"]["value"] == 100  # low voices are calm, high ones bright
    assert scores["ntvd"]["p_value"] == pytest.approx(2 / 20)  # 20 ways to part six singers, two as far apart as these


def test_a_kind_of_task_of_its_own_is_asked_read_and_scored(installed: Path, tmp_path: Path) -> None:
    done = vibe(tmp_path, "--model", "choir", "--tasks", "closing_mood", "--tau", "1", "--json", path=(installed,))
    assert done.returncode == 0, done.stderr
    [task] = json.loads(done.stdout)["tasks"]
    assert [score["value"] for score in task["scores"]] == [24]  # twelve clips, two closings
    assert {group["requests"] for group in task["groups"].values()} == {12}


def test_a_card_of_that_kind_is_checked_by_it(installed: Path, tmp_path: Path) -> None:
    cases = (("{closings: []}", "settings.closings: name at least one"), ("{other: 1}", "settings.closings"))
    for number, (settings, said) in enumerate(cases):
        card = KIND_TASK.replace("{closings: [now, later]}", settings).replace("closing_mood", f"k{number}")
        write(tmp_path / "own", {f"tasks/k{number}.yaml": card})
        done = vibe(tmp_path, "--model", "choir", "--tasks", f"own/tasks/k{number}.yaml", path=(installed,))
        assert done.returncode == 2 and said in done.stderr, done.stderr
    write(
        tmp_path / "own",
        {"tasks/u.yaml": KIND_TASK.replace("kind: closings", "kind: closing").replace("closing_mood", "u")},
    )
    done = vibe(tmp_path, "--model", "choir", "--tasks", "own/tasks/u.yaml", path=(installed,))
    assert done.returncode == 2 and "unknown kind of task 'closing'. Did you mean 'closings'" in done.stderr


def test_its_importer_and_corpus_card_prepare_a_corpus(installed: Path, tmp_path: Path) -> None:
    source = str(installed / "choir" / "corpora" / "choir-tones")
    done = vibe(tmp_path, "corpus", "prepare", "choir-archive", "--source", source, path=(installed,))
    assert done.returncode == 0, done.stderr
    assert "choir-archive: 12 clips, 6 speakers" in done.stdout
    assert (tmp_path / "data" / "corpora" / "choir-archive" / "manifest.parquet").is_file()


def test_a_metric_that_the_kind_of_task_cannot_feed(installed: Path, tmp_path: Path) -> None:
    write(tmp_path / "own", {"tasks/odd.yaml": TASK.replace("task: mood", "task: odd").replace("values_read", "pairs")})
    write(tmp_path / "own", {"templates/mood/default.j2": "What?", "templates/mood/extract.j2": "{{ response }}"})
    done = vibe(tmp_path, "--model", "choir", "--tasks", "odd", "--include-path", "own", path=(installed,))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "odd.yaml" in done.stderr and "'pairs' is for tasks of kind choice" in done.stderr


CLASHES = {
    "vibe_harness.backends": ("simulated", "choir"),
    "vibe_harness.metrics": ("ntvd", "values_read"),
    "vibe_harness.extractors": ("rules", "choir-lines"),
}


@pytest.mark.parametrize("group", CLASHES)
def test_names_that_two_packages_claim(installed: Path, tmp_path: Path, group: str) -> None:
    built_in, taken = CLASHES[group]
    for name, said in ((built_in, "which is built in"), (taken, "packages 'choir' and 'rival' both claim")):
        write(tmp_path / name, dist_info("rival", f"[{group}]\n{name} = rival:thing\n"))
        done = vibe(tmp_path, "--model", "choir", "--tasks", "mood", path=(installed, tmp_path / name))
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
        assert said in done.stderr.replace("packages 'rival' and 'choir'", "packages 'choir' and 'rival'")
        assert f"'{name}'" in done.stderr and "'rival'" in done.stderr


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("tasks/story.yaml", "story"),
        ("tasks/mood.yaml", "mood"),
        ("models/simulated.yaml", "simulated"),
        ("corpora/demo/manifest.csv", "demo"),
        ("corpora/choir-tones/manifest.csv", "choir-tones"),
    ],
)
def test_cards_and_corpora_that_two_packages_bring(installed: Path, tmp_path: Path, file: str, name: str) -> None:
    write(tmp_path / "rival", dist_info("rival", "[vibe_harness.cards]\nrival = rival\n"))
    write(tmp_path / "rival", {"rival/__init__.py": "", f"rival/{file}": "file,speaker\n"})
    done = vibe(tmp_path, "--model", "choir", "--tasks", "mood", path=(installed, tmp_path / "rival"))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert f"named '{name}'" in done.stderr and file in done.stderr.replace(os.sep, "/")
