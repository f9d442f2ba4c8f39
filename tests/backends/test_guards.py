"""One served model, budgets, rates, and the checks before a run, over the loopback server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator

import pytest

from tests.backends.asking import answers, ask, model_card, tone
from tests.loopback import Loopback
from vibe_harness.backends.guards import Budget, batch_differences, constrains, enforce_limits
from vibe_harness.backends.hearing_check import SILENCE, HearingClip, check_hearing
from vibe_harness.backends.remote.dispatcher import RateLimiter
from vibe_harness.backends.remote.openai_server import OpenAIEngine
from vibe_harness.cards.schema import HearingQuestion, Prices
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Request, Response

CLIPS = [HearingClip(name, lambda pitch=pitch: tone(pitch)) for name, pitch in (("a", 150), ("b", 300), ("c", 900))]


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


def test_of_a_model_that_thinks_its_tokens_away_nobody_knows_whether_it_hears() -> None:
    with Loopback(rates={"length_empty": 1.0}) as server:
        card = model_card(server.url)
        engine = OpenAIEngine(card, [])
        with pytest.raises(EngineError, match=r"wrote nothing in 64 tokens.* not known.*thinks.*--no-hearing-check"):
            check_hearing(engine, card, CLIPS)
        engine.close()


def test_a_failing_hearing_check_is_no_verdict() -> None:
    with Loopback(rates={"bad_json": 1.0}, times=-1) as server:
        card = model_card(server.url, max_retries=0)
        engine = OpenAIEngine(card, [])
        with pytest.raises(EngineError, match="hearing check of 'm' failed: the server's reply is not JSON"):
            check_hearing(engine, card, CLIPS)
        engine.close()


class Words:
    """A model that answers the hearing check with the given words, one after the other; the prompts it was given."""

    def __init__(self, *words: str) -> None:
        self.words, self.prompts = words, []

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for word, request in zip(self.words, requests, strict=True):
            self.prompts.append(request.prompt)
            yield Response(request.id, Outcome.OK, word)


QUESTION = HearingQuestion(prompt="Which word is said: kettle or door?", answers=["kettle", "door", "nothing"])


def test_a_model_that_cannot_write_down_words_has_a_question_of_its_own() -> None:
    card = model_card("http://nowhere").model_copy(update={"hearing_check": QUESTION})
    model = Words("Kettle.", "door", "kettle", "nothing")
    assert check_hearing(model, card, CLIPS).answers["a"] == "Kettle."
    assert model.prompts == [QUESTION.prompt] * 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("door",) * 4, "'m' does not hear: .*wrote the same"),
        (
            ("kettle", "a woman", "door", "nothing"),
            r"answered 'a woman' \(b\), which is none of: kettle, door, nothing",
        ),
        (("kettle", "", "door", "nothing"), r"answered '' \(b\), which is none of"),
    ],
)
def test_answers_that_the_question_on_the_card_does_not_allow(words: tuple[str, ...], message: str) -> None:
    card = model_card("http://nowhere").model_copy(update={"hearing_check": QUESTION})
    with pytest.raises(EngineError, match=message):
        check_hearing(Words(*words), card, CLIPS)


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
            got.extend(enforce_limits(engine, (ask(i) for i in range(100)), Budget()))
        engine.close()
        with pytest.raises(EngineError, match="changed from 'before' to 'loopback"):
            card = model_card(server.url).model_copy(update={"served_as": ["loopback-next"]})
            engine = OpenAIEngine(card, [])
            list(enforce_limits(engine, [ask(1)], Budget(), served="before"))
        engine.close()
    assert {response.served_model for response in got} <= {"loopback"}


def test_budgets_end_a_run_with_what_was_asked_answered() -> None:
    with Loopback() as server:
        engine = OpenAIEngine(model_card(server.url, concurrency=4), [])
        got: list[Response] = []
        with pytest.raises(
            EngineError, match=r"budget of 30 requests is used up \(--max-requests\).*goes on, with as much again"
        ):
            got.extend(enforce_limits(engine, (ask(i) for i in range(100)), Budget(max_requests=30)))
        assert len(got) == 30 and {r.outcome for r in got} == {Outcome.OK}
        # 20 prompt tokens a request at 1,000 a million: 0.02 each, and nothing for the answer
        budget = Budget(max_cost=0.5, prices=Prices(input=1000.0, output=0.0))
        got.clear()
        with pytest.raises(EngineError, match=r"budget of 0.5 is used up \(--max-cost\)"):
            got.extend(enforce_limits(engine, (ask(i) for i in range(100)), budget))
        assert 25 <= len(got) <= 25 + 6 and budget.spent.cost == pytest.approx(0.02 * len(got))
        engine.close()


@pytest.mark.parametrize(
    ("audio_tokens", "audio_price", "cost"),
    [
        (800, 1.0, 200 * 0.3 + 800 * 1.0 + 100 * 2.5),
        (800, None, 1000 * 0.3 + 100 * 2.5),
        (None, 1.0, 1000 * 1.0 + 100 * 2.5),  # not counted apart: the dearer price, never too little
        (None, None, 1000 * 0.3 + 100 * 2.5),
    ],
)
def test_what_a_response_costs(audio_tokens: int | None, audio_price: float | None, cost: float) -> None:
    budget = Budget(prices=Prices(input=0.3, output=2.5, audio=audio_price))
    budget.count(Response("r", Outcome.OK, "x", input_tokens=1000, audio_tokens=audio_tokens, output_tokens=100))
    assert budget.spent.cost == pytest.approx(cost / 1e6)


@pytest.mark.parametrize(
    ("message", "outcome"),
    [({"content": "Chess."}, Outcome.OK), ({"content": ""}, Outcome.EMPTY), ({"refusal": "No."}, Outcome.REFUSED)],
)
def test_a_budget_that_cannot_be_kept_ends_the_run(message: dict[str, str], outcome: Outcome) -> None:
    silent = {"choices": [{"message": message, "finish_reason": "stop"}]}
    budget = Budget(max_cost=9.0, prices=Prices(input=1.0, output=1.0))
    with Loopback(body=json.dumps(silent)) as server:
        engine = OpenAIEngine(model_card(server.url, concurrency=4), [])
        got: list[Response] = []
        with pytest.raises(EngineError, match="--max-cost cannot be applied: the server does not report"):
            got.extend(enforce_limits(engine, (ask(i) for i in range(100)), budget))
        engine.close()
        assert 1 <= len(got) <= 6 and {r.outcome for r in got} == {outcome}
        with pytest.raises(EngineError, match="tokens_per_minute cannot be kept"):
            answers(server.url, [ask(1)], tokens_per_minute=1000.0)
        assert len(answers(server.url, [ask(1)], requests_per_minute=1000.0)) == 1


def test_more_tokens_of_sound_than_of_prompt_are_not_believed() -> None:
    budget = Budget(prices=Prices(input=2.0, output=0.0, audio=1.0))
    budget.count(Response("r", Outcome.OK, "x", input_tokens=100, audio_tokens=1000, output_tokens=0))
    assert budget.spent.cost == pytest.approx(200 / 1e6)


def test_rates_are_kept() -> None:
    with Loopback() as server:
        start = time.monotonic()
        answers(server.url, [ask(i) for i in range(11)], requests_per_minute=1200.0)  # one each 0.05 s
        assert time.monotonic() - start >= 0.5
    pace = RateLimiter(6000.0)
    pace.use(10.0, 300)
    assert pace.wait(10.0) == pytest.approx(3.0) and pace.wait(14.0) == 0
    pace.use(14.0, 100)
    assert pace.wait(14.0) == pytest.approx(1.0)
    assert RateLimiter(None).wait(0.0) == 0


def test_batch_differences() -> None:
    with Loopback() as server:
        engine = OpenAIEngine(model_card(server.url), [])
        asked = [ask(0), ask(1), ask(2)]
        texts = {response.request: response.text for response in engine.generate(asked)}
        assert batch_differences(engine, asked, texts) == []
        assert batch_differences(engine, asked, {**texts, "r1": "another"}) == [("r1", "another", texts["r1"])]
        engine.close()
