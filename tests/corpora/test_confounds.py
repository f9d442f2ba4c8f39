"""Differences between the groups' recordings, and in what is said, are found, and chance is not cried up."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from vibe_harness.corpora.confounds import Confound, confounds
from vibe_harness.records import CheckedAudio, Clip


def _audio(duration: float = 2.0, level: float = -20.0, rate: int = 16_000, kind: str = "WAV") -> CheckedAudio:
    return CheckedAudio(duration, rate, 1, kind, "PCM_16", "0", level, 0.0, 0.1, -60.0, 7_900.0)


def _compare(groups: dict[str, list[list[CheckedAudio]]]) -> dict[str, Confound]:
    """group -> speakers -> the audio of each of their clips."""
    clips, audio = [], {}
    for group, speakers in groups.items():
        for number, own in enumerate(speakers):
            for take, one in enumerate(own):
                file = f"{group}{number}-{take}.wav"
                clips.append(Clip(f"c/{file}", file, f"{group}{number}", {"g": group}))
                audio[file] = one
    return {one.feature: one for one in confounds(clips, audio, "g")}


def test_a_speaker_counts_once_and_the_effect_is_cohens_d() -> None:
    """Two speakers of one group: means 1 and 3; of the other 5 and 7. Pooled deviation sqrt(2), d = 4 / sqrt(2)."""
    one = [[_audio(1.0)] * 9, [_audio(3.0)]]
    other = [[_audio(4.0), _audio(6.0)], [_audio(7.0)]]
    found = _compare({"a": one, "b": other})["duration, s"]
    assert found.effect == pytest.approx(4 / np.sqrt(2))
    assert found.by_group == {"a": "2", "b": "6"} and found.between == "a and b"
    assert found.p_value == pytest.approx(stats.kruskal([1, 3], [5, 7]).pvalue)  # nothing else varies
    assert found.warned  # very large, though four speakers can never be significant


def test_a_channel_that_goes_with_the_group() -> None:
    """Nothing in common: a distance of 1. Of the 70 ways to deal out 8 speakers, 2 are as far apart."""
    found = _compare({"old": [[_audio(rate=44_100, kind="MP3")]] * 4, "young": [[_audio(rate=24_000)]] * 4})
    assert found["sample rate"].effect == pytest.approx(1.0) and found["sample rate"].warned
    assert found["codec"].warned and found["codec"].by_group == {"old": "MP3/PCM_16 100%", "young": "WAV/PCM_16 100%"}
    assert not found["channels"].warned and found["channels"].p_value == 1.0
    assert found["codec"].sentence == (
        "g groups differ in codec (old MP3/PCM_16 100%; young WAV/PCM_16 100%; TVD 1.00, adjusted p "
        f"{found['codec'].p_value:.2g}): a model may answer to the recording and not to the voice"
    )


def test_shares_by_fishers_exact_test() -> None:
    """10 of 10 against 5 of 10, one clip each: half of the clips differ, and groups of one size are exchanged alike, so
    that the permutation test is Fisher's. It is the only property that varies, so its p is not adjusted."""
    wav, mp3 = [_audio()], [_audio(kind="MP3")]
    found = _compare({"a": [wav] * 10, "b": [wav] * 5 + [mp3] * 5})["codec"]
    assert found.effect == pytest.approx(0.5)
    assert found.p_value == pytest.approx(stats.fisher_exact([[10, 0], [5, 5]]).pvalue, abs=0.02)


def test_a_part_of_the_clips_is_enough() -> None:
    """Every woman has 3 of 10 clips at 8 kHz, and no man has one: what most of a speaker's clips are hides it."""
    mixed, plain = [_audio(rate=8_000)] * 3 + [_audio()] * 7, [_audio()] * 10
    found = _compare({"women": [mixed] * 8, "men": [plain] * 8})["sample rate"]
    assert found.effect == pytest.approx(0.3) and found.warned
    assert found.by_group == {"men": "16000 Hz 100%", "women": "16000 Hz 70%, 8000 Hz 30%"}


@pytest.mark.slow
def test_equal_groups_are_not_warned_of_more_than_chance_does() -> None:
    """Of 200 corpora without a difference 5 in 100 may have a warning, whatever number of properties is compared."""
    state = np.random.default_rng(0)
    warned = 0
    for _ in range(200):
        rates = state.choice([16_000, 44_100], 24)
        drawn = [[_audio(*state.normal((2, -20), (0.5, 3)), rate=int(rate))] for rate in rates]
        groups = {"a": drawn[:12], "b": drawn[12:]}
        warned += any(one.warned for one in _compare(groups).values())
    assert warned <= 20  # 10 expected; 20 is past the 99.9th percentile


