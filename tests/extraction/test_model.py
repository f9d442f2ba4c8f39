"""A model as extractor: one request a response, constrained, taken as the engine has room, every outcome typed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pytest

from vibe_harness.backends.guards import Budget, Spent
from vibe_harness.backends.protocol import BACKENDS, Options
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard, Prices
from vibe_harness.errors import EngineError
from vibe_harness.extraction.answer_schema import answer_schema
from vibe_harness.extraction.model import ModelExtractor
from vibe_harness.records import Outcome, Reading, Request, Response

NOTHING = {"refused": False, "occupation": None, "economic_situation": None, "education_level": None,
           "field_of_study": None, "family_status": None, "personality": []}  # fmt: skip


@BACKENDS.register("scripted-extractor")
class Scripted:
    """Answers in pairs, the later one first, with what a test set."""

    class Arguments(Options):
        answer: str = json.dumps({**NOTHING, "occupation": "Nurses"})
        repaired: str = ""  # the answer to the second request for the same response, where it is another
        structured_output: str = "none"
        mischief: str = ""

    class Connection(Options):
        pass

    opened: Scripted

    def __init__(self, card: ModelCard, tasks: Sequence[Task]) -> None:
        self.arguments = self.Arguments.model_validate(card.args)
        self.requests: list[Request] = []
        self.closed = False
        self.outcome = Outcome.OK
        Scripted.opened = self

    def describe(self) -> Mapping[str, str]:
        return {"backend": "scripted", "structured_output": self.arguments.structured_output}

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        source = iter(requests)
        while pair := list(itertools.islice(source, 2)):
            self.requests += pair
            if self.arguments.mischief == "drop":
                pair.pop()
            for request in reversed(pair):
                error = "HTTP 500" if self.outcome is Outcome.ERROR else None
                second = "You have answered this before" in request.prompt
                text = self.arguments.repaired if second and self.arguments.repaired else self.arguments.answer
                yield Response(request.id, self.outcome, text, error=error)
                if self.arguments.mischief == "twice":
                    yield Response(request.id, self.outcome, self.arguments.answer)

    def close(self) -> None:
        self.closed = True


def card(**args: str) -> ModelCard:
    return ModelCard(model="m", backend="scripted-extractor", id="org/m", revision="abc", audio=False, args=args)


def responses(story: Task, *texts: str) -> Iterator[tuple[Task, Response]]:
    for number, text in enumerate(texts):
        yield story, Response(f"r{number}", Outcome.OK, text)


def test_every_response_is_read_once_and_keeps_its_own_id(story: Task) -> None:
    extractor = ModelExtractor(card(), [story])
    found = list(extractor.extract(responses(story, "one", "one", "two")))
    assert sorted(one.request for one in found) == ["r0", "r1", "r2"]
    assert {one.raw["occupation"] for one in found} == {("Nurses",)}
    extractor.close()
    assert Scripted.opened.closed


def test_what_is_asked(story: Task) -> None:
    list(ModelExtractor(card(), [story]).extract(responses(story, "She is a nurse.", "She is a nurse.")))
    first, second = Scripted.opened.requests
    assert first.id != second.id  # equal texts of two responses are two requests
    assert first.prompt == story.extraction_prompt("She is a nurse.")
    assert first.schema == answer_schema(story.card.extraction.attributes)
    assert first.audio is None
    assert (first.generation.temperature, first.generation.max_tokens) == (0.0, story.card.extraction.max_tokens)


def test_an_id_follows_model_prompt_and_response_and_nothing_else(story: Task) -> None:
    def asked(made: ModelCard, text: str, request: str) -> str:
        list(ModelExtractor(made, [story]).extract([(story, Response(request, Outcome.OK, text))]))
        return Scripted.opened.requests[0].id

    one = asked(card(), "text", "r")
    assert one == asked(card(), "text", "r")
    assert (
        len({one, asked(card(), "other", "r"), asked(card(), "text", "s"), asked(card(answer="{}"), "text", "r")}) == 4
    )


def test_responses_are_taken_as_the_engine_has_room(story: Task) -> None:
    taken = 0

    def endless() -> Iterator[tuple[Task, Response]]:
        nonlocal taken
        while True:
            taken += 1
            yield story, Response(f"r{taken}", Outcome.OK, "text")

    reading = ModelExtractor(card(), [story]).extract(endless())
    for _ in range(10):
        next(reading)
    assert taken == 10


@pytest.mark.parametrize("outcome", [Outcome.TRUNCATED, Outcome.EMPTY, Outcome.REFUSED, Outcome.BLOCKED])
def test_an_answer_that_did_not_end_well_is_unparsed_whatever_it_holds(story: Task, outcome: Outcome) -> None:
    extractor = ModelExtractor(card(), [story])
    Scripted.opened.outcome = outcome  # of the repaired answer too
    (one,) = extractor.extract(responses(story, "text"))
    assert set(one.readings.values()) == {Reading.UNPARSED}
    assert one.raw == {} and not one.refused and one.error


def test_a_failed_call_is_an_error_to_be_asked_again(story: Task) -> None:
    extractor = ModelExtractor(card(), [story])
    Scripted.opened.outcome = Outcome.ERROR
    (one,) = extractor.extract(responses(story, "text"))
    assert one.readings == dict.fromkeys(story.card.extraction.attributes, Reading.ERROR)
    assert (one.raw, one.error) == ({}, "HTTP 500")


def test_an_engine_that_forgets_or_repeats_a_request_stops_the_run(story: Task) -> None:
    with pytest.raises(EngineError, match="without an answer"):
        list(ModelExtractor(card(mischief="drop"), [story]).extract(responses(story, "a", "b")))
    with pytest.raises(EngineError, match="unknown request"):
        list(ModelExtractor(card(mischief="twice"), [story]).extract(responses(story, "a", "b")))


def test_identity_holds_what_can_change_a_reading(story: Task) -> None:
    one = ModelExtractor.identity(card())
    assert one == ModelExtractor.identity(card())
    assert one != ModelExtractor.identity(card(answer="{}"))
    assert json.dumps(one)
    described = ModelExtractor(card(), [story]).describe()
    assert described.items() >= {"name": "m", "id": "org/m", "revision": "abc", "backend": "scripted"}.items()


GOOD = json.dumps({**NOTHING, "occupation": "baker"})


@pytest.mark.parametrize("bad", ["no JSON at all <|im_end|>", '{"refused": false}', GOOD[:-1]])
def test_an_answer_that_cannot_be_read_is_asked_for_once_more(story: Task, bad: str) -> None:
    extractor = ModelExtractor(card(answer=bad, repaired=GOOD), [story])
    found = list(extractor.extract(responses(story, "a", "b", "c", "d", "e")))
    assert sorted(one.request for one in found) == ["r0", "r1", "r2", "r3", "r4"]
    assert {one.raw["occupation"] for one in found} == {("baker",)}
    asked = Scripted.opened.requests
    assert len(asked) == 10 == len({request.id for request in asked})
    firsts = {story.extraction_prompt(text) for text in "abcde"}
    for again in (request.prompt for request in asked if request.prompt not in firsts):
        assert any(again.startswith(first) for first in firsts)
        assert bad.replace("<|", "< |") in again and '"additionalProperties": false' in again


def test_what_cannot_be_read_twice_is_unparsed(story: Task) -> None:
    partly = json.dumps({**NOTHING, "occupation": "baker", "family_status": "dancing"})
    extractor = ModelExtractor(card(answer=partly, repaired="still no JSON"), [story])
    (one,) = extractor.extract(responses(story, "a"))
    assert len(Scripted.opened.requests) == 2
    assert (one.raw, one.text) == ({"occupation": ("baker",)}, partly)  # what could be read at first stands
    assert one.readings["family_status"] is Reading.UNPARSED


def test_a_constrained_model_is_not_asked_twice(story: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vibe_harness.extraction.model.constrains", lambda backend: True)
    extractor = ModelExtractor(card(answer="cut off", structured_output="json_schema"), [story])
    (one,) = extractor.extract(responses(story, "a"))
    assert len(Scripted.opened.requests) == 1 and set(one.readings.values()) == {Reading.UNPARSED}


def test_a_schema_that_does_nothing_stops_the_extraction_before_it_starts(story: Task) -> None:
    with pytest.raises(EngineError, match=r"'m' does not follow the JSON Schema .*structured_output: none"):
        ModelExtractor(card(structured_output="json_schema"), [story])
    assert Scripted.opened.closed


def test_an_extractor_spends_from_the_runs_budget(story: Task) -> None:
    priced = card().model_copy(update={"prices": Prices(input=1.0, output=1.0)})
    budget = Budget(max_requests=3, requests=3, max_cost=0.5, spent=Spent(0.5))
    with pytest.raises(EngineError, match=r"budget of 0.5 is used up \(--max-cost\)"):
        list(ModelExtractor(priced, [story], budget=budget).extract(responses(story, "a")))
    budget = Budget(max_requests=3, requests=3, max_cost=0.5)  # the limit of requests is the audio model's
    assert len(list(ModelExtractor(priced, [story], budget=budget).extract(responses(story, "a")))) == 1


def test_what_an_extractor_thinks_is_no_part_of_its_answer(story: Task) -> None:
    thinks = '<think>{"occupation": "judge"}</think>\n' + json.dumps({**NOTHING, "occupation": "Nurses"})
    [read] = ModelExtractor(card(answer=thinks), [story]).extract(responses(story, "text"))
    assert read.readings["occupation"] is Reading.VALUE and read.raw["occupation"] == ("Nurses",)
