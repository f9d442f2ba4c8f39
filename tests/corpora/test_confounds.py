"""Differences between the groups' recordings are found, and chance is not cried up."""

import numpy as np
import pytest
from scipy import stats

from vibe_harness.corpora.audio.decode import CheckedAudio
from vibe_harness.corpora.confounds import Confound, confounds
from vibe_harness.records import Clip


def _audio(duration: float = 2.0, level: float = -20.0, rate: int = 16_000, kind: str = "WAV") -> CheckedAudio:
    return CheckedAudio(duration, rate, 1, kind, "PCM_16", "0", level, 0.0, 0.1)


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
    assert found.p_value == pytest.approx(stats.kruskal([1, 3], [5, 7]).pvalue)
    assert found.warned  # very large, though four speakers can never be significant


def test_a_channel_that_goes_with_the_group() -> None:
    """Perfect association of two by two: V = 1, bias correction and all (Bergsma 2013)."""
    found = _compare({"old": [[_audio(rate=44_100, kind="MP3")]] * 4, "young": [[_audio(rate=24_000)]] * 4})
    assert found["sample rate"].effect == pytest.approx(1.0) and found["sample rate"].warned
    assert found["codec"].warned and found["codec"].by_group == {"old": "MP3/PCM_16 100%", "young": "WAV/PCM_16 100%"}
    assert not found["channels"].warned and found["channels"].p_value == 1.0
    assert "may answer to the recording" in found["codec"].sentence()


def test_chi_squared_by_hand() -> None:
    """10 of 10 against 5 of 10: chi-squared 20/3; phi2 = 1/3 - 1/19, each dimension 2 - 1/19."""
    wav, mp3 = [_audio()], [_audio(kind="MP3")]
    found = _compare({"a": [wav] * 10, "b": [wav] * 5 + [mp3] * 5})["codec"]
    assert found.effect == pytest.approx(np.sqrt((1 / 3 - 1 / 19) / (1 - 1 / 19)))
    assert found.p_value == pytest.approx(stats.chi2.sf(20 / 3, 1))


def test_equal_groups_are_not_warned_of_more_than_chance_does() -> None:
    state = np.random.default_rng(0)
    warned = 0
    for _ in range(200):
        groups = {g: [[_audio(*state.normal((2, -20), (0.5, 3)))] for _ in range(12)] for g in "ab"}
        warned += sum(one.warned for one in _compare(groups).values())
    assert warned <= 35  # 400 comparisons, at 5 % each 20 expected; 35 is past the 99.9th percentile


def test_a_difference_with_no_spread_at_all_has_no_size() -> None:
    found = _compare({"a": [[_audio(level=-20)]] * 3, "b": [[_audio(level=-30)]] * 3})["loudness, dBFS"]
    assert found.effect is None and found.warned and "no spread within groups, p = 0.025" in found.sentence()
    few = _compare({"a": [[_audio(level=-20)]] * 2, "b": [[_audio(level=-30)]] * 2})["loudness, dBFS"]
    assert few.effect is None and not few.warned  # p = 0.083


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