def test_a_difference_with_no_spread_at_all_has_no_size() -> None:
    found = _compare({"a": [[_audio(level=-20)]] * 3, "b": [[_audio(level=-30)]] * 3})["loudness, dBFS"]
    assert found.effect is None and found.warned and "no spread within groups, adjusted p 0.025" in found.sentence
    few = _compare({"a": [[_audio(level=-20)]] * 2, "b": [[_audio(level=-30)]] * 2})["loudness, dBFS"]
    assert few.effect is None and few.warned  # 10 dB, though four speakers never reach significance
    small = _compare({"a": [[_audio(level=-20)]] * 2, "b": [[_audio(level=-20.5)]] * 2})["loudness, dBFS"]
    assert small.effect is None and not small.warned


@pytest.mark.parametrize(
    ("feature", "one", "other"),
    [
        ("loudness, dBFS", {"level": -40.0}, {"level": -11.0}),
        ("duration, s", {"duration": 1.0}, {"duration": 4.0}),
        ("sample rate", {"rate": 8_000}, {"rate": 44_100}),
    ],
)
@pytest.mark.parametrize("speakers", [2, 3, 12])
def test_recordings_that_differ_in_one_thing(
    feature: str, one: dict[str, Any], other: dict[str, Any], speakers: int
) -> None:
    found = _compare({"women": [[_audio(**one)]] * speakers, "men": [[_audio(**other)]] * speakers})
    assert [name for name, confound in found.items() if confound.warned] == [feature]


def test_all_alike() -> None:
    found = _compare({"a": [[_audio()]] * 3, "b": [[_audio()]] * 3})
    assert found and not any(one.warned for one in found.values())
    assert all(one.p_value == 1.0 for one in found.values())


def test_one_speaker_a_group_is_not_compared() -> None:
    """Between two people everything differs: that is no news of their groups."""
    found = _compare({"a": [[_audio(2.0, -20), _audio(2.5, -21)]], "b": [[_audio(9.0, -40, 8_000)]]})
    assert all(one.effect is None and one.p_value is None and not one.warned for one in found.values())
    assert found["duration, s"].by_group == {"a": "2.25", "b": "9"}  # it is shown
    assert found["duration, s"].size() == "fewer than 2 speakers a group" and found["duration, s"].chance() == ""


def test_a_group_of_one_speaker_is_left_out_of_the_comparison() -> None:
    several = {"a": [[_audio(1.0)], [_audio(3.0)]], "b": [[_audio(2.0)], [_audio(4.0)]]}
    alone = _compare({**several, "c": [[_audio(99.0, rate=8_000)]]})
    assert alone["duration, s"].effect == _compare(several)["duration, s"].effect
    assert alone["sample rate"].effect == 0.0 and "c" in alone["sample rate"].by_group


# ---------------------------------------------------------------------------------------------------------- content


def _clips(rows: list[tuple[str, str, dict[str, str]]], text: dict[str, str] | None = None) -> list[Clip]:
    """speaker, group, further columns of each clip. text: sentence -> what is said."""
    return [
        Clip(f"c/{n}", f"{n}.wav", speaker, {"g": group, **columns}, (text or {}).get(columns.get("sentence_id", "")))
        for n, (speaker, group, columns) in enumerate(rows)
    ]


def _warned(clips: list[Clip], dimension: str = "g", evened: tuple[str, ...] = ()) -> dict[str, str]:
    return {one.feature: one.sentence for one in confounds(clips, {}, dimension, evened) if one.warned}


def _saying(by_group: dict[str, list[str]], speakers: int = 6) -> list[tuple[str, str, dict[str, str]]]:
    """Each speaker of a group says these sentences."""
    return [
        (f"{group}{number}", group, {"sentence_id": sentence})
        for group, sentences in by_group.items()
        for number in range(speakers)
        for sentence in sentences
    ]


def test_other_sentences_by_group() -> None:
    found = _warned(_clips(_saying({"women": ["s1", "s2"], "men": ["s3", "s4"]})))
    assert found == {
        "sentence_id": "g groups differ in sentence_id (men s3 50%, s4 50%; women s1 50%, s2 50%; TVD 1.00, adjusted p "
        "0.003): a model may answer to that and not to the voice"  # 2 of 924 ways to deal out 12 speakers: 0.0022
    }
    assert "sentence_id" in _warned(_clips(_saying({"women": ["s1", "s2"], "men": ["s3", "s4"]}, speakers=2)))


def test_other_sentences_in_part() -> None:
    """Four of five sentences are shared: a fifth of the clips differ."""
    shared = ["s1", "s2", "s3", "s4"]
    assert "TVD 0.20" in _warned(_clips(_saying({"women": [*shared, "s5"], "men": [*shared, "s6"]})))["sentence_id"]


def test_the_same_sentences_for_all_are_no_difference() -> None:
    assert not _warned(_clips(_saying({"women": ["s1", "s2"], "men": ["s1", "s2"]})))
    assert not _warned(_clips(_saying({"women": ["s1"], "men": ["s1"]}, speakers=2)))
    crossed = [
        (f"{g}{n}", g, {"emotion": emotion, "sentence_id": s})
        for g in "ab" for n in range(5) for emotion in ("joy", "fear") for s in ("1", "2")
    ]  # fmt: skip
    assert not _warned(_clips(crossed))


