"""A study runs what is missing, loads each model once, is split and merged, and goes on past what fails."""

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from tests.command_line import QuickCommand, tone
from tests.support import ROOT
from vibe_harness.backends.protocol import BACKENDS
from vibe_harness.pipeline import run as stages
from vibe_harness.studies.study import cells_of, read_study, shard_of

STUDY = """\
study: voices
models:
  - {model: simulated, name: plain, model_args: {strength: 0}}
  - {model: simulated, name: strong, model_args: {strength: 0.9}}
tasks: [advisory, shopper]
corpora: [few.csv, more.csv]
dimensions: [gender]
tau: 2
permutations: 19
"""


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    for name, takes in (("few", 1), ("more", 3)):
        rows = ["file,speaker,gender"]
        for speaker in range(6):
            for take in range(takes):
                tone(folder / name / f"{speaker}-{take}.wav", (110, 200)[speaker % 2] + 3 * speaker + take)
                rows.append(f"{name}/{speaker}-{take}.wav,s{speaker},{('male', 'female')[speaker % 2]}")
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "voices.yaml").write_text(STUDY, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def finished(corpora):
    """The study run whole, in `whole`."""
    done = QuickCommand(corpora)("study", "voices.yaml", "--output-path", "whole")
    assert "8 done, 0 running, 0 failed, 0 left" in done.stdout
    return corpora


@pytest.fixture
def vibe(corpora):
    return QuickCommand(corpora)


def scores(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("*/*/*/results.json"))}


def states(vibe, *arguments):
    found = json.loads(vibe("study", *arguments, "--json").stdout)
    return {cell["cell"]: cell["state"] for cell in found["cells"]}


def test_each_cell_is_the_run_that_the_command_makes(finished, vibe):
    vibe("--model", "simulated", "--model-args", "strength=0.9", "--tasks", "shopper", "--corpus", "more.csv",
         "--dimension", "gender", "--tau", "2", "--permutations", "19", "--output-path", "alone")  # fmt: skip
    assert (vibe.folder / "alone/results.json").read_bytes() == scores(vibe.folder / "whole")[
        "strong/more/shopper/results.json"
    ]
    vibe("run-check", "whole/strong/more/shopper", check=0)


def test_it_ends_in_the_leaderboard(finished, vibe):
    assert not (vibe.folder / "whole/leaderboard").exists()  # simulated models are shown only where asked for
    told = vibe("study", "voices.yaml", "--output-path", "whole").stdout
    assert "No leaderboard" in told and "--include-simulated" in told  # nothing is left out without a word
    vibe("study", "voices.yaml", "--output-path", "whole", "--include-simulated")
    page = (vibe.folder / "whole/leaderboard/index.html").read_text(encoding="utf-8")
    assert "simulated" in page and "advisory" in page and "shopper" in page


def test_it_exits_with_1_where_a_score_is_not_reliable_and_its_names_reach_the_leaderboard(finished, vibe):
    done = vibe("study", "voices.yaml", "--output-path", "whole", "--include-simulated", check=1)
    assert "done     strong/more/advisory: not reliable" in done.stdout  # six speakers, few answers
    page = (vibe.folder / "whole/leaderboard/index.html").read_text(encoding="utf-8")
    assert re.search(r"<th[^>]*>\s*(<a[^>]*>)?\s*strong", page)


