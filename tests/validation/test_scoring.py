"""Agreement, counted by hand on a sample of three responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.validation.conftest import claim, drawn, made_sample
from vibe_harness.errors import UserError
from vibe_harness.records import Reading
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.validation.judgments import Judge, Judgment, Verdict
from vibe_harness.validation.results import RunValidation, read_run_validation, write_run_validation
from vibe_harness.validation.sample import Sample, read_sample
from vibe_harness.validation.scoring import keep_beside_runs, validate

RIGHT, WRONG = Verdict


def two_extractors() -> Sample:
    both = ("rules", "model")
    return made_sample([
        drawn(1, "nurse", {
            "occupation": [claim(["nurse"], *both)],
            "hobby": [claim(["yoga", "tennis"], "rules"), claim(["yoga"], "model")],
        }),
        drawn(2, "farmer", {
            "occupation": [claim(["farmer"], "model"), claim([], "rules", reading=Reading.NONE)],
            "hobby": [claim([], "rules", reading=Reading.UNPARSED), claim(["golf"], "model")],
        }, group="male"),
        drawn(3, "chess", {"hobby": [claim(["chess"], *both)]}, task="advisory", dimension="accent", group="scottish"),
    ], extractors=both)  # fmt: skip


def judged(**words: str) -> dict[str, Judgment]:
    items = [item for item, *_ in two_extractors().items()]
    assert items == [
        "r001/occupation/1", "r001/hobby/1", "r001/hobby/2", "r002/occupation/1", "r002/occupation/2", "r002/hobby/2",
        "r003/hobby/1",
    ]  # fmt: skip
    verdicts = {"r": RIGHT, "w": WRONG}
    return {item: Judgment(item, verdicts[word]) for item, word in zip(items, words["all"], strict=True) if word != "-"}


ANN = judged(all="rwrrwrr")
ANN["r001/hobby/1"] = Judgment("r001/hobby/1", WRONG, ("tennis",))


def test_agreement_by_task_attribute_and_group() -> None:
    found = validate(two_extractors(), {"ann": ANN})
    rules, model = found.extractors
    assert (rules.extractor, rules.overall.right, rules.overall.judged, rules.overall.responses) == ("rules", 2, 4, 3)
    assert rules.overall.share == 0.5 and rules.overall.not_read == 1 and rules.overall.waiting == 0
    assert model.overall.share == 1 and model.overall.judged == 5 and model.overall.exact
    assert rules.tasks["story"].share == pytest.approx(1 / 3) and rules.tasks["advisory"].share == 1
    assert rules.attributes["story"]["occupation"].share == 0.5
    assert rules.attributes["story"]["hobby"].judged == 1 and rules.attributes["story"]["hobby"].not_read == 1
    assert {d: {g: a.share for g, a in groups.items()} for d, groups in rules.groups.items()} == {
        "gender": {"female": 0.5, "male": 0.0}, "accent": {"scottish": 1.0},
    }  # fmt: skip
    assert (rules.items, rules.wrong_items) == (2, 1)
    assert found.complete and found.readings == 7 and found.judges == {"ann": 7} and found.pairs == []


def test_the_comparison_takes_what_both_were_judged_for() -> None:
    [two] = validate(two_extractors(), {"ann": ANN}, resamples=4_000).comparisons
    assert (two.first, two.second, two.judged, two.responses) == ("rules", "model", 4, 3)
    assert (two.first_share, two.second_share, two.difference) == (0.5, 1.0, -0.5)
    assert (two.first_not_read, two.second_not_read) == (1, 0)
    # Responses differ by -1, -1 and 0: of the four ways to sign the first two, two reach 2 in size.
    assert two.p_value == pytest.approx(0.5, abs=0.03)


def test_several_judges_are_averaged_and_compared() -> None:
    ben = judged(all="rrrr--w")
    found = validate(two_extractors(), {"ann": ANN, "ben": ben})
    rules = found.extractors[0]
    assert rules.overall.right == 1 + 0.5 + 0 + 0.5 and rules.overall.judged == 4
    [pair] = found.pairs
    assert (pair.judges, pair.judged, pair.same) == (("ann", "ben"), 5, pytest.approx(3 / 5))
    # Ann calls 4 of 5 right, Ben 4 of 5: chance 0.64 + 0.04 = 0.68, kappa (0.6 - 0.68) / 0.32.
    assert pair.kappa == pytest.approx(-0.25)


def test_what_is_left_is_said() -> None:
    found = validate(two_extractors(), {"ann": judged(all="r------")})
    assert not found.complete and found.extractors[0].overall.waiting == 3
    assert found.extractors[0].tasks["advisory"].share is None
    assert found.comparisons[0].judged == 1
    with pytest.raises(UserError, match="has no judgments yet"):
        validate(two_extractors(), {"ann": {}})


def all_right(sample: Sample) -> Mapping[str, Judgment]:
    return {item: Judgment(item, RIGHT) for item, *_ in sample.items()}


def test_what_was_judged_is_kept_beside_the_run(run: Path, sampled: Path) -> None:
    sample = read_sample(sampled)
    judgments = {"ann": all_right(sample)}
    validation = validate(sample, judgments)
    assert keep_beside_runs(sampled, sample, judgments, validation) == []
    kept = read_run_validation(RunFolder(run))
    assert isinstance(kept, RunValidation) and kept.validation == validation and kept.stale(RunFolder(run)) is None
    assert kept.own.overall.judged == len(kept.judged) == 70 and kept.own.overall.share == 1
    first = kept.judged[0]
    assert first.verdicts == {"ann": "right"} and first.request == sample.responses[0].request
    assert kept.models == ["simulated"] and validation.simulated


def test_a_run_that_is_gone_or_another_is_said_and_left_alone(run: Path, sampled: Path) -> None:
    sample = read_sample(sampled)
    judgments = {"ann": all_right(sample)}
    validation = validate(sample, judgments)
    keep_beside_runs(sampled, sample, judgments, validation)
    asked = json.loads((run / "run.json").read_text(encoding="utf-8"))
    asked["asked"]["seed"] = 99
    (run / "run.json").write_text(json.dumps(asked), encoding="utf-8")
    kept = read_run_validation(RunFolder(run))
    assert kept is not None and "sample and judge it again" in str(kept.stale(RunFolder(run)))
    (run / "validation.json").unlink()
    [told] = keep_beside_runs(sampled, sample, judgments, validation)
    assert "the run changed since" in told and not (run / "validation.json").exists()
    assert read_run_validation(RunFolder(run)) is None
    (run / "run.json").unlink()
    [told] = keep_beside_runs(sampled, sample, judgments, validation)
    assert "run.json" in told


def test_a_broken_validation_is_refused(run: Path, sampled: Path) -> None:
    sample = read_sample(sampled)
    judgments = {"ann": all_right(sample)}
    keep_beside_runs(sampled, sample, judgments, validate(sample, judgments))
    folder = RunFolder(run)
    kept = read_run_validation(folder)
    assert kept is not None
    write_run_validation(folder, kept)
    path = run / "validation.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    for change, told in [({"format": 9}, "format 9"), ({"own": {}}, "own"), ({"judged": 3}, "judged")]:
        path.write_text(json.dumps(data | change), encoding="utf-8")
        with pytest.raises(UserError, match=told):
            read_run_validation(folder)


def test_a_sample_can_be_judged_and_scored_far_from_its_run(run: Path, sampled: Path, tmp_path: Path) -> None:
    sample = read_sample(sampled)
    assert sample.runs[0].path == "../run"  # so that the two can be moved together
    Judge(sampled, sample, "ann").add(list(all_right(sample).values()))
    (tmp_path / "moved").mkdir()
    run.rename(tmp_path / "moved" / "run")
    moved = sampled.rename(tmp_path / "moved" / "sample")
    judgments = {"ann": Judge(moved, sample, "ann").judgments()}
    assert keep_beside_runs(moved, sample, judgments, validate(sample, judgments)) == []