def test_speakers_who_each_say_something_of_their_own_say_nothing_of_groups() -> None:
    rows = [(f"{g}{n}", g, {"sentence_id": f"{g}{n}-{k}"}) for g in "ab" for n in range(8) for k in range(3)]
    assert not _warned(_clips(rows))


@pytest.mark.slow
def test_sentences_drawn_alike_are_warned_of_as_often_as_chance_has_it() -> None:
    state = np.random.default_rng(1)
    warned = 0
    for _ in range(200):
        rows = [
            (f"{g}{n}", g, {"sentence_id": str(s)})
            for g in "ab" for n in range(8) for s in state.choice(12, 3, replace=False)
        ]  # fmt: skip
        warned += bool(_warned(_clips(rows)))
    assert warned <= 20


def test_texts_that_differ_under_one_sentence_id() -> None:
    rows = _saying({"women": ["s1", "s2"], "men": ["s1", "s2"]})
    said = {"men": "one", "women": "quite another"}
    clips = [replace(one, text=f"{one.groups['sentence_id']} {said[one.groups['g']]}") for one in _clips(rows)]
    assert _warned(clips).keys() == {"text", "text length, letters"}


def test_a_text_that_goes_with_the_sentence_is_told_once() -> None:
    text = {"s1": "one two three", "s2": "four five six"}
    assert _warned(_clips(_saying({"women": ["s1"], "men": ["s2"]}), text)).keys() == {"sentence_id"}


def test_longer_texts_of_their_own() -> None:
    rows = [(f"{g}{n}", g, {"sentence_id": f"{g}{n}"}) for g in "ab" for n in range(8)]
    text = {f"{g}{n}": "word " * (3 if g == "a" else 12) + f"{g}{n}" for g in "ab" for n in range(8)}
    assert _warned(_clips(rows, text)).keys() == {"text length, letters"}


def test_conditions_and_speakers_own_columns() -> None:
    rows = [
        (f"{g}{n}", g, {"site": "north" if (g == "a") == (k < 3) else "south", "age": str(20 + n + 15 * (g == "b"))})
        for g in "ab" for n in range(14) for k in range(4)
    ]  # fmt: skip
    found = _warned(_clips(rows))
    assert found.keys() == {"site", "age"}
    assert found["site"].startswith("g groups differ in site (a north 75%, south 25%; b south 75%, north 25%; TVD 0.50")
    assert "a model may answer to that" in found["site"]
    assert "age (a 26.5; b 41.5; d 3.59" in found["age"] and found["age"].endswith("the score may be of either")


def test_columns_that_are_evened_out_or_name_the_groups_are_not_told() -> None:
    rows = [
        (f"{g}{n}", g, {"sex": g[0].upper(), "emotion": "joy" if g == "male" else "fear", "voice_file": f"{g}.wav"})
        for g in ("male", "female") for n in range(6)
    ]  # fmt: skip
    assert _warned(_clips(rows)).keys() == {"emotion"}
    assert not _warned(_clips(rows), evened=("emotion",))


def test_emotions_are_compared_within_speakers() -> None:
    """All of one emotion at one site: each speaker is his own control, and speakers differ far more than emotions."""
    rows = [
        (f"s{n}", emotion, {"site": "north" if emotion == "joy" else "south"})
        for n in range(6) for emotion in ("joy", "fear")
    ]  # fmt: skip
    clips = _clips(rows)
    assert _warned(clips).keys() == {"site"}
    audio = {
        one.file: _audio(level=-30 + 3 * (n // 2) + 1.5 * (one.groups["g"] == "joy")) for n, one in enumerate(clips)
    }
    found = {one.feature: one for one in confounds(clips, audio, "g")}
    assert found["loudness, dBFS"].warned
    assert found["loudness, dBFS"].p_value == pytest.approx(2 / 2**6, abs=0.03)  # by the signs of six differences


def test_a_group_that_lacks_a_column_and_clips_without_a_group() -> None:
    rows = [(f"{g}{n}", g, {"mic": "x"} if g == "a" else {}) for g in "ab" for n in range(5)]
    clips = [*_clips(rows), Clip("c/none", "none.wav", "z", {"mic": "y"})]
    assert "(a x 100%; b (empty) 100%" in _warned(clips)["mic"]


def test_columns_that_cross_two() -> None:
    rows = [(f"{g}{a}{n}", g, {"accent": a}) for g in "xy" for a in ("uk", "us") for n in range(4)]
    assert not _warned(_clips(rows), "g:accent")


def test_many_groups_of_many_speakers_are_quick() -> None:
    rows = [(f"s{n}", f"g{n % 50}", {"sentence_id": str((n * 7 + k) % 500)}) for n in range(1_000) for k in range(2)]
    assert confounds(_clips(rows), {}, "g")
