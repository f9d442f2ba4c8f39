"""Two columns crossed, gender:accent, from the clips to the scores."""

import pandas as pd
import pytest

from vibe_harness import evaluate
from vibe_harness.api import power
from vibe_harness.cards.loading import CardIndex
from vibe_harness.corpora.sampling import groups_of
from vibe_harness.errors import UserError
from vibe_harness.metrics.metric import Settings, strata_for
from vibe_harness.progress import Progress
from vibe_harness.records import Clip, group_in
from vibe_harness.scoring.score import score_run, score_task
from vibe_harness.store.run_folder import RunFolder, TaskRecord


def test_a_clip_is_in_a_group_where_it_has_every_column():
    assert group_in({"gender": "female", "accent": "korean"}, "gender:accent") == "female:korean"
    assert group_in({"gender": "female"}, "gender:accent") is None
    assert group_in({"gender": "female"}, "gender") == "female"
    clips = [Clip(str(n), str(n), str(n), {"gender": g, "accent": "korean"} if g else {}) for n, g in enumerate("fm")]
    assert {group: len(own) for group, own in groups_of(clips, "accent:gender").items()} == {
        "korean:f": 1, "korean:m": 1,
    }  # fmt: skip


def test_what_is_compared_by_is_no_stratum():
    declared = {"accent": ["gender", "age"], "age": ["gender"]}
    assert strata_for("accent", declared) == ("gender", "age")
    assert strata_for("gender:accent", declared) == ("age",)
    assert strata_for("gender", declared) == ()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("crossed") / "run"
    evaluate("simulated", ["advisory"], "demo", dimensions=["gender"], permutations=99, output_path=path)
    return RunFolder(path)


def test_a_finished_run_is_scored_by_crossed_columns(folder):
    clips = pd.read_parquet(folder.clips)
    columns = [name.removeprefix("group_") for name in clips if name.startswith("group_")]
    other = next(name for name in columns if name not in ("gender", "sentence_id"))
    [task] = score_run(folder, Settings(tau=2, permutations=99), [f"gender:{other}"], Progress()).tasks
    pairs = set(zip(clips["group_gender"], clips[f"group_{other}"], strict=True))
    assert set(task.groups) == {":".join(pair) for pair in pairs} and task.dimension == f"gender:{other}"
    assert sum(group.requests for group in task.groups.values()) == len(clips)


def test_a_column_that_the_run_lacks_is_named(folder):
    with pytest.raises(UserError, match="no such column 'accnt'"):
        score_run(folder, Settings(), ["gender:accnt"], Progress())
    with pytest.raises(UserError, match="no such column 'accnt'"):
        evaluate("simulated", ["advisory"], "demo", dimensions=["gender:accnt"])


def test_a_column_crossed_with_itself_is_refused(folder):
    with pytest.raises(UserError, match="'gender' is crossed with itself"):
        score_run(folder, Settings(), ["gender:gender"], Progress())
    with pytest.raises(UserError, match="'gender' is crossed with itself"):
        evaluate("simulated", ["advisory"], "demo", dimensions=["gender:gender"])
    with pytest.raises(UserError, match="'gender' is crossed with itself"):
        power(["advisory"], "demo", "gender:gender", simulations=20)


def test_groups_of_one_speaker_are_refused_by_name():
    rows = [
        {"request": str(n), "clip": str(n), "speaker": f"s{n}", "group": group, "attribute": "activity",
         "outcome": "ok", "reading": "value", "raw": ["x"], "values": ["x"], "group_gender": group[0]}
        for n, group in enumerate(["f:korean", "f:korean", "m:korean", "f:hindi", "f:hindi"])
    ]  # fmt: skip
    [task] = CardIndex().tasks(["advisory"])
    record = TaskRecord(card=task.card, digest=task.digest, prompts={}, variants=["default"], sources={})
    with pytest.raises(UserError, match=r"1 of its 3 groups have one speaker only \(m:korean\)"):
        score_task(pd.DataFrame(rows), record, "default", "gender:accent", Settings())
