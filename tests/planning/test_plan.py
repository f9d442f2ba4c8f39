"""The key of a response holds everything that can change an answer, and nothing that cannot."""

from dataclasses import replace
from pathlib import Path

import pytest

from vibe_harness.cards.loading import CardIndex
from vibe_harness.planning.plan import Plan
from vibe_harness.records import CheckedClip, Clip, RequestKey

CLIP = CheckedClip(Clip("c/s1/a", "s1/a.wav", "s1", {"gender": "female"}), Path("s1/a.wav"), "00ff", 1.0)


def plan_of(**changes):
    index = CardIndex()
    given = {
        "model": index.model("server"), "tasks": index.tasks(["advisory"]), "variants": {"advisory": ("default",)},
        "clips": [CLIP], "seed": 0,
    }  # fmt: skip
    return Plan(**{**given, **changes})


def only_id(plan):
    [request] = plan.requests()
    return request.id


def model(**changes):
    return CardIndex().model("server").model_copy(update=changes)


def task(**changes):
    [found] = CardIndex().tasks(["advisory"])
    return [replace(found, card=found.card.model_copy(update=changes))]


def sampling(**changes):
    [found] = CardIndex().tasks(["advisory"])
    return found.card.generation.model_copy(update=changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": model(id="another")},
        {"model": model(revision="v2")},
        {"model": model(args={"top_p": 0.5})},
        {"model": model(sample_rate=8_000)},
        {"model": model(layout=model().layout.model_copy(update={"system": "Be brief."}))},
        {"tasks": task(generation=sampling(max_tokens=99))},
        {"tasks": task(generation=sampling(temperature=0.5))},
        {"variants": {"advisory": ("friend",)}},
        {"clips": [replace(CLIP, waveform="00fe")]},
        {"clips": [replace(CLIP, clip=replace(CLIP.clip, id="c/s2/a"))]},  # one file name, another speaker
        {"seed": 1},
    ],
)
def test_what_can_change_an_answer_changes_its_key(changes):
    assert only_id(plan_of(**changes)) != only_id(plan_of())


@pytest.mark.parametrize(
    "changes",
    [
        {"model": model(notes="more words", connection={"base_url": "http://elsewhere:1/v1"})},
        {"tasks": task(description="more words")},
        {"clips": [replace(CLIP, path=Path("/moved/a.wav"), clip=replace(CLIP.clip, groups={"accent": "hindi"}))]},
    ],
)
def test_what_cannot_change_an_answer_does_not(changes):
    assert only_id(plan_of(**changes)) == only_id(plan_of())


def test_another_prompt_changes_the_key_and_requests_come_clip_by_clip():
    clips = [CLIP, replace(CLIP, clip=replace(CLIP.clip, id="c/s2/b"), waveform="0a")]
    plan = plan_of(clips=clips, variants={"advisory": ("default", "friend")})
    requests = list(plan.requests())
    assert len(requests) == len(plan) == len({request.id for request in requests}) == 4
    asked = [request.clip for request in requests]
    assert asked[0] == asked[1] and asked[2] == asked[3] and set(asked) == {"c/s1/a", "c/s2/b"}
    assert plan.table().get(requests[1].id) == RequestKey("advisory", "friend", asked[1])


def test_the_order_of_the_clips_is_drawn_by_the_seed_whatever_their_order_in_the_corpus():
    """In the corpus's own order one group comes after another, and a model that changes meanwhile seems to shift."""
    clips = [
        replace(CLIP, clip=replace(CLIP.clip, id=f"c/{group}{n}/a", speaker=f"{group}{n}"), waveform=f"{group}{n}")
        for group in "fm" for n in range(50)
    ]  # fmt: skip
    asked = [request.clip for request in plan_of(clips=clips).requests()]
    assert asked == [request.clip for request in plan_of(clips=clips[::-1]).requests()]
    assert asked != [request.clip for request in plan_of(clips=clips, seed=1).requests()]
    assert sorted(asked) == sorted(checked.clip.id for checked in clips)
    first_half = asked[: len(asked) // 2]
    assert 15 <= sum(id.startswith("c/f") for id in first_half) <= 35
