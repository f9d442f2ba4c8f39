"""Drawing fewer clips, evenly."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vibe_harness.corpora.group_names import check_group_names
from vibe_harness.corpora.sampling import draw_clips, groups_of
from vibe_harness.errors import UserError
from vibe_harness.records import Clip


def _clips(per_speaker: Sequence[tuple[str, str, int]]) -> list[Clip]:
    return [
        Clip(f"c/{speaker}/{i}", f"{speaker}/{i}.wav", speaker, {"gender": gender} if gender else {})
        for speaker, gender, count in per_speaker
        for i in range(count)
    ]


SKEWED = _clips([("f1", "female", 40), ("f2", "female", 2), ("m1", "male", 5), ("m2", "male", 5), ("m3", "male", 90)])


def test_groups_and_speakers_get_even_shares() -> None:
    drawn = draw_clips(SKEWED, 12, ["gender"], seed=3)
    assert Counter(clip.groups["gender"] for clip in drawn) == {"female": 6, "male": 6}
    assert Counter(clip.speaker for clip in drawn) == {"f1": 4, "f2": 2, "m1": 2, "m2": 2, "m3": 2}


def test_order_of_the_manifest_is_kept_and_a_seed_repeats() -> None:
    drawn = draw_clips(SKEWED, 20, ["gender"], seed=1)
    places = [SKEWED.index(clip) for clip in drawn]
    assert places == sorted(places)
    assert drawn == draw_clips(SKEWED, 20, ["gender"], seed=1)
    assert drawn != draw_clips(SKEWED, 20, ["gender"], seed=2)


def test_a_draw_does_not_hang_on_the_order_of_the_manifest() -> None:
    assert draw_clips(SKEWED[::-1], 20, ["gender"], seed=1) == draw_clips(SKEWED, 20, ["gender"], seed=1)[::-1]


def test_a_group_that_runs_out_leaves_its_share_to_others() -> None:
    few = _clips([("f1", "female", 1), ("m1", "male", 30)])
    assert Counter(clip.speaker for clip in draw_clips(few, 10, ["gender"], 0)) == {"f1": 1, "m1": 9}


def test_without_dimensions_speakers_are_drawn_evenly() -> None:
    assert set(Counter(clip.speaker for clip in draw_clips(SKEWED, 10, [], 0)).values()) == {2}


@settings(deadline=None)
@given(
    per_speaker=st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(["female", "male", ""]), st.integers(1, 6)),
        min_size=1,
        max_size=6,
        unique_by=lambda s: s[0],
    ).filter(lambda speakers: any(gender for _, gender, _ in speakers)),
    limit=st.integers(1, 40),
    seed=st.integers(0, 9),
)
def test_always_exactly_as_many_as_asked_and_nested(
    per_speaker: list[tuple[str, str, int]], limit: int, seed: int
) -> None:
    clips = _clips(per_speaker)
    drawn = draw_clips(clips, limit, ["gender"], seed)
    assert len(drawn) == min(limit, len(clips)) == len({clip.id for clip in drawn})
    more = {clip.id for clip in draw_clips(clips, limit + 1, ["gender"], seed)}
    assert {clip.id for clip in drawn} <= more


def test_which_speakers_and_clips_are_drawn_follows_the_seed() -> None:
    many = _clips([(f"f{i}", "female", 4) for i in range(9)] + [(f"m{i}", "male", 4) for i in range(9)])
    drawn = [clip for seed in range(30) for clip in draw_clips(many, 2, ["gender"], seed)]
    assert len({clip.speaker for clip in drawn}) > 12 and len({clip.file[-5] for clip in drawn}) == 4


def test_refusals() -> None:
    with pytest.raises(UserError, match="1 or more"):
        draw_clips(SKEWED, 0, [], 0)
    with pytest.raises(UserError, match=r"'gendre'.*'gender'"):
        draw_clips(SKEWED, 3, ["gendre"], 0)


def test_groups_spelled_two_ways_are_refused() -> None:
    for one, other in [("Female", "female"), ("café", "cafe\u0301"), ("north  east", "north east")]:
        with pytest.raises(UserError, match="spelling only"):
            groups_of(_clips([("a", one, 1), ("b", other, 1)]), "gender")
    assert list(groups_of(SKEWED, "gender")) == ["female", "male"]


@pytest.mark.parametrize(
    "word",
    [
        *["nan", "NaN", "<NA>", "NULL", "N/A", "#N/A", "NA", "none", "None", "True", "FALSE", "unknown", "not  stated"],
        *["-", "?", "...", "#REF!", "\u2014", "\uff1f"],
    ],
)
def test_a_name_for_not_known_is_a_group_only_where_the_card_says_so(word: str) -> None:
    with pytest.raises(UserError, match=r"'gender' has .*groups: \{gender: \["):
        check_group_names("gender", [("female",), (word,)], {})
    with pytest.raises(UserError, match=r"groups: \{accent"):
        check_group_names("gender:accent", [("female", "us"), ("male", word)], {"gender": [word]})
    check_group_names("gender", [("female",), (word,)], {"gender": [word]})


@pytest.mark.parametrize("word", ["other", "no", "yes", "x", "under 30", "north-east", "\u5973", "1", "Nana", "native"])
def test_a_name_that_says_something_is_a_group(word: str) -> None:
    check_group_names("gender", [("female",), (word,)], {})


def test_a_number_is_one_group_however_it_is_written() -> None:
    for other in ("1.0", "01", "\uff11", "\u0661"):
        with pytest.raises(UserError, match="spelling only"):
            groups_of(_clips([("f1", "1", 1), ("m1", other, 1)]), "gender")
    assert len(groups_of(_clips([("f1", "1", 1), ("m1", "1.5", 1), ("m2", "1.05", 1), ("m3", "10", 1)]), "gender")) == 4


def test_two_combinations_of_one_name_are_refused() -> None:
    clips = [
        Clip(f"c/{number}", f"{number}.wav", f"s{number}", {"a": a, "b": b})
        for number, (a, b) in enumerate([("x:y", "z"), ("x", "y:z"), ("x", "z")])
    ]
    with pytest.raises(UserError, match="both be called 'x:y:z'"):
        groups_of(clips, "a:b")
    assert set(groups_of(clips[1:], "a:b")) == {"x:y:z", "x:z"}