def test_the_study_that_the_documentation_gives_has_every_cell(tmp_path):
    page = (ROOT / "docs" / "reproducing.md").read_text(encoding="utf-8")
    (tmp_path / "vibe.yaml").write_text(page.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    cells = cells_of(read_study(tmp_path / "vibe.yaml"), tmp_path)
    assert len({cell.name for cell in cells}) == 12 * 3 * 5
    assert "qwen2.5-omni-3b/l2-arctic/story" in {cell.name for cell in cells}


def test_every_model_is_loaded_once_and_what_is_done_is_left_alone(corpora, vibe, monkeypatch):
    opened = []
    real = BACKENDS.get("simulated")

    class Counted(real):
        def __init__(self, card, tasks):
            opened.append((card.args["strength"], sorted(task.name for task in tasks)))
            super().__init__(card, tasks)

    monkeypatch.setitem(BACKENDS._loaded, "simulated", Counted)
    vibe("study", "voices.yaml", "--output-path", "counted")
    assert opened == [(0, ["advisory", "shopper"]), (0.9, ["advisory", "shopper"])]
    before = {path: path.read_bytes() for path in (corpora / "counted").rglob("*.jsonl")}
    (corpora / "counted/plain/few/advisory/responses.jsonl").write_text("", encoding="utf-8")
    assert states(vibe, "voices.yaml", "--output-path", "counted", "--status")["plain/few/advisory"] == "left"
    vibe("study", "voices.yaml", "--output-path", "counted")
    assert len(opened) == 3
    changed = [path for path, stored in before.items() if path.read_bytes() != stored]
    assert {path.parent.relative_to(corpora / "counted").as_posix() for path in changed} == {"plain/few/advisory"}


def test_the_command_loads_a_model_once_for_several_corpora(tmp_path, monkeypatch):
    opened, closed = [], []

    class Engine:
        def close(self):
            closed.append(self)

    kept = stages.EngineCache()
    with closing(kept):
        for key in ("a", "a", "b", "b"):
            with kept.opened(key, lambda: opened.append(Engine()) or opened[-1]) as engine:
                assert engine is opened[-1] and engine not in closed
        with pytest.raises(ZeroDivisionError), kept.opened("b", Engine):
            raise ZeroDivisionError
        assert closed == opened and len(opened) == 2
        with kept.opened("b", lambda: opened.append(Engine()) or opened[-1]):
            pass
    assert closed == opened and len(opened) == 3


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 30])
def test_shards_share_out_every_cell_once_and_hold_neighbours(corpora, count):
    cells = cells_of(read_study(corpora / "voices.yaml"), Path("out"))
    shards = [shard_of(cells, number, count) for number in range(1, count + 1)]
    assert [cell for shard in shards for cell in shard] == cells
    if count == 2:
        assert [{cell.model.label for cell in shard} for shard in shards] == [{"plain"}, {"strong"}]


def test_shards_run_apart_and_merged_are_the_whole(finished, vibe):
    for number in (1, 2, 3):
        vibe("study", "voices.yaml", "--shard", f"{number}/3", "--output-path", f"shard{number}")
    assert set(states(vibe, "voices.yaml", "--output-path", "shard1", "--status").values()) == {"done", "left"}
    done = vibe("study", "voices.yaml", "--output-path", "shard1", "--merge", "shard2", "--merge", "shard3")
    assert "8 done" in done.stdout
    assert scores(vibe.folder / "shard1") == scores(vibe.folder / "whole")
    again = vibe("study", "voices.yaml", "--output-path", "shard1", "--merge", "shard2")
    assert "0 run folders copied" in again.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--executor", "rai"), "unknown executor 'rai'. Did you mean 'ray'"),
        (("--executor", "ray", "--executor-args", "worker=2"), "no such argument. Did you mean 'workers'"),
        (("--executor-args", "workers=2"), "the executor 'local' takes none"),
    ],
)
def test_an_executor_that_is_none_is_told_before_anything_runs(corpora, vibe, words, said):
    assert said in vibe.refuses("study", "voices.yaml", "--output-path", "none", *words)
    assert not (vibe.folder / "none").exists()


def test_what_fails_is_told_and_the_others_go_on(corpora, vibe):
    broken = corpora / "few" / "0-0.wav"
    whole = broken.read_bytes()
    broken.write_bytes(b"no sound")
    done = vibe("study", "voices.yaml", "--output-path", "failing", check=1)
    assert "4 done, 0 running, 4 failed, 0 left" in done.stdout and "0-0.wav" in done.stdout
    broken.write_bytes(whole)
    done = vibe("study", "voices.yaml", "--output-path", "failing")
    assert "8 done" in done.stdout


