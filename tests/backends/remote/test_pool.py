"""Several servers share the work by how fast they answer; one that dies costs its requests a retry and nothing else."""

from itertools import count
from urllib.parse import urlsplit

import pytest

from tests.backends.asking import answers, ask, model_card
from tests.loopback import Loopback
from vibe_harness.backends.protocol import check_options
from vibe_harness.backends.remote.openai_server import OpenAIEngine
from vibe_harness.backends.remote.pool import ILL_AFTER
from vibe_harness.cli.options import parse_model_args
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Outcome


def texts(responses):
    assert {response.outcome for response in responses} == {Outcome.OK}
    return {response.request: response.text for response in responses}


def test_the_faster_server_is_given_more_and_the_answers_are_those_of_one():
    """One answers nothing until the other has answered all but what the first was given to begin with."""
    requests = [ask(number) for number in range(150)]
    with Loopback(hold_after=0) as slow, Loopback() as fast:
        engine = OpenAIEngine(model_card([slow.url, fast.url], concurrency=4), [])
        responses = []
        for response in engine.generate(requests):
            responses.append(response)
            if len(responses) == 146:
                slow.go_on()
        engine.close()
        shared = texts(responses)
        by_fast, by_slow = (len(server.seen()["asked"]) for server in (fast, slow))
        alone = texts(answers(fast.url, requests))
    assert shared == alone and len(shared) == 150
    assert by_fast + by_slow == 150 and 1 <= by_slow <= 4


def test_one_killed_in_the_middle_costs_a_retry_and_nothing_else():
    requests = [ask(number) for number in range(200)]
    with Loopback(hold_after=0) as kept, Loopback(hold_after=40) as dies:
        engine = OpenAIEngine(model_card([kept.url, dies.url], concurrency=4), [])
        responses = []
        for response in engine.generate(requests):
            responses.append(response)
            if len(responses) == 40:
                kept.wait_until_held(4)
                dies.wait_until_held(4)
                dies.stop()
                kept.go_on()
        engine.close()
        shared = texts(responses)
        asked = kept.seen()["asked"]
        assert len(asked) == sum(asked.values()) == 160  # the four that died with the other among them
        assert shared == texts(answers(kept.url, requests))
    assert len(shared) == 200


def test_one_that_is_gone_from_the_start_is_left_out():
    with Loopback() as kept, Loopback() as gone:
        gone.stop()
        assert len(texts(answers([gone.url, kept.url], [ask(number) for number in range(40)], concurrency=2))) == 40


@pytest.mark.parametrize("fault", ["broken", "unavailable", "not_json"])
def test_one_that_fails_every_call_at_once_costs_no_answer(monkeypatch, fault):
    monkeypatch.setattr("vibe_harness.backends.remote.dispatcher.FIRST_WAIT_S", 0.02)
    monkeypatch.setattr(
        "vibe_harness.backends.remote.pool.FIRST_PAUSE_S", 3600.0
    )  # once left out, it stays so in this test
    with Loopback() as kept, Loopback(rates={fault: 1.0}, times=-1, retry_after="0") as ill:
        answered = answers([ill.url, kept.url], [ask(number) for number in range(60)], concurrency=4)
        asked = sum(ill.seen()["asked"].values())
    assert ILL_AFTER <= asked < ILL_AFTER + 8  # eight at one time: those under way when it failed for the last time
    assert {response.outcome for response in answered} == {Outcome.OK}


def test_one_that_is_ill_from_the_start_is_left_out():
    with Loopback() as kept, Loopback(listing=502) as ill:
        assert len(texts(answers([ill.url, kept.url], [ask(number) for number in range(40)], concurrency=2))) == 40
        with pytest.raises(EngineError, match="no server answers at"), Loopback(listing=502) as other:
            answers([ill.url, other.url], [ask(1)])


def test_where_none_answers_it_is_said_with_all_addresses():
    with pytest.raises(EngineError, match=r"no server answers at http://127.0.0.1:9/v1, http://127.0.0.1:11/v1"):
        OpenAIEngine(model_card(["http://127.0.0.1:9/v1", "http://127.0.0.1:11/v1"]), [])


@pytest.mark.slow
def test_servers_of_different_models_or_versions_are_refused():
    with Loopback(models=["loopback"]) as one, Loopback(models=["loopback", "more"]) as other:
        OpenAIEngine(model_card([one.url, other.url]), []).close()
    with (
        Loopback() as one,
        Loopback(models=["elsewhere"]) as other,
        pytest.raises(EngineError, match="has no model 'loopback'"),
    ):
        OpenAIEngine(model_card([one.url, other.url]), [])
    with (
        Loopback(model_length=4096) as one,
        Loopback(model_length=8192) as other,
        pytest.raises(EngineError, match=r"serves loopback, 8192, and .* loopback, 4096: .* never put together"),
    ):
        OpenAIEngine(model_card([one.url, other.url]), [])


def test_servers_of_two_versions_of_vllm_are_refused():
    with Loopback(vllm="0.31.0") as one, Loopback(vllm="0.32.0") as other:
        with pytest.raises(EngineError, match=r"serves loopback, vllm 0\.32\.0, and .* loopback, vllm 0\.31\.0"):
            OpenAIEngine(model_card([one.url, other.url]), [])
        OpenAIEngine(model_card(one.url), []).close()


def test_a_server_that_comes_back_with_another_model_stops_the_run(monkeypatch):
    monkeypatch.setattr("vibe_harness.backends.remote.pool.FIRST_PAUSE_S", 0.1)
    with Loopback(latency_s=0.01) as kept, Loopback(hold_after=4) as dies:
        engine = OpenAIEngine(model_card([kept.url, dies.url], concurrency=2), [])
        stream = engine.generate(ask(number) for number in count())
        got = [next(stream)]
        while not dies.seen()["held"]:
            got.append(next(stream))
        dies.stop()
        with (
            Loopback(models=["elsewhere"], port=urlsplit(dies.url).port),
            pytest.raises(EngineError, match="has no model 'loopback'"),
        ):
            got += stream
        engine.close()
    assert len({response.request for response in got}) == len(got)  # what was answered is kept


@pytest.mark.parametrize(
    ("urls", "said"),
    [
        (["http://a/v1", "localhost:8000"], "write it as"),
        (["http://a/v1", "http://user:secret@b/v1"], "no user, password"),
        (["http://a/v1", "http://a/v1/"], "each address once"),
        ([], "each address once"),
    ],
)
def test_addresses_that_will_not_do(urls, said):
    with pytest.raises(UserError, match=said) as caught:
        check_options(model_card(urls))
    assert "secret" not in str(caught.value)


def test_a_list_is_typed_as_people_would():
    found = parse_model_args(None, None, ("base_url=[http://a:8000/v1, http://b:8000/v1],concurrency=4",))
    assert found == {"base_url": ["http://a:8000/v1", "http://b:8000/v1"], "concurrency": 4}
