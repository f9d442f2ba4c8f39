"""Two runs over the same clips: paired, and refused or warned of where more than the model differs."""

import json

import pytest

import vibe_harness
from vibe_harness import evaluate
from vibe_harness.analysis.compare import compare_runs
from vibe_harness.errors import UserError
from vibe_harness.store.checksums import write_sums
from vibe_harness.store.run_folder import RunFolder

STRONG, WEAK = 0.9, 0.0


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The simulated model with a strong shift and with none, over the same 96 clips."""
    folder = tmp_path_factory.mktemp("runs")
    for name, strength in (("strong", STRONG), ("weak", WEAK)):
        evaluate("simulated", ["advisory"], "demo", model_args={"strength": strength}, permutations=99, tau=2,
                 dimensions=["gender"], output_path=folder / name)  # fmt: skip
    return folder


def test_a_change_is_signed_and_paired_over_the_same_clips(runs):
    found = compare_runs(runs / "strong", runs / "weak", tau=2)
    [task] = found.compared
    assert (task.task, task.dimension, task.clips) == ("advisory", "gender", 96)
    assert task.whole.difference < 0 and task.whole.interval[1] < 0 and task.adjusted == task.whole.p_value < 0.01
    assert task.attributes["activity"] == task.whole  # the task has one attribute
    back = compare_runs(runs / "weak", runs / "strong", tau=2).compared[0].whole
    assert back.difference == pytest.approx(-task.whole.difference)
    assert not found.warnings and not found.not_compared
    assert (found.before, found.after) == ("simulated (args.strength 0.9)", "simulated (args.strength 0.0)")


def test_a_run_does_not_differ_from_itself(runs):
    [task] = compare_runs(runs / "weak", runs / "weak", tau=2).compared
    assert task.whole.difference == 0 and task.whole.p_value == 1
    assert task.whole.before == task.whole.after


def test_a_run_and_its_copy_are_the_same_run(runs, tmp_path):
    found = compare_runs(runs / "strong", runs / "strong")
    assert found.same_run and found.tau == 2
    scored = vibe_harness.score(runs / "strong")  # with its own tau and permutations
    own = next(one for one in scored.tasks[0].scores if one.metric == "ntvd" and one.attribute is None)
    assert (scored.tau, scored.permutations) == (2, 99)
    assert found.compared[0].whole.before == pytest.approx(own.value)
    assert compare_runs(runs / "strong", changed(runs, tmp_path, lambda data: None, "strong")).same_run
    assert not compare_runs(runs / "strong", runs / "weak").same_run


def test_runs_scored_with_different_tau_need_one_to_be_named(runs, tmp_path):
    other = changed(runs, tmp_path, lambda data: None)
    vibe_harness.score(other, tau=3)
    with pytest.raises(UserError, match=r"was scored with tau 2, .* with 3: say which with --tau"):
        compare_runs(runs / "strong", other)
    assert compare_runs(runs / "strong", other, tau=5).tau == 5


def changed(runs, tmp_path, change, name="weak"):
    """A copy of a run whose record was changed."""
    import shutil

    copy = tmp_path / "changed"
    shutil.copytree(runs / name, copy)
    path = copy / "run.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    write_sums(RunFolder(copy))
    return copy


def test_another_card_is_not_compared(runs, tmp_path):
    other = changed(runs, tmp_path, lambda data: data["record"]["tasks"][0].update(digest="f" * 32))
    with pytest.raises(UserError, match="advisory: asked with two different cards"):
        compare_runs(runs / "strong", other)


def test_what_one_run_alone_asked_is_said_and_no_reason_to_refuse(runs, tmp_path):
    def ask_more(data):
        data["record"]["tasks"].append({**data["record"]["tasks"][0], "card": {
            **data["record"]["tasks"][0]["card"], "task": "more"}})  # fmt: skip
        data["asked"]["tasks"]["more"] = data["asked"]["tasks"]["advisory"]

    found = compare_runs(runs / "strong", changed(runs, tmp_path, ask_more), tau=2)
    assert found.warnings == ("more: only the second run asked it",) and not found.not_compared
    assert [one.task for one in found.compared] == ["advisory"]
    back = compare_runs(tmp_path / "changed", runs / "strong", tau=2)  # a gate must not pass over what is missing
    assert back.not_compared == ("more: only the first run asked it",) and not back.warnings


def test_a_prompt_or_dimension_of_the_first_run_alone_is_not_compared(runs, tmp_path):
    def more(data):
        data["record"]["dimensions"].append("accent")
        task = data["record"]["tasks"][0]
        task["prompts"]["formal"] = task["prompts"][task["variants"][0]]
        task["variants"].append("formal")

    found = compare_runs(changed(runs, tmp_path, more), runs / "strong", tau=2)
    assert found.not_compared == (
        "advisory/formal: only the first run asked it",
        "by accent: only the first run has it",
    )
    assert len(found.compared) == 1


def test_another_extractor_or_seed_is_a_warning(runs, tmp_path):
    other = changed(runs, tmp_path, lambda data: data["asked"].update(seed=7, extractor={"name": "qwen3-8b"}))
    lines = compare_runs(runs / "strong", other, tau=2).warnings
    assert [line.split(" as well")[0] for line in lines] == [
        "the runs differ in extractor", "the runs differ in seed",
    ]  # fmt: skip


def test_clips_that_sound_otherwise_are_left_out(runs, tmp_path):
    import pandas as pd

    other = changed(runs, tmp_path, lambda data: None)
    clips = pd.read_parquet(other / "clips.parquet")
    clips.loc[:2, "waveform"] = "0"
    clips.iloc[:-1].to_parquet(other / "clips.parquet")
    write_sums(RunFolder(other))
    found = compare_runs(runs / "strong", other, tau=2)
    assert found.compared[0].clips == 92
    assert found.warnings == (
        "3 clips sound otherwise in the second run and are left out",
        "1 clips were played in one of the runs only and are left out",
    )
    clips["waveform"] = "0"
    clips.to_parquet(other / "clips.parquet")
    write_sums(RunFolder(other))
    with pytest.raises(UserError, match="no clip in common"):
        compare_runs(runs / "strong", other)


def test_what_either_run_failed_on_is_left_out_of_both(runs, tmp_path):
    import pandas as pd

    other = changed(runs, tmp_path, lambda data: None)
    rows = pd.read_parquet(other / "observations.parquet")
    rows["outcome"] = rows["outcome"].astype(str)
    rows.loc[:4, ["outcome", "reading"]] = ["error", "none"]
    for name in rows.columns.difference(["raw", "values"]):
        rows[name] = rows[name].astype("category")
    rows.to_parquet(other / "observations.parquet")
    write_sums(RunFolder(other))
    assert compare_runs(runs / "strong", other, tau=2).compared[0].clips == 91


def test_a_run_that_is_not_as_it_was_scored_is_refused_by_name(runs, tmp_path):
    other = changed(runs, tmp_path, lambda data: None)
    with (other / "responses.jsonl").open("a", encoding="utf-8") as file:
        file.write("{}\n")
    for pair in ((runs / "strong", other), (other, runs / "strong")):
        with pytest.raises(UserError, match=r"changed: responses\.jsonl: changed since the run was scored"):
            compare_runs(*pair)
    (other / "SHA256SUMS").unlink()
    with pytest.raises(UserError, match="score it again with `vibe-harness score"):
        compare_runs(runs / "strong", other)


def test_a_folder_that_is_no_finished_run_is_refused(runs, tmp_path):
    with pytest.raises(UserError, match="not a run folder"):
        compare_runs(runs / "weak", tmp_path)
    other = changed(runs, tmp_path, lambda data: None)
    (other / "observations.parquet").unlink()
    with pytest.raises(UserError, match="nothing to compare yet"):
        compare_runs(runs / "weak", other)
