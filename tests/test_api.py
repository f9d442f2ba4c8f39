"""vibe_harness.evaluate: what the command line does, from Python."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import vibe_harness
from tests.command_line import QuickCommand
from vibe_harness.cli.main import VERBS
from vibe_harness.errors import UserError
from vibe_harness.store.results import Results, to_json


def test_the_results_are_typed_and_those_of_the_command_line(tmp_path: Path) -> None:
    [results] = vibe_harness.evaluate(
        "simulated", ["advisory"], "demo", dimensions=["gender"], limit=16, tau=2, permutations=49, seed=3,
        output_path=tmp_path / "python",
    )  # fmt: skip
    assert isinstance(results, Results) and results.tasks[0].scores[0].metric == "ntvd"
    options = ("--dimension=gender", "--limit=16", "--tau=2", "--permutations=49", "--seed=3", "--corpus=demo")
    command = QuickCommand(tmp_path)
    assert command.json("--model", "simulated", "--tasks", "advisory", *options) == to_json(results)


def test_a_mistake_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Did you mean 'advisory'"):
        vibe_harness.evaluate("simulated", "advisry", output_path=tmp_path)


def test_engines_are_not_started_where_everything_is_answered_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vibe_harness.pipeline import run

    def ask() -> list[Results]:
        return vibe_harness.evaluate(
            "simulated", ["advisory"], dimensions=["gender"], limit=16, tau=1, permutations=9, output_path=tmp_path
        )

    def refuse(*_: object) -> None:
        raise AssertionError("an engine was started")

    first = ask()
    monkeypatch.setattr(run, "open_extractor", refuse)
    monkeypatch.setattr(run, "generate", refuse)
    assert ask() == first
    (tmp_path / "extractions.jsonl").unlink()
    with pytest.raises(AssertionError, match="an engine was started"):
        ask()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder."""
    folder = tmp_path_factory.mktemp("run") / "run"
    vibe_harness.evaluate(
        "simulated", ["advisory"], "demo", dimensions=["gender"], limit=16, tau=2, permutations=49, output_path=folder
    )
    return folder


def test_one_dimension_may_be_given_by_its_name_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    [asked] = vibe_harness.evaluate(
        "simulated", ["advisory"], "demo", dimensions="gender", limit=16, tau=2, permutations=9, output_path=folder
    )
    scored = vibe_harness.score(folder, dimensions="gender", tau=2, permutations=9)
    assert [task.dimension for task in asked.tasks] == [task.dimension for task in scored.tasks] == ["gender"]


def test_everything_offered_is_there_whatever_was_imported_before() -> None:
    for package in ("corpora", "report", "metrics"):
        importlib.import_module(f"vibe_harness.{package}")
    assert all(callable(getattr(vibe_harness, name)) for name in vibe_harness.__all__)
    with pytest.raises(AttributeError):
        _ = vibe_harness.nothing


VERBS_IN_PYTHON = {
    "run": "evaluate", "study": "run_study", "score": "score", "power": "power", "report": "write_report",
    "compare": "compare", "cite": "cite",
    "leaderboard": "write_leaderboard", "run-check": "check_run", "values": "values", "tasks": "check_tasks",
    "models": "list_models", "corpus": "prepare_corpus", "speech-set": "make_speech_set", "schema": "schema",
    "validate-extraction": "sample_responses", "export": "export_run", "push": "push_run", "show": "results",
}  # fmt: skip


def test_every_verb_can_be_done_from_python() -> None:
    assert set(VERBS) - {"completion"} == set(VERBS_IN_PYTHON)  # which is about a shell
    assert set(VERBS_IN_PYTHON.values()) <= set(vibe_harness.__all__)


def test_scoring_again_is_what_the_verb_does(finished: Path) -> None:
    results = vibe_harness.score(finished, tau=1, permutations=49)
    assert QuickCommand(finished).json("score", ".", "--tau=1", "--permutations=49") == to_json(results)
    assert results.tau == 1


