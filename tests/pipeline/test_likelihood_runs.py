"""Runs that are answered by likelihood: what they refuse, what they store, and that no other run is taken for them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.choice_corpora import heard, quiz, row
from vibe_harness.backends.local.likelihood import answer
from vibe_harness.cards.loading import CardIndex
from vibe_harness.cards.schema import Sampling
from vibe_harness.errors import UserError
from vibe_harness.pipeline.run import run_all
from vibe_harness.planning.config import RunConfig
from vibe_harness.planning.plan import Plan
from vibe_harness.planning.prepare import prepare
from vibe_harness.progress import Progress
from vibe_harness.records import Request, Response
from vibe_harness.store.results import Results, read_results
from vibe_harness.store.run_folder import RunFolder

TOKENS = {label: (place,) for place, label in enumerate("ABCD")}
MODEL = "hf:org/name"  # its engine is never opened: `Knowing` stands in its place


class Knowing:
    """An engine that answers by likelihood, always right, with a probability of 0.7; or ties, on every second row.

    wordy: so many answers, the first ones, begin with something else than a letter with a probability of 0.51.
    """

    def __init__(self, ties: bool = False, wordy: int = 0) -> None:
        self.ties = ties
        self.wordy = wordy
        self.asked: list[Request] = []

    def describe(self) -> Mapping[str, str]:
        return {"backend": "hf"}

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for number, request in enumerate(requests):
            self.asked.append(request)
            logs = {TOKENS[o.label][0]: math.log(0.7 if o.correct else 0.1) for o in request.options}
            if self.ties and number % 2:
                logs = dict.fromkeys(logs, math.log(0.25))
            if number < self.wordy:
                logs = {token: value + math.log(0.49) for token, value in logs.items()}
            tokens = {option.label: TOKENS[option.label] for option in request.options}
            yield answer(request, tokens, logs, input_tokens=9, output_tokens=1)

    def close(self) -> None:
        pass


def question(manifest: Path, folder: Path, **changes: Any) -> RunConfig:
    asked = {
        "model": MODEL, "tasks": ["biasinear"], "corpus": str(manifest), "permutations": 20, "hearing_check": False,
        "answer_by": "likelihood", "output_path": folder,
    }  # fmt: skip
    return RunConfig(**(asked | changes))


def run(manifest: Path, folder: Path, engine: Knowing, **changes: Any) -> Results:
    found = prepare(question(manifest, folder, **changes), Progress())
    [results] = run_all([replace(one, opener=lambda card, tasks: engine) for one in found], Progress())
    return results


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in RunFolder(folder).responses.read_text(encoding="utf-8").splitlines()]


def test_likelihoods_are_stored_and_letters_scored(tmp_path: Path) -> None:
    engine = Knowing()
    results = run(quiz(tmp_path / "quiz", questions=4), tmp_path / "run", engine)
    assert {(one.answer_by, one.generation.max_tokens, one.generation.temperature) for one in engine.asked} == {
        ("likelihood", 1, 0.0)
    }
    found = records(tmp_path / "run")
    assert len(found) == 16
    for one in found:
        assert set(one["likelihoods"]) == set("ABCD") and one["outcome"] == "ok"
        assert one["text"] == max(one["likelihoods"], key=one["likelihoods"].get)
        assert sum(map(math.exp, one["likelihoods"].values())) == pytest.approx(1)
    assert results.answer_by == "likelihood"
    for task in results.tasks:
        assert {one.metric: one.value for one in task.scores if one.attribute is None}["accuracy"] == 100
    assert read_results(tmp_path / "run" / "results.json").answer_by == "likelihood"
    assert RunFolder(tmp_path / "run").record().answer_by == "likelihood"
    assert RunFolder(tmp_path / "run").identity()["answer_by"] == "likelihood"


def test_a_tie_is_an_error_that_is_asked_again_and_never_a_letter(tmp_path: Path) -> None:
    manifest, engine = quiz(tmp_path / "quiz", questions=4), Knowing(ties=True)
    results = run(manifest, tmp_path / "run", engine)
    outcomes = [group.outcomes for group in results.tasks[0].groups.values()]
    assert sum(one["error"] for one in outcomes) == 8 == sum(one["ok"] for one in outcomes)
    assert {one["text"] for one in records(tmp_path / "run") if one["outcome"] == "error"} == {""}
    again = Knowing()
    run(manifest, tmp_path / "run", again)
    assert len(again.asked) == 8


@pytest.mark.parametrize(("wordy", "warned"), [(0, False), (1, False), (2, True)])
def test_letters_that_the_model_would_not_begin_with_are_told(tmp_path: Path, wordy: int, warned: bool) -> None:
    results = run(
        quiz(tmp_path / "quiz", questions=4), tmp_path / "run", Knowing(wordy=wordy)
    )  # 16 answers, limit 10 %
    for task in results.tasks:
        said = [one for one in task.warnings if "would more probably begin with something other than a letter" in one]
        assert bool(said) is warned and (not warned or (said[0].startswith("choice: 12%") and not task.reliable))


@pytest.mark.parametrize("likelihoods", [[-1.0], {"A": "x"}, {"A": None}, {"A": float("nan")}, {"A": 1e9}])
def test_an_edited_likelihood_is_told(tmp_path: Path, likelihoods: Any) -> None:
    manifest, folder = quiz(tmp_path / "quiz"), tmp_path / "run"
    run(manifest, folder, Knowing())
    found = records(folder)
    found[2]["likelihoods"] = likelihoods
    RunFolder(folder).responses.write_text("".join(f"{json.dumps(one)}\n" for one in found), encoding="utf-8")
    with pytest.raises(UserError, match=r"responses\.jsonl:3: not a record"):
        run(manifest, folder, Knowing())


def test_neither_run_is_taken_for_the_other(tmp_path: Path) -> None:
    manifest = quiz(tmp_path / "quiz")
    [by_likelihood] = prepare(question(manifest, tmp_path / "run"), Progress())
    [generated] = prepare(question(manifest, tmp_path / "run", answer_by="generate"), Progress())
    assert not {one.id for one in by_likelihood.plan.requests()} & {one.id for one in generated.plan.requests()}
    assert "answer_by" not in generated.identity  # so that a folder from before there was a choice goes on
    run(manifest, tmp_path / "one", Knowing())
    with pytest.raises(UserError, match=r"this folder holds another run: it differs in answer_by\."):
        run(manifest, tmp_path / "one", Knowing(), answer_by="generate")
    run(manifest, tmp_path / "other", Knowing(), answer_by="generate")
    with pytest.raises(UserError, match=r"this folder holds another run: it differs in answer_by\."):
        run(manifest, tmp_path / "other", Knowing())


def test_the_ids_of_generated_answers_are_those_of_before() -> None:
    """An id that was made before a run could be answered by likelihood."""
    index = CardIndex()
    [found] = index.tasks(["biasinear"])
    plan = Plan(index.model("server"), [found], {found.name: ("standard",)}, [heard(row())], 0)
    assert [one.id for one in plan.requests()] == ["ab289f5734ff4b38487f9fc97d88739c"]


def test_a_letter_that_is_generated_as_one_token_has_another_id() -> None:
    index = CardIndex()
    [found] = index.tasks(["biasinear"])
    short = replace(found, card=found.card.model_copy(update={"generation": Sampling(max_tokens=1, temperature=0)}))
    plan = Plan(index.model("server"), [short], {short.name: ("standard",)}, [heard(row())], 0)
    [generated], [by_likelihood] = plan.requests(), replace(plan, answer_by="likelihood").requests()
    assert generated.generation == by_likelihood.generation and generated.id != by_likelihood.id


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tasks": ["biasinear", "story"]}, "--answer-by likelihood: only for choice tasks, and 'story' is not one"),
        ({"tasks": ["advisory"]}, "--answer-by likelihood: only for choice tasks, and 'advisory' is not one"),
        ({"model": "server"}, "the backend 'openai' of the model 'server' does not give the log-probabilities"),
        ({"model": "simulated"}, "the backend 'simulated' of the model 'simulated' does not give"),
        ({"model": "gemini-2.5-flash"}, "the backend 'gemini' of the model 'gemini-2.5-flash' does not give"),
    ],
)
def test_what_cannot_be_answered_by_likelihood(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        prepare(question(quiz(tmp_path / "quiz"), tmp_path / "run", **changes), Progress())
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_models_of_hf_and_vllm_are_asked_so(tmp_path: Path) -> None:
    manifest = quiz(tmp_path / "quiz")
    for model in (MODEL, "vllm:org/name"):
        [found] = prepare(question(manifest, tmp_path / "run", model=model), Progress())
        assert found.plan.answer_by == "likelihood"
