"""What the table alone refuses, before any clip is decoded: all at once, with the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from vibe_harness.cards.loading import CardIndex
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.errors import UserError
from vibe_harness.planning.group_checks import check_groups, without_small_groups
from vibe_harness.records import Clip

TASKS = CardIndex().tasks(["story"])


def corpus(rows: Sequence[tuple[str, dict[str, str]]], **more: object) -> Corpus:
    """rows: speaker and groups of each clip."""
    clips = tuple(Clip(f"c/{s}/{i}", f"{i}.wav", s, groups) for i, (s, groups) in enumerate(rows))
    return replace(Corpus("c", Path(), clips), **more)


def refused(found: Corpus, *dimensions: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        check_groups(found, TASKS, dimensions, found.clips)
    return str(caught.value).splitlines()


def test_groups_of_one_speaker_are_named_all_at_once_with_the_remedy() -> None:
    rows = [(f"{accent}{i}", {"accent": accent}) for accent in ("us", "uk") for i in range(2)]
    rows += [(f"alone{i}", {"accent": f"accent{i:02}"}) for i in range(14)]
    (line,) = refused(corpus(rows), "accent")
    assert "14 groups of 'accent' have one speaker only" in line and "min_speakers: 2" in line
    assert all(f"'accent{i:02}' (alone{i})" in line for i in range(14))


def test_what_is_wrong_in_several_dimensions_is_one_line_each() -> None:
    rows = [(f"s{i}", {"gender": ("f", "m")[i % 2], "accent": ("us", "unknown", "uk", "uk")[i]}) for i in range(4)]
    rows.append(("s0", {"gender": "m", "accent": "us"}))
    lines = refused(corpus(rows), "gender", "accent")
    assert len(lines) == 3
    assert "speaker 's0' stands in two groups of 'gender'" in lines[0] and "mend the manifest" in lines[0]
    assert "'unknown'" in lines[1] and "groups: {accent: ['unknown']}" in lines[1]
    assert "2 groups of 'accent' have one speaker only: 'unknown' (s1), 'us' (s0)" in lines[2]


def test_groups_of_few_speakers_fall_where_the_card_says_so_until_none_is_left() -> None:
    """The only old speaker of 'uk' leaves with 'old'; then 'uk' has one speaker too."""
    rows = [("a", "us", "young"), ("b", "us", "young"), ("c", "uk", "young"), ("d", "uk", "old"), ("e", "fr", "young")]
    found = corpus([(s, {"accent": accent, "age": age}) for s, accent, age in rows], min_speakers=2)
    kept, fallen = without_small_groups(found, found.clips, ["accent"])
    assert [clip.speaker for clip in kept] == ["a", "b", "c", "d"] and "asks for 2" in fallen["c/e/4"]
    kept, fallen = without_small_groups(found, found.clips, ["accent", "age"])
    assert [clip.speaker for clip in kept] == ["a", "b"] and len(fallen) == 3
    assert without_small_groups(replace(found, min_speakers=1), found.clips, ["accent"])[0] == list(found.clips)


def test_a_clip_without_a_group_in_one_dimension_stays_for_another() -> None:
    rows = [(s, {"gender": s[0], **({"accent": "us"} if s == "f1" else {})}) for s in ("f1", "f2", "f3", "m1", "m2")]
    found = corpus(rows, min_speakers=2)
    kept, fallen = without_small_groups(found, found.clips, ["gender", "accent"])
    assert [clip.speaker for clip in kept] == ["f2", "f3", "m1", "m2"] and list(fallen) == ["c/f1/0"]
    assert len(without_small_groups(found, found.clips, ["gender"])[0]) == 5


def test_a_stratum_that_goes_with_the_groups_is_refused() -> None:
    rows = [(f"s{i}", {"emotion": ("joy", "anger")[i % 2], "site": ("north", "south")[i % 2]}) for i in range(8)]
    (line,) = refused(corpus(rows, strata=["site"]), "emotion")
    assert "the stratum 'site' goes with 'emotion'" in line and "'north' in 'joy'" in line
    rows += [("s8", {"emotion": "joy", "site": "south"}), ("s9", {"emotion": "anger", "site": "north"})]
    mixed = corpus(rows, strata=["site"])
    check_groups(mixed, TASKS, ["emotion"], mixed.clips)


def test_a_dimension_within_speakers_is_taken_where_every_speaker_varies() -> None:
    rows = [(f"s{i}", {"emotion": emotion}) for i in range(4) for emotion in ("joy", "anger")]
    found = corpus(rows)
    check_groups(found, TASKS, ["emotion"], found.clips)
    (line,) = refused(corpus([*rows, ("s9", {"emotion": "joy"})]), "emotion")
    assert "stands in two groups of 'emotion'" in line and "compared within speakers" in line
    (line,) = refused(corpus([("s1", {"emotion": "joy"}), ("s1", {"emotion": "anger"})]), "emotion")
    assert "one speaker only" in line


EMOTIONS = {"f": ["joy", "fear", "calm"], "m": ["joy", "fear"]}


def stratified(levels: dict[str, list[str]], speakers: int = 4, **more: object) -> Corpus:
    """levels: group -> the emotion of each clip of its speakers."""
    return corpus(
        [(f"{g}{n}", {"gender": g, "emotion": e}) for g, own in levels.items() for n in range(speakers) for e in own],
        **{"strata": ["emotion"], **more},
    )


def test_a_level_that_one_group_alone_has_is_refused_in_one_line_with_what_to_write() -> None:
    (line,) = refused(stratified(EMOTIONS), "gender")
    assert (
        "levels of the stratum 'emotion' stand in one group of 'gender' only ('calm' in 'f'; 20% of the clips)" in line
    )
    assert "leave them out with 'select: {where: {emotion: [joy, fear]}}' in the corpus card" in line
    (line,) = refused(stratified({"f": ["joy", "calm"], "m": ["joy", "rage"]}), "gender")
    assert "'calm' in 'f', 'rage' in 'm'; 50% of the clips" in line


def test_a_level_of_three_groups_in_two_of_them_and_a_take_that_is_missing_are_not() -> None:
    three = stratified({"f": ["joy", "fear"], "m": ["joy", "fear"], "d": ["joy"]})
    check_groups(three, TASKS, ["gender"], three.clips)
    rows = [(f"{g}{n}", {"gender": g, "emotion": "joy"}) for g in "fm" for n in range(20)]
    rare = corpus([*rows, ("f0", {"gender": "f", "emotion": "calm"})], strata=["emotion"])  # 2 % of the clips
    check_groups(rare, TASKS, ["gender"], rare.clips)
    undeclared = stratified(EMOTIONS, strata=[])
    check_groups(undeclared, TASKS, ["gender"], undeclared.clips)
    within = stratified(EMOTIONS)
    check_groups(within, TASKS, ["emotion"], [clip for clip in within.clips if clip.groups["gender"] == "f"])


def test_a_stratum_of_speakers_with_a_level_in_one_group_only() -> None:
    rows = [(f"{a}{g}{n}", {"accent": a, "gender": g}) for a in ("uk", "us") for g in "fm" for n in range(2)]
    rows = [row for row in rows if not row[0].startswith("ukm")]
    (line,) = refused(corpus(rows, speaker_strata={"accent": ["gender"]}), "accent")
    assert "levels of the stratum 'gender' stand in one group of 'accent' only ('m' in 'us'; 33% of the clips)" in line