def test_what_a_run_holds(finished: Path, tmp_path: Path) -> None:
    frame = vibe_harness.observations(finished)
    assert len(frame) == 16 and set(frame["group_gender"]) == {"female", "male"}
    assert vibe_harness.values(finished, "activity").values[0].total > 0
    assert vibe_harness.results(finished).tasks[0].task == "advisory"
    assert (
        vibe_harness.write_report(finished, tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype")
    )


def test_runs_beside_one_another(finished: Path, tmp_path: Path) -> None:
    assert vibe_harness.check_run(finished).whole
    page = vibe_harness.write_leaderboard([finished], tmp_path / "board", include_simulated=True)
    assert page.is_file()
    compared = vibe_harness.compare(finished, finished, tau=1, permutations=49)
    assert [one.task for one in compared.compared] == ["advisory"]
    with pytest.raises(UserError, match="nothing to show"):
        vibe_harness.write_leaderboard([finished], tmp_path / "empty")


def test_a_study(tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(
        "study: two\nmodels: [simulated]\ntasks: [advisory]\ncorpora: [demo]\ndimensions: [gender]\nlimit: 16\n",
        encoding="utf-8",
    )
    [cell] = vibe_harness.run_study(tmp_path / "two.yaml", tmp_path / "out")
    assert cell.state == "done" and vibe_harness.check_run(cell.cell.folder).whole


def test_power_is_what_the_verb_says(tmp_path: Path) -> None:
    found = vibe_harness.power(["advisory"], "demo", "gender", simulations=20)
    command = ("power", "--tasks=advisory", "--corpus=demo", "--dimension=gender", "--simulations=20")
    told = QuickCommand(tmp_path).json(*command)["advisory"]
    assert told["detectable"] == pytest.approx(found["advisory"].detectable)


def test_cards_and_corpora(tmp_path: Path) -> None:
    assert {"story", "advisory"} <= {task.name for task in vibe_harness.list_tasks()}
    assert "simulated" in {card.model for card in vibe_harness.list_models()}
    assert "demo" in vibe_harness.list_corpora()
    assert len(vibe_harness.load_corpus("demo").clips) == 96
    [checked] = vibe_harness.check_tasks("advisory")
    assert checked.findings == ()
    with pytest.raises(UserError, match="no card for a corpus 'cremad'"):
        vibe_harness.prepare_corpus("cremad", tmp_path)


def test_a_number_that_can_be_none_of_its_kind_is_refused_before_anything_is_asked(
    finished: Path, tmp_path: Path
) -> None:
    before = (finished / "results.json").read_bytes()
    wrong = {"tau": [0, -3, 2.5, True, "10", float("nan")], "permutations": [0, 1.5, "9"], "seed": [-1, 1.5, "x"]}
    for name, numbers in wrong.items():
        for number in numbers:
            with pytest.raises(UserError, match=f"{name}: a whole number of at least"):
                vibe_harness.score(finished, **{name: number})  # type: ignore[arg-type]
            with pytest.raises(UserError, match=f"{name}: a whole number of at least"):
                vibe_harness.evaluate("simulated", ["story"], output_path=tmp_path / "run", **{name: number})  # type: ignore[arg-type]
    with pytest.raises(UserError, match="tau: a whole number of at least"):  # None is the run's own for score alone
        vibe_harness.evaluate("simulated", ["story"], output_path=tmp_path / "run", tau=None)  # type: ignore[arg-type]
    assert (finished / "results.json").read_bytes() == before and not (tmp_path / "run").exists()
    wrong = {"limit": [0, 2.5], "max_requests": [0, -1], "check_batch_invariance": [-1], "max_cost": [float("nan"), -1],
             "modality": ["x"], "answer_by": ["x"], "corpus": [""], "extractor": [""]}  # fmt: skip
    for name, given in wrong.items():
        for one in given:
            with pytest.raises(UserError, match=name.replace("_", "-") if name != "extractor" else "extractor ''"):
                vibe_harness.evaluate("simulated", ["story"], output_path=tmp_path / "run", **{name: one})  # type: ignore[arg-type]
    for name, number in {"target": float("nan"), "simulations": 0, "seed": -1, "tau": 0}.items():
        with pytest.raises(UserError, match=f"{name}: "):
            vibe_harness.power(["story"], "demo", "gender", **{name: number})  # type: ignore[arg-type]


def test_power_refuses_the_groups_that_a_run_refuses() -> None:
    with pytest.raises(UserError, match="every speaker has clips in several of its groups"):
        vibe_harness.power(["story"], "demo", "sentence_id", simulations=20)


def test_one_word_is_no_list_of_its_letters(finished: Path, tmp_path: Path) -> None:
    results = vibe_harness.score(finished, also_test="version-2", dimensions="gender", permutations=9)  # type: ignore[arg-type]
    assert results.also_test == ("version-2",)
    vibe_harness.write_leaderboard(str(finished), tmp_path / "site", include_simulated=True)
    assert [task.name for task in vibe_harness.list_tasks("story")] == ["story"]
    with pytest.raises(UserError, match="own: no such folder"):
        vibe_harness.list_models("own")


def test_a_folder_that_is_no_run_has_no_observations(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        vibe_harness.observations(tmp_path)
