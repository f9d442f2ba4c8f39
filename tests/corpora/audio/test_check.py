"""Checks of many clips: one bad file never hides another, and a file is decoded once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.corpora.sounds import speechlike, write
from vibe_harness.corpora.audio import check_files as checking
from vibe_harness.corpora.audio.check import check_clips, describe_faults, without_repeats
from vibe_harness.corpora.audio.decode import BadAudio, Fault
from vibe_harness.corpora.manifest import Corpus, load_manifest
from vibe_harness.records import CheckedAudio

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 9\n"


def _corpus(folder: Path, files: list[str]) -> Corpus:
    rows = "".join(f"{file},of-{file},{i}\n" for i, file in enumerate(files))
    (folder / "manifest.csv").write_text("file,speaker,id\n" + rows, encoding="utf-8")
    return load_manifest(folder / "manifest.csv")


def test_every_clip_gets_its_own_verdict_in_order(tmp_path: Path) -> None:
    write(tmp_path / "good.wav", speechlike())
    write(tmp_path / "silent.wav", np.zeros(16_000, np.float32))
    (tmp_path / "zero.wav").touch()
    (tmp_path / "pointer.wav").write_text(POINTER, encoding="utf-8")
    files = ["good.wav", "zero.wav", "good.wav", "silent.wav", "absent.wav", "pointer.wav", "good.wav"]
    corpus = _corpus(tmp_path, files)
    checked = list(check_clips(corpus, corpus.clips))
    assert [clip.file for clip, _ in checked] == files
    assert [getattr(result, "fault", None) for _, result in checked] == [
        None, Fault.EMPTY, None, Fault.SILENT, Fault.MISSING, Fault.LFS_POINTER, None,
    ]  # fmt: skip
    told = describe_faults(corpus, checked)
    assert "4 of 7 clips" in told
    for file in ("zero.wav", "silent.wav", "absent.wav", "pointer.wav"):
        assert f"  {file}: " in told
    assert "good.wav" not in told
    assert describe_faults(corpus, [c for c in checked if isinstance(c[1], CheckedAudio)]) == ""


def test_a_file_named_by_many_clips_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []
    bad = BadAudio(Fault.MISSING, "no such file")
    monkeypatch.setattr(checking, "check_audio", lambda path, silence: asked.append(path) or bad)
    corpus = _corpus(tmp_path, [f"{i % 50}.wav" for i in range(5_000)])
    checked = list(check_clips(corpus, corpus.clips))
    assert len(checked) == 5_000 and sorted(asked) == sorted({tmp_path / f"{i}.wav" for i in range(50)})


def test_pointers_are_told_in_one_message(tmp_path: Path) -> None:
    for i in range(60):
        (tmp_path / f"{i}.wav").write_text(POINTER, encoding="utf-8")
    (tmp_path / "zero.wav").touch()
    corpus = _corpus(tmp_path, [*(f"{i}.wav" for i in range(60)), "zero.wav"])
    told = describe_faults(corpus, list(check_clips(corpus, corpus.clips))).splitlines()
    assert len(told) == 2
    assert "60 of 61" in told[0] and "git-lfs" in told[0] and "git lfs pull" in told[0] and str(tmp_path) in told[0]
    assert told[1] == "  zero.wav: the file is empty (0 bytes)"


def test_what_is_past_the_limit_is_counted(tmp_path: Path) -> None:
    corpus = _corpus(tmp_path, [f"{i}.wav" for i in range(70)])
    told = describe_faults(corpus, list(check_clips(corpus, corpus.clips)))
    assert len(told.splitlines()) == 52 and "and 20 more: 20 missing" in told


def test_one_sound_under_two_speakers_is_bad_in_both_places_and_silence_is_not(tmp_path: Path) -> None:
    for name, seed in (("a1", 1), ("a2", 2), ("b1", 1), ("b2", 3)):
        write(tmp_path / f"{name}.wav", speechlike(seed=seed))
    rows = "a1.wav,a\na2.wav,a\nb1.wav,b\nb2.wav,b\n"
    (tmp_path / "manifest.csv").write_text("file,speaker\n" + rows, encoding="utf-8")
    corpus = load_manifest(tmp_path / "manifest.csv")
    faults = {clip.file: getattr(one, "fault", None) for clip, one in check_clips(corpus, corpus.clips)}
    assert faults == {"a1.wav": Fault.TWO_SPEAKERS, "a2.wav": None, "b1.wav": Fault.TWO_SPEAKERS, "b2.wav": None}
    told = describe_faults(corpus, check_clips(corpus, corpus.clips))
    assert "a1.wav: the same sound as b1.wav, said to be of speaker 'b', where this is 'a'" in told

    for path in tmp_path.glob("*.wav"):
        write(path, np.zeros(16_000, np.float32))
    control = replace(corpus, silence=True)
    assert not any(isinstance(one, BadAudio) for _, one in check_clips(control, control.clips))


def test_one_recording_twice_under_one_speaker_is_named_where_it_would_count_twice(tmp_path: Path) -> None:
    for name, seed in (("a1", 1), ("a2", 2), ("a3", 1)):
        write(tmp_path / f"{name}.wav", speechlike(seed=seed))
    write(
        tmp_path / "a4.flac", soundfile.read(tmp_path / "a2.wav", dtype="int16")[0], subtype="PCM_16"
    )  # the same samples in another format
    rows = "a1.wav,a,1\na2.wav,a,2\na3.wav,a,3\na4.flac,a,4\na1.wav,a,5\n"
    (tmp_path / "manifest.csv").write_text("file,speaker,id\n" + rows, encoding="utf-8")
    corpus = load_manifest(tmp_path / "manifest.csv")
    checked = check_clips(corpus, corpus.clips)
    assert not any(
        isinstance(one, BadAudio) for _, one in checked
    )  # in choice tasks one recording serves several items
    reasons = {clip.id[-1]: getattr(one, "reason", "") for clip, one in without_repeats(checked)}
    assert reasons["1"] == reasons["2"] == ""
    assert "same sound as a1.wav" in reasons["3"] and "same sound as a2.wav" in reasons["4"]
    assert reasons["5"] == ""  # the manifest itself names the file twice


def test_a_file_that_has_not_changed_is_not_decoded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIBE_HARNESS_DATA", str(tmp_path / "data"))
    for name, seed in (("a", 1), ("b", 2)):
        write(tmp_path / "c" / f"{name}.wav", speechlike(seed=seed))
    corpus = _corpus(tmp_path / "c", ["a.wav", "b.wav", "absent.wav"])
    asked: list[str] = []
    real = checking.check_audio
    monkeypatch.setattr(checking, "check_audio", lambda path, silence: asked.append(path.name) or real(path, silence))
    first = check_clips(corpus, corpus.clips)
    assert asked == ["a.wav", "b.wav", "absent.wav"]
    asked.clear()
    assert check_clips(corpus, corpus.clips[:2]) == first[:2] and asked == []
    write(tmp_path / "c" / "b.wav", speechlike(seconds=2.0, seed=3))
    again = check_clips(corpus, corpus.clips)
    assert asked == ["b.wav", "absent.wav"] and again[0] == first[0] and again[1] != first[1]
    asked.clear()
    control = replace(corpus, silence=True)
    assert len(check_clips(control, control.clips)) == 3 and len(asked) == 3  # judged otherwise, and not kept


def test_checks_that_cannot_be_kept_are_made_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").write_text("a file where the folder should be", encoding="utf-8")
    monkeypatch.setenv("VIBE_HARNESS_DATA", str(tmp_path / "data"))
    write(tmp_path / "c" / "a.wav", speechlike())
    corpus = _corpus(tmp_path / "c", ["a.wav"])
    for _ in range(2):
        assert isinstance(check_clips(corpus, corpus.clips)[0][1], CheckedAudio)
