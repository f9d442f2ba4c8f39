"""One served model, budgets, rates, and the checks before a run, over the loopback server."""

from __future__ import annotations

import time

import pytest

from tests.backends.test_openai_server import answers, ask, model_card, tone
from tests.loopback import Loopback
from vibe_harness.backends.dispatch import Pace
from vibe_harness.backends.guards import Budget, batch_differences, constrains, watched
from vibe_harness.backends.hearing_check import SILENCE, check_hearing
from vibe_harness.backends.openai_server import OpenAIEngine
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Response

CLIPS = [(name, lambda pitch=pitch: tone(pitch)) for name, pitch in (("a", 150), ("b", 300), ("c", 900))]


def test_a_model_that_hears() -> None:
    with Loopback() as server:
        card = model_card(server.url)
        engine = OpenAIEngine(card, [])
        heard = check_hearing(engine, card, CLIPS)
        engine.close()
        sent = server.seen()["heard"].values()
    assert set(heard.answers) == {"a", "b", "c", SILENCE} and len(set(heard.answers.values())) == 4
    assert sorted(clip["rms"] > 0 for clip in sent) == [False, True, True, True]


def test_a_model_that_does_not_hear() -> None:
    with Loopback(drop_audio=True) as server:
        card = model_card(server.url)
        engine = OpenAIEngine(card, [])
        with pytest.raises(
            EngineError, match=r"does not hear: .*I heard nothing.* for 3 clips and for silence.*--no-h"
        ):
            check_hearing(engine, card, CLIPS)
        engine.close()


def test_a_failing_hearing_check_is_no_verdict() -> None:
    with Loopback(rates={"bad_json": 1.0}) as server:
        card = model_card(server.url)
        engine = OpenAIEngine(card, [])
        with pytest.raises(EngineError, match="hearing check of 'm' failed: the server's reply is not JSON"):
            check_hearing(engine, card, CLIPS)
        engine.close()


@pytest.mark.parametrize("ignored", [False, True])
def test_whether_structured_output_acts(ignored: bool) -> None:
    with Loopback(ignore_schema=ignored) as server:
        engine = OpenAIEngine(model_card(server.url), [])
        assert constrains(engine) is not ignored
        engine.close()


def test_another_served_model_stops_the_run() -> None:
    with Loopback(other_model_after=20) as server:
        engine = OpenAIEngine(model_card(server.url, concurrency=4), [])
        got: list[Response] = []
        with pytest.raises(EngineError, match="model changed from 'loopback' to 'loopback-next' in mid-run"):
            got.extend(watched(engine, (ask(i) for i in range(100))))
        engine.close()
        with pytest.raises(EngineError, match="changed from 'before' to 'loopback"):
            engine = OpenAIEngine(model_card(server.url), [])
            list(watched(engine, [ask(1)], served="before"))
        engine.close()
    assert {response.served_model for response in got} <= {"loopback"}


def test_budgets_end_a_run_with_what_was_asked_answered() -> None:
    with Loopback() as server:
        engine = OpenAIEngine(model_card(server.url, concurrency=4), [])
        got: list[Response] = []
        with pytest.raises(EngineError, match=r"budget of 30 requests is used up \(--max-requests\)"):
            for response in watched(engine, (ask(i) for i in range(100)), budget=Budget(max_requests=30)):
                got.append(response)
        assert len(got) == 30 and {r.outcome for r in got} == {Outcome.OK}
        # 20 prompt tokens a request at 1,000 a million: 0.02 each, and nothing for the answer
        budget = Budget(max_cost=0.5, input_price=1000.0)
        got.clear()
        with pytest.raises(EngineError, match=r"budget of 0.5 is used up"):
            for response in watched(engine, (ask(i) for i in range(100)), budget=budget):
                got.append(response)
        assert 25 <= len(got) <= 25 + 6 and budget.cost == pytest.approx(0.02 * len(got))
        engine.close()


def test_rates_are_kept() -> None:
    with Loopback() as server:
        start = time.monotonic()
        answers(server.url, [ask(i) for i in range(11)], requests_per_minute=1200.0)  # one each 0.05 s
        assert 0.5 <= time.monotonic() - start < 3
    pace = Pace(6000.0)
    pace.use(10.0, 300)
    assert pace.wait(10.0) == pytest.approx(3.0) and pace.wait(14.0) == 0
    pace.use(14.0, 100)
    assert pace.wait(14.0) == pytest.approx(1.0)
    assert Pace(None).wait(0.0) == 0


def test_batch_differences() -> None:
    class Batchy:
        """Adds the size of the batch to its answer."""

        def describe(self) -> dict[str, str]:
            return {}

        def generate(self, requests: object) -> list[Response]:
            asked = list(requests)  # type: ignore[call-overload]
            size = len(asked) if any(request.id == "r1" for request in asked) else 0
            return [Response(r.id, Outcome.OK, f"{size if r.id == 'r1' else 'same'}") for r in asked]

        def close(self) -> None: ...

    assert batch_differences(Batchy(), [ask(0), ask(1), ask(2)]) == [("r1", "3", "1")]  # type: ignore[arg-type]
