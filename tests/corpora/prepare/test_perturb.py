"""Rate with the pitch kept, pitch with the length kept, loudness, silence, another speaker's voice."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpora.layouts import crema_d
from vibe_harness.corpora.audio.check import check_clips, describe_faults
from vibe_harness.corpora.audio.decode import check_audio, decode
from vibe_harness.corpora.card import Perturbation, load_corpus_card
from vibe_harness.corpora.importers.base import LeftOut
from vibe_harness.corpora.prepare import prepare as preparing
from vibe_harness.corpora.prepare.perturb import perturbed, swap_speakers
from vibe_harness.corpora.prepare.perturbed_files import perturb_files
from vibe_harness.corpora.prepare.prepare import prepare
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.errors import UserError
from vibe_harness.records import Clip, Waveform

RATE = 16_000
TONE = Waveform((0.3 * np.sin(2 * np.pi * 200 * np.arange(3 * RATE) / RATE)).astype(np.float32), RATE)
CLIP = Clip("c/s/x", "x.wav", "s", {"gender": "female"})


def _pitch(wave: Waveform) -> float:
    spectrum = np.abs(np.fft.rfft(wave.samples * np.hanning(len(wave.samples)), 1 << 18))
    return float(np.argmax(spectrum)) * wave.rate / (1 << 18)


@pytest.mark.parametrize("rate", [0.75, 1.25])
def test_rate_changes_the_length_and_keeps_the_pitch(rate: float) -> None:
    changed = perturbed(TONE, Perturbation(rate=rate), CLIP)
    assert len(changed.samples) == pytest.approx(len(TONE.samples) / rate, abs=1)
    assert _pitch(changed) == pytest.approx(200, abs=0.5)
    clicks = np.zeros(3 * RATE, np.float32)
    clicks[[RATE, 2 * RATE]] = 0.9
    heard = perturbed(Waveform(clicks, RATE), Perturbation(rate=rate), CLIP).samples
    half = len(heard) // 2
    loud = np.convolve(np.abs(heard), np.ones(200), "same")
    for place, found in ((RATE / rate, np.argmax(loud[:half])), (2 * RATE / rate, half + np.argmax(loud[half:]))):
        assert found == pytest.approx(place, abs=0.01 * RATE)  # events stay where they belong


@pytest.mark.parametrize(("semitones", "pitch"), [(12, 400), (-5, 200 * 2 ** (-5 / 12)), (4, 200 * 2 ** (4 / 12))])
def test_pitch_moves_and_the_length_stays(semitones: float, pitch: float) -> None:
    changed = perturbed(TONE, Perturbation(pitch=semitones), CLIP)
    assert len(changed.samples) == len(TONE.samples)
    assert _pitch(changed) == pytest.approx(pitch, rel=0.01)  # a semitone is 6 %
    by_group = perturbed(TONE, Perturbation(pitch={"gender": {"female": semitones, "male": 0}}), CLIP)
    np.testing.assert_array_equal(by_group.samples, changed.samples)  # and it is the same each time


def test_loudness_and_silence() -> None:
    np.testing.assert_allclose(perturbed(TONE, Perturbation(loudness=1.5), CLIP).samples, 1.5 * TONE.samples, rtol=1e-6)
    silent = perturbed(TONE, Perturbation(silence=True), CLIP)
    assert len(silent.samples) == len(TONE.samples) and not silent.samples.any()


def test_a_group_without_semitones() -> None:
    with pytest.raises(UserError, match=r"perturb.pitch.gender: no semitones for 'female', the gender of c/s/x"):
        perturbed(TONE, Perturbation(pitch={"gender": {"male": 3}}), CLIP)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), min_size=1, max_size=24), st.integers(0, 5))
def test_swapped_clips_play_another_speaker_of_the_same_sentence(pairs: list[tuple[str, str]], seed: int) -> None:
    clips = [Clip(f"c/{s}/{i}", f"{i}.wav", s, {}, None, sentence) for i, (s, sentence) in enumerate(pairs)]
    of_file = {clip.file: clip for clip in clips}
    swapped, left = swap_speakers(clips, seed)
    assert len(swapped) + len(left) == len(clips)
    assert len({clip.file for clip in swapped}) == len(swapped)  # each recording is heard once
    for clip in swapped:
        heard = of_file[clip.file]
        assert heard.speaker != clip.speaker and heard.sentence_id == clip.sentence_id
        assert clip.groups["heard_speaker"] == heard.speaker
    for one in left:  # only where a speaker says the sentence more often than all others together
        sentence = of_file[one.file].sentence_id
        said = Counter(clip.speaker for clip in clips if clip.sentence_id == sentence)
        assert 2 * max(said.values()) > sum(said.values())


def test_swapping_mixes_groups_that_the_speakers_names_tell() -> None:
    # 4 accents of 25 speakers, called as the Speech Accent Archive calls them: by chance 24 of 99 others are alike
    clips = [Clip(f"c/{a}{i}/x", f"{a}{i}.wav", f"{a}{i}", {"accent": a}, None, "x") for a in "aeks" for i in range(25)]
    alike, partners = 0, set()
    for seed in range(20):
        swapped, _ = swap_speakers(clips, seed)
        alike += sum(clip.groups["heard_speaker"][0] == clip.groups["accent"] for clip in swapped)
        partners.add(swapped[0].groups["heard_speaker"])
    assert alike / 2_000 == pytest.approx(24 / 99, abs=0.05)
    assert len(partners) > 10  # the seed draws them


def _derived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    monkeypatch.setenv("VIBE_HARNESS_DATA", str(tmp_path / "data"))
    crema_d(tmp_path / "src", [f"{actor}_{s}_NEU_XX.wav" for actor in (1001, 1002) for s in ("TIE", "DFA")])
    card, path = load_corpus_card("crema-d")
    prepare(card, path, str(tmp_path / "src"), tmp_path / "data" / "corpora" / "crema-d")
    (tmp_path / "new.yaml").write_text(
        f"corpus: new\nversion: 1\ndescription: x\nbase: crema-d\nperturb: {change}\n", encoding="utf-8"
    )
    card, path = load_corpus_card(str(tmp_path / "new.yaml"))
    prepare(card, path, None, tmp_path / "data" / "corpora" / "new")


def test_a_perturbed_corpus_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _derived(tmp_path, monkeypatch, "{rate: 1.25, loudness: 0.5}")
    base, new = find_corpus("crema-d"), find_corpus("new")
    assert [clip.id for clip in new.clips] == [clip.id.replace("crema-d/", "new/", 1) for clip in base.clips]
    assert [clip.groups for clip in new.clips] == [clip.groups for clip in base.clips]
    assert any("rate 1.25, loudness 0.5" in note for note in new.notes)
    for old, changed in zip(base.clips, new.clips, strict=True):
        before, after = decode(base.path(old)), decode(new.path(changed))
        assert isinstance(before, Waveform) and isinstance(after, Waveform)
        assert len(after.samples) == pytest.approx(len(before.samples) / 1.25, abs=1)
        assert np.abs(after.samples).max() < 0.7 * np.abs(before.samples).max()


def test_silence_is_wanted_only_where_the_card_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _derived(tmp_path, monkeypatch, "{silence: true}")
    new = find_corpus("new")
    assert new.silence
    assert describe_faults(new, list(check_clips(new, new.clips))) == ""
    assert check_audio(new.path(new.clips[0])).__class__.__name__ == "BadAudio"


def test_speakers_swapped_by_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _derived(tmp_path, monkeypatch, "{swap_speakers: true}")
    base, new = find_corpus("crema-d"), find_corpus("new")
    for clip in new.clips:
        other = "1002" if clip.speaker == "1001" else "1001"
        source = next(c for c in base.clips if c.speaker == other and c.sentence_id == clip.sentence_id)
        one, two = decode(base.path(source)), decode(new.path(clip))
        assert isinstance(one, Waveform) and isinstance(two, Waveform)
        np.testing.assert_allclose(one.samples, two.samples, atol=1e-7)


def test_sound_that_was_swapped_otherwise_before_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody_swapped(clips: list[Clip], seed: int) -> tuple[list[Clip], list[LeftOut]]:
        return clips, []

    with monkeypatch.context() as before:
        before.setattr(preparing, "swap_speakers", nobody_swapped)
        _derived(tmp_path, monkeypatch, "{swap_speakers: true}")
    prepare(*load_corpus_card(str(tmp_path / "new.yaml")), None, tmp_path / "data" / "corpora" / "new")
    base, new = find_corpus("crema-d"), find_corpus("new")
    for mine, own in zip(new.clips, base.clips, strict=True):
        one, two = decode(base.path(own)), decode(new.path(mine))
        assert isinstance(one, Waveform) and isinstance(two, Waveform)
        assert len(one.samples) != len(two.samples) or not np.allclose(one.samples, two.samples)


def test_changed_sound_is_written_once_for_each_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _derived(tmp_path, monkeypatch, "{loudness: 0.5}")
    first = find_corpus("new")
    times = [first.path(clip).stat().st_mtime_ns for clip in first.clips]
    card, path = load_corpus_card(str(tmp_path / "new.yaml"))
    prepare(card, path, None, tmp_path / "data" / "corpora" / "new")
    assert [first.path(clip).stat().st_mtime_ns for clip in find_corpus("new").clips] == times
    path.write_text(path.read_text(encoding="utf-8").replace("0.5", "0.25"), encoding="utf-8")
    prepare(*load_corpus_card(str(path)), None, tmp_path / "data" / "corpora" / "new")
    second = find_corpus("new")
    assert second.root != first.root and not first.root.exists()
    one = decode(second.path(second.clips[0]))
    assert isinstance(one, Waveform) and np.abs(one.samples).max() < 0.2


def test_listed_levels_make_each_clip_once_at_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _derived(tmp_path, monkeypatch, "{levels: {rate: [0.75, 1, 1.25], loudness: [0.5, 1]}}")
    base, new = find_corpus("crema-d"), find_corpus("new")
    assert len(new.clips) == 6 * len(base.clips)
    lengths = {clip.id.partition("/")[2]: len(decode(base.path(clip)).samples) for clip in base.clips}  # type: ignore[union-attr]
    for clip in new.clips:
        rate, loudness = clip.groups["rate"], clip.groups["loudness"]
        name, suffix = clip.id.partition("/")[2].split("-rate-")
        assert suffix == f"{rate}-loudness-{loudness}"
        wave = decode(new.path(clip))
        assert isinstance(wave, Waveform)
        assert len(wave.samples) == pytest.approx(lengths[name] / float(rate), abs=1)
    counted = Counter((clip.groups["rate"], clip.groups["loudness"]) for clip in new.clips)
    assert counted == {(rate, loudness): len(base.clips) for rate in ("0.75", "1", "1.25") for loudness in ("0.5", "1")}


@pytest.mark.parametrize(
    "levels",
    ["{levels: {rate: [1]}}", "{levels: {rate: [1, 1.0]}}", "{levels: {}}", "{levels: {rate: [0.5, 9]}}",
     "{levels: {rate: [0.5, fast]}}", "{levels: {pitch: [1, 2]}}", "{rate: 0.75, levels: {rate: [1, 2]}}",
     "{levels: {loudness: [1, 1.0000001]}}"],
)  # fmt: skip
def test_levels_that_are_none(levels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"new.yaml:5.*perturb"):
        _derived(tmp_path, monkeypatch, levels)


def test_levels_of_a_column_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _derived(tmp_path, monkeypatch, "{levels: {rate: [1, 1.25]}}")
    again = tmp_path / "again.yaml"
    again.write_text(
        "corpus: again\nversion: 1\ndescription: x\nbase: new\nperturb: {levels: {rate: [0.75, 1]}}\n", encoding="utf-8"
    )
    with pytest.raises(UserError, match=r"perturb.levels: the base already has a column 'rate'"):
        prepare(*load_corpus_card(str(again)), None, tmp_path / "again")


@pytest.mark.parametrize("name", ["c/../../escaped", "c/s/../../../escaped", "c//escaped", "c/s/a\\b", "c/s/\0"])
def test_changed_sound_stays_in_its_folder(name: str, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "x.wav", TONE.samples, RATE)
    target = tmp_path / "deep" / "er" / "sound"
    with pytest.raises(UserError, match="cannot be the name of a file"):
        perturb_files(tmp_path, [Clip(name, "x.wav", "s", {})], Perturbation(loudness=0.5), target, lambda _: None)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["x.wav"]
