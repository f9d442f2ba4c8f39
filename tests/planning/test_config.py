"""A run's options are declared once: all that speaks of them follows."""

import dataclasses
import inspect
from pathlib import Path

import pytest
from click.testing import CliRunner

import vibe_harness
from vibe_harness.cli.run import command
from vibe_harness.errors import UserError
from vibe_harness.planning.config import GROUPS, RunConfig, options
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.studies.study import read_study

NAMES = [option.name for option in options()]


def test_every_field_but_progress_is_an_option():
    assert [*NAMES, "label", "progress"] == [field.name for field in dataclasses.fields(RunConfig)]
    assert {option.group for option in options()} == set(GROUPS)


def test_command_line_and_python_follow():
    typed = {parameter.name: parameter for parameter in command.params}
    for option in options():
        assert option.flag in typed[option.name].opts, option.name
    signature = inspect.signature(vibe_harness.evaluate)
    assert list(signature.parameters) == [*NAMES, "label", "progress"]
    shown = CliRunner().invoke(command, ["--help"]).output
    assert all(f"\n{group}:\n" in shown for group in GROUPS)


def test_a_study_file_takes_every_option_that_may_hold_for_all_of_its_runs(tmp_path):
    given = {
        "dimensions": ["gender"], "prompt_variant": "all", "limit": 8, "modality": "transcript",
        "answer_by": "likelihood", "extractor": "rules", "seed": 3, "tau": 2, "permutations": 19,
        "also_test": ["version-2"], "skip_bad_clips": True, "hearing_check": False, "check_batch_invariance": 2,
        "long_clips": "split", "max_seconds": 25.0,
    }  # fmt: skip
    assert {option.name for option in options() if option.study} == {*given, "include_path"}
    path = tmp_path / "s.yaml"
    lines = [f"{name}: {str(value).lower() if isinstance(value, bool) else value}" for name, value in given.items()]
    path.write_text(
        "\n".join(["study: s", "models: [simulated]", "tasks: [story]", "corpora: [demo]", *lines]), encoding="utf-8"
    )
    found = read_study(path).options()
    assert {name: found[name] for name in given} == given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"limit": 0}, "--limit"), ({"tau": 0}, "--tau"), ({"seed": -1}, "--seed"), ({"max_cost": 0.0}, "--max-cost"),
        ({"modality": "sound"}, "--modality sound"), ({"answer_by": "guess"}, "--answer-by guess"),
        ({"max_cost": float("inf")}, "--max-cost"), ({"tau": True}, "--tau"),
    ],
)  # fmt: skip
def test_a_value_that_an_option_cannot_take_is_refused_by_name(given, said):
    with pytest.raises(UserError, match=said):
        RunConfig("simulated", ["story"], **given)


def test_one_string_stands_for_a_list_of_one():
    config = RunConfig("simulated", "story", dimensions="gender", include_path="cards")
    assert (config.tasks, config.dimensions, config.include_path) == (["story"], ["gender"], [Path("cards")])


def test_run_json_keeps_what_was_given(tmp_path):
    vibe_harness.evaluate("simulated", "advisory", limit=8, tau=1, permutations=9, output_path=tmp_path / "run")
    given = RunFolder(tmp_path / "run").record().config
    assert given == {
        "model": "simulated", "tasks": ["advisory"], "limit": 8, "tau": 1, "permutations": 9,
        "output_path": str(tmp_path / "run"),
    }  # fmt: skip
