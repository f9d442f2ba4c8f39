"""Our metrics as modules of Hugging Face `evaluate`, and theirs in our cards; never through the network."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.card_folder import Folder
from tests.metrics.frames import frame
from vibe_harness.errors import UserError
from vibe_harness.metrics import evaluation_module
from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.registry import find_metric

SCRIPT = """\
import datasets
import evaluate


class Own(evaluate.Metric):
    def _info(self):
        return evaluate.MetricInfo(
            description="made by a test", citation="", inputs_description="", features=datasets.Features({features})
        )

    def _compute(self, {arguments}):
        return {result}
"""


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def script(folder: Path, name: str, features: str, arguments: str, result: str) -> str:
    """A module of that name as a card names it."""
    path = folder / f"{name}.py"
    path.write_text(SCRIPT.format(features=features, arguments=arguments, result=result), encoding="utf-8")
    return f"evaluate:{path}"


def test_ours_is_made_directly_or_loaded_by_its_path() -> None:
    import evaluate

    made = frame()
    columns = made[evaluation_module.EvaluationModule.COLUMNS].to_dict("list")
    for module in (
        evaluation_module.EvaluationModule("ntvd"),
        evaluate.load(evaluation_module.__file__, "ntvd", keep_in_memory=True),
    ):
        found = module.compute(**columns, tau=2)
        assert found["ntvd"] == pytest.approx(50)  # by hand, see test_functions
        assert [score["attribute"] for score in found["scores"]] == [None, "job"]


def test_strata_and_published_tests_come_by_name() -> None:
    made = frame()
    columns = made[evaluation_module.EvaluationModule.COLUMNS].to_dict("list")
    module = evaluation_module.EvaluationModule("ntvd")
    emotion = ["anger" if group == "a" else "joy" for group in made["group"]]
    found = module.compute(**columns, tau=2, strata={"emotion": emotion}, also_test=["version-1"])["scores"][0]
    assert found["detail"]["imbalance"] == {"emotion": 100} and found["detail"]["tests"]["version-1"]["complete"]
    sex = [speaker[1] for speaker in made["speaker"]]
    found = module.compute(**columns, tau=2, speaker_strata={"sex": sex})["scores"][0]
    assert found["permuted"] == "speakers within sex" and found["permutations"] == 4
    with pytest.raises(UserError, match="sex: 1 entries for 10 rows"):
        module.compute(**columns, speaker_strata={"sex": ["m"]})


def test_one_input_of_text_is_fed_by_attribute_and_by_group(tmp_path: Path) -> None:
    name = script(tmp_path, "longest", "{'data': datasets.Value('string')}", "data", "{'letters': max(map(len, data))}")
    [score] = find_metric(name, trust_remote_code=True).compute(frame(), Settings())
    assert (score.metric, score.attribute, score.value) == (name, "job", 5)  # nurse, judge
    assert score.detail["by_group"] == {"a": 5, "b": 5}


def test_predictions_are_values_and_references_groups(tmp_path: Path) -> None:
    text = "datasets.Value('string')"
    result = "{'same': float('nan'), 'pairs': sorted(set(zip(predictions, references))), 'n': len(predictions)}"
    name = script(
        tmp_path, "pairing", f"{{'predictions': {text}, 'references': {text}}}", "predictions, references", result
    )
    same, n = find_metric(name, trust_remote_code=True).compute(frame(), Settings())
    assert (n.metric, n.value) == (f"{name}:n", 9)
    assert n.detail["pairs"] == [["chef", "a"], ["chef", "b"], ["judge", "a"], ["nurse", "a"], ["nurse", "b"]]
    assert same.value is None and same.undefined == "it gives nan"


def test_columns_of_observations_are_fed_by_name(tmp_path: Path) -> None:
    features = "{'speaker': datasets.Value('string'), 'values': datasets.Sequence(datasets.Value('string'))}"
    name = script(tmp_path, "columns", features, "speaker, values", "{'speakers': len(set(speaker))}")
    [score] = find_metric(name, trust_remote_code=True).compute(frame(), Settings())
    assert (score.attribute, score.value) == (None, 4)


def test_what_cannot_be_fed_or_found_is_said_in_a_line(tmp_path: Path) -> None:
    numbers = script(tmp_path, "numbers", "{'predictions': datasets.Value('int32')}", "predictions", "{}")
    (tmp_path / "empty.py").write_text("", encoding="utf-8")
    for name, said in (
        (numbers, "answers cannot feed"),
        (
            "evaluate:no_such_metric",
            r"fetch it once with `python -c \"import evaluate; evaluate.load\('no_such_metric'",
        ),
        (f"evaluate:{tmp_path / 'empty.py'}", "does not load"),
        (f"evaluate:{tmp_path / 'absent.py'}", "neither a script here"),
    ):
        with pytest.raises(UserError, match=said) as error:
            find_metric(name, trust_remote_code=True)
        assert "\n" not in str(error.value)


def test_a_card_names_one_and_a_run_scores_by_it(tmp_path: Path) -> None:
    from vibe_harness import evaluate

    name = script(tmp_path, "longest", "{'data': datasets.Value('string')}", "data", "{'letters': max(map(len, data))}")
    folder = Folder(tmp_path / "own")
    folder.card("dimensions:", f"metrics: [ntvd, '{name}']\ndimensions:")
    [results] = evaluate(
        "simulated", ["t"], include_path=[tmp_path / "own"], dimensions=["gender"], limit=16, tau=1, permutations=9,
        trust_remote_code=True, output_path=tmp_path / "run",
    )  # fmt: skip
    scores = {score.metric: score for score in results.tasks[0].scores}
    assert scores[name].attribute == "a" and scores[name].value and set(scores[name].detail["by_group"]) == {
        "female", "male",
    }  # fmt: skip