@pytest.mark.parametrize("place", ["plain", "plain/few", "plain/few/advisory"])
def test_a_file_in_place_of_a_folder_fails_its_cells_alone(corpora, vibe, tmp_path, place):
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text("mine", encoding="utf-8")
    found = json.loads(vibe("study", "voices.yaml", "--output-path", tmp_path, "--json", check=1).stdout)["cells"]
    stopped = {cell["cell"]: cell["why"] for cell in found if cell["state"] == "failed"}
    assert stopped and all(f"{cell}/".startswith(f"{place}/") and why for cell, why in stopped.items())
    assert {cell["state"] for cell in found if cell["cell"] not in stopped} == {"done"}
    assert (tmp_path / place).read_text(encoding="utf-8") == "mine"
    (tmp_path / place).unlink()
    assert set(states(vibe, "voices.yaml", "--output-path", tmp_path).values()) == {"done"}


def test_a_cell_that_another_process_runs_is_shown_so_and_left_alone(finished, vibe):
    from vibe_harness.store.run_folder import RunFolder

    folder = vibe.folder / "whole/plain/more/advisory"
    results = (folder / "results.json").read_bytes()
    (folder / "results.json").unlink()
    with RunFolder(folder).locked():
        assert states(vibe, "voices.yaml", "--output-path", "whole")["plain/more/advisory"] == "running"
        assert "being run" in vibe.refuses("study", "voices.yaml", "--output-path", "other", "--merge", "whole")
    vibe("study", "voices.yaml", "--output-path", "whole")
    assert (folder / "results.json").read_bytes() == results


def test_another_study_is_not_merged(finished, vibe):
    text = STUDY.replace("tau: 2", "tau: 3")
    (vibe.folder / "others").mkdir(exist_ok=True)
    (vibe.folder / "others" / "voices.yaml").write_text(
        text.replace("few.csv", "../few.csv").replace("more.csv", "../more.csv"), encoding="utf-8"
    )
    said = vibe.refuses("study", "others/voices.yaml", "--output-path", "apart", "--merge", "whole")
    assert "whole: a folder of another study: it differs in tau" in said
    assert "differs in tau" in vibe.refuses("study", "others/voices.yaml", "--output-path", "whole")
    assert "study.json" in vibe.refuses("study", "voices.yaml", "--output-path", "apart", "--merge", "others")


def test_a_study_does_not_move_into_the_folder_of_a_run(finished, vibe):
    folder = vibe.folder / "whole/plain/more/advisory"
    said = vibe.refuses("study", "voices.yaml", "--output-path", folder)
    assert "the folder of a run: name another for the study with --output-path" in said
    assert not (folder / "study.json").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("study: voices", "study: voices\nmodles: []"), "unknown field 'modles'"),
        (("tau: 2", "tau: 0"), "voices.yaml:8: tau"),
        (("model: simulated, name: plain", "model: simulatd"), "unknown model 'simulatd'"),
        (("strength: 0.9", "strength: 9"), "args.strength"),
        (("[advisory, shopper]", "[advisry]"), "unknown task 'advisry'"),
        (("name: strong", "name: plain"), "two of its models have one name"),
        (("study: voices", "study: others"), "is named 'voices'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(corpora, vibe, tmp_path, change, said):
    (tmp_path / "voices.yaml").write_text(STUDY.replace(*change), encoding="utf-8")
    assert said in vibe.refuses("study", tmp_path / "voices.yaml", "--output-path", "none")
    assert not (vibe.folder / "none").exists()


@pytest.mark.parametrize("path", ["/".join(["d" * 200] * 25), "few.csv/below"])
def test_a_folder_that_cannot_be_one_is_a_line(corpora, vibe, path):
    assert len(vibe.refuses("study", "voices.yaml", "--output-path", path).splitlines()) == 1


@pytest.mark.parametrize("shard", ["0/3", "4/3", "a", "1/0", "1"])
def test_a_shard_that_is_none(corpora, vibe, shard):
    assert "3/8" in vibe.refuses("study", "voices.yaml", "--shard", shard)
