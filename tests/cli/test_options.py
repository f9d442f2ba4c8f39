"""Options from a file and overrides for a model: what is wrong is told in a line, whatever its type."""

import json

import pytest

RUN = ("--model", "simulated", "--tasks", "advisory", "--dry-run")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("tau: [1, 2]", "run.yaml:1"),
        ("tau: true", "'--tau'"),
        ("limit: 2.7", "'--limit'"),
        ("seed: null", "run.yaml:1"),
        ("include_path: [[a]]", "run.yaml:1"),
        ("include_path: 5", "5"),
        ("output_path: [a]", "run.yaml:1"),
        ("skip_bad_clips: perhaps", "run.yaml:1"),
        ("no_hearing_check: 1", "run.yaml:1"),
        ("dimensions: gender", "'dimension'"),
        ("config: other.yaml", "unknown option"),
        ("model_args: {strength: .nan}", "strength"),
        ("model_args: {strength: 2020-01-01}", "strength"),
        ("- a", "run.yaml:1"),
    ],
)
def test_a_wrong_type_in_the_file_of_options(quick, written, said):
    (quick.folder / "run.yaml").write_text(f"{written}\n", encoding="utf-8")
    assert said in quick.refuses("--config", "run.yaml", *RUN)


def test_the_file_of_options_takes_the_names_that_are_typed(quick, tones):
    (quick.folder / "run.yaml").write_text(
        f"model: simulated\ntasks: advisory\ncorpus: {tones}\ndimension: gender\njson: true\ndry-run: true\nlimit: 8\n",
        encoding="utf-8",
    )
    assert json.loads(quick("--config", "run.yaml", check=0).stdout)["clips"] == 8


@pytest.mark.parametrize("given", [True, False])
def test_flags_in_the_file_mean_what_they_mean_when_typed(tmp_path, given):
    from vibe_harness.cli.run import command

    word = str(given).lower()
    (tmp_path / "run.yaml").write_text(f"no_hearing_check: {word}\nskip_bad_clips: {word}\n", encoding="utf-8")
    arguments = ["--config", str(tmp_path / "run.yaml"), "--model", "simulated", "--tasks", "story"]
    options = command.make_context("run", arguments).params
    assert (options["hearing_check"], options["skip_bad_clips"]) == (not given, given)


@pytest.mark.parametrize(
    "given",
    [
        "nonsense", "=1", "strength=.nan", "strength=.inf", "max_seconds=.inf", "strength={a: [1}", "layout=5",
        "strength=" + "[" * 3000, "args={strength: 1}", "revision=[1]", "strength=!!python/object/apply:os.getcwd []",
        "sample_rate=1e400",
    ],
)  # fmt: skip
def test_overrides_that_make_no_sense(quick, given):
    message = quick.refuses(*RUN, "--model-args", given)
    assert len(message.splitlines()) == 1 and "model" in message


def test_a_body_that_cannot_be_sent(quick):
    message = quick.refuses("--model", "server", "--tasks", "advisory", "--model-args", "extra_body={a: {b: .nan}}")
    assert "extra_body" in message
