"""One observation an attribute; no outcome or reading turned into another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from vibe_harness.cards.loading import Task
from vibe_harness.extraction.observe import observations
from vibe_harness.records import Clip, Extraction, Outcome, Reading, Response

MakeTask = Callable[..., Task]
CLIP = Clip("demo/s1/a", "s1/a.wav", "s1", {"gender": "female"})


def read(story: Task, **raw: tuple[str, ...]) -> Extraction:
    readings = {name: Reading.VALUE if name in raw else Reading.NONE for name in story.card.extraction.attributes}
    return Extraction("r", readings, raw)


def test_values_are_canonical_each_once_and_raw_is_kept(story: Task) -> None:
    extraction = read(story, occupation=("Registered Nurses",), personality=("Kind", "kind-hearted", "witty"))
    found = observations(story, "default", CLIP, Response("r", Outcome.OK, "text"), extraction)
    assert [o.attribute for o in found] == list(story.card.extraction.attributes)
    by_name = {o.attribute: o for o in found}
    assert by_name["occupation"].raw == ("Registered Nurses",)
    assert by_name["occupation"].values == ("nurse",)
    assert by_name["personality"].values == ("kind", "witty")
    assert by_name["family_status"].reading is Reading.NONE
    assert {(o.request, o.task, o.variant, o.clip, o.speaker) for o in found} == {
        ("r", "story", "default", "demo/s1/a", "s1")
    }


def test_truncated_text_keeps_its_outcome_and_its_values(story: Task) -> None:
    found = observations(
        story, "default", CLIP, Response("r", Outcome.TRUNCATED, "text"), read(story, occupation=("chef",))
    )
    assert {o.outcome for o in found} == {Outcome.TRUNCATED}
    assert found[0].values == ("chef",)


@pytest.mark.parametrize("outcome", [Outcome.EMPTY, Outcome.REFUSED, Outcome.BLOCKED, Outcome.ERROR])
def test_a_response_without_an_answer_has_none_everywhere(story: Task, outcome: Outcome) -> None:
    found = observations(story, "default", CLIP, Response("r", outcome), None)
    assert [(o.outcome, o.reading, o.raw, o.values) for o in found] == [(outcome, Reading.NONE, (), ())] * 6


def test_a_refusal_that_the_extractor_found(story: Task) -> None:
    extraction = Extraction("r", dict.fromkeys(story.card.extraction.attributes, Reading.UNKNOWN), {}, refused=True)
    found = observations(story, "default", CLIP, Response("r", Outcome.OK, "I cannot."), extraction)
    assert {(o.outcome, o.reading) for o in found} == {(Outcome.REFUSED, Reading.NONE)}


def test_a_failed_extraction_is_an_error_and_so_is_one_still_to_be_made(story: Task) -> None:
    response = Response("r", Outcome.OK, "text")
    failed = Extraction("r", dict.fromkeys(story.card.extraction.attributes, Reading.ERROR), {}, error="timeout")
    for extraction in (failed, Extraction("r", {}, {}, error="timeout"), None):
        found = observations(story, "default", CLIP, response, extraction)
        assert {(o.outcome, o.reading) for o in found} == {(Outcome.OK, Reading.ERROR)}


def test_what_the_card_does_not_know_is_unparsed(story: Task) -> None:
    extraction = read(story, family_status=("divorced",), occupation=("...",))
    by_name = {
        o.attribute: o for o in observations(story, "default", CLIP, Response("r", Outcome.OK, "text"), extraction)
    }
    for name in ("family_status", "occupation"):
        assert (by_name[name].reading, by_name[name].raw, by_name[name].values) == (Reading.UNPARSED, (), ())


def test_a_list_with_one_value_off_the_card_is_unparsed_as_a_whole(make_task: MakeTask) -> None:
    task = make_task({"colour": {"values": ["red", "blue"], "up_to": 3}})
    for raw, reading in ((("red", "Blue"), Reading.VALUE), (("red", "green"), Reading.UNPARSED)):
        extraction = Extraction("r", {"colour": Reading.VALUE}, {"colour": raw})
        (one,) = observations(task, "default", CLIP, Response("r", Outcome.OK, "text"), extraction)
        assert one.reading is reading
        assert bool(one.values) == (reading is Reading.VALUE)


def test_another_response_s_extraction_is_never_taken(story: Task) -> None:
    with pytest.raises(ValueError, match="other"):
        observations(story, "default", CLIP, Response("other", Outcome.OK, "text"), read(story))
