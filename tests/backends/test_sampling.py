"""Answers drawn at a temperature: each request draws with random numbers of its own, the same ones every time."""

from dataclasses import replace

import pytest

from tests.backends.asking import ask, model_card
from tests.loopback import Loopback
from vibe_harness.backends.local.token_sampling import sampling_temperature
from vibe_harness.backends.remote.openai_server import OpenAIEngine
from vibe_harness.records import Generation


def test_requests_of_one_run_have_seeds_of_their_own() -> None:
    seeds = [ask(number).sampling_seed for number in range(1_000)]
    assert len(set(seeds)) == 1_000 and all(0 <= seed < 2**31 for seed in seeds)
    assert seeds == [ask(number).sampling_seed for number in range(1_000)]
    assert ask(0).sampling_seed != replace(ask(0), generation=Generation(64, seed=4)).sampling_seed


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_server_is_given_the_seed_of_the_request_where_answers_are_drawn(temperature: float) -> None:
    with Loopback() as server:
        engine = OpenAIEngine(model_card(server.url), [])
        sent = []
        for number in range(2):
            list(engine.generate([replace(ask(number), generation=Generation(8, temperature, seed=3))]))
            sent.append(server.seen()["last"]["seed"])
        engine.close()
    assert sent == ([ask(number).sampling_seed for number in range(2)] if temperature else [3, 3])


@pytest.mark.parametrize(
    ("of_card", "schema", "used"),
    [(None, None, 0.5), (1.0, None, 1.0), (0.0, None, 0.0), (1.0, {"type": "object"}, 0.5)],
)
def test_the_card_s_temperature_is_for_free_text(of_card: float | None, schema: dict | None, used: float) -> None:
    request = replace(ask(0), generation=Generation(8, 0.5), schema=schema)
    assert sampling_temperature(request, of_card) == used
