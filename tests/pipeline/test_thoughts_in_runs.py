"""Answers that carry a thought are read without it, from the run to its results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from vibe_harness import evaluate
from vibe_harness.backends.simulated.engine import SimulatedEngine
from vibe_harness.cards.loading import CardIndex
from vibe_harness.extraction.observe import observations
from vibe_harness.records import Clip, Outcome, Reading, Request, RequestKey, Response
from vibe_harness.store.responses import StoredResponse, read_responses
from vibe_harness.store.results import Results
from vibe_harness.store.run_folder import RunFolder

DRAFT = "<think>\nOccupation: judge\nEducation level: none\nI choose A. **B**\n</think>\n"
KEY = RequestKey("story", "default", "c")


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, before: str = "", keep: bool = True) -> Results:
    answers = SimulatedEngine.generate

    def thinking(self: SimulatedEngine, requests: Iterable[Request]) -> Iterator[Response]:
        for response in answers(self, requests):
            yield replace(response, text=before + (response.text if keep else ""))

    with monkeypatch.context() as patch:
        patch.setattr(SimulatedEngine, "generate", thinking)
        [results] = evaluate(
            "simulated",
            ["advisory"],
            "demo",
            permutations=20,
            tau=1,
            limit=8,
            dimensions=["gender"],
            output_path=folder,
        )
    return results


def test_a_draft_is_not_read_and_every_thought_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run(tmp_path / "plain", monkeypatch)
    thought = run(tmp_path / "thought", monkeypatch, DRAFT)
    for one, other in zip(plain.tasks, thought.tasks, strict=True):
        assert one.scores == other.scores
        for name, group in one.groups.items():
            assert group.thoughts == 0 and other.groups[name].thoughts == group.requests > 0
            assert other.groups[name].readings == group.readings and other.groups[name].outcomes == group.outcomes
    kept = list(read_responses(RunFolder(tmp_path / "thought").responses))
    assert len(kept) == 8 and all(stored.text.startswith(DRAFT) for stored in kept)


def test_nothing_but_a_thought_is_an_empty_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = run(tmp_path / "run", monkeypatch, DRAFT.replace("</think>", ""), keep=False)
    for task in results.tasks:
        assert task.without_value == 1 and not task.reliable
        for group in task.groups.values():
            assert group.outcomes["empty"] == group.requests == group.thoughts
            assert all(readings["none"] == group.requests for readings in group.readings.values())


@pytest.mark.parametrize(
    ("text", "outcome", "said", "ends", "readable"),
    [
        ("nurse", Outcome.OK, "nurse", Outcome.OK, True),
        ("<think>judge</think> nurse", Outcome.OK, "nurse", Outcome.OK, True),
        ("<think>judge", Outcome.OK, "", Outcome.EMPTY, False),
        ("<think>judge</think>\n", Outcome.OK, "", Outcome.EMPTY, False),
        ("<think>judge", Outcome.TRUNCATED, "", Outcome.TRUNCATED, False),
        ("<think>judge</think> nur", Outcome.TRUNCATED, "nur", Outcome.TRUNCATED, True),
    ],
)
def test_what_is_left_of_a_response(text: str, outcome: Outcome, said: str, ends: Outcome, readable: bool) -> None:
    stored = StoredResponse.of(KEY, Response("r", outcome, text), 1.0)
    response = stored.response()
    assert (response.text, response.outcome, stored.readable, stored.text) == (said, ends, readable, text)
    assert bool(response.thought) == ("<think>" in text)


def test_a_truncated_thought_is_no_reading_that_is_still_to_be_made() -> None:
    [task] = CardIndex().tasks(["story"])
    stored = StoredResponse.of(KEY, Response("r", Outcome.TRUNCATED, "<think>Occupation: judge"), 1.0)
    found = observations(task, "default", Clip("c", "c.wav", "s", {}), stored.response(), None)
    assert {(one.outcome, one.reading, one.thought, one.answer) for one in found} == {
        (Outcome.TRUNCATED, Reading.NONE, True, None)
    }
