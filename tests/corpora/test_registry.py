"""Finding corpora by name and by path, and the demo corpus that comes along."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from vibe_harness.corpora.audio.check import check_clips
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.corpora.folders import own_corpora
from vibe_harness.corpora.registry import corpus_manifests, find_corpus
from vibe_harness.errors import UserError
from vibe_harness.library import library_root
from vibe_harness.records import CheckedAudio


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIBE_HARNESS_DATA", str(tmp_path / "data"))


def test_a_prepared_corpus_is_found_by_name(tmp_path: Path) -> None:
    assert own_corpora() == tmp_path / "data" / "corpora"
    folder = own_corpora() / "mine"
    folder.mkdir(parents=True)
    (folder / "manifest.csv").write_text("file,speaker\na.wav,s\n", encoding="utf-8")
    assert find_corpus("mine").clips[0].id == "mine/s/a"
    assert find_corpus(str(folder)).clips == find_corpus("mine").clips == find_corpus(f"{folder}/manifest.csv").clips
    assert set(corpus_manifests()) >= {"mine", "demo"}


def test_unknown_names_and_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "voices").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"unknown corpus 'voices'.*'voices/'"):
        find_corpus("voices")
    with pytest.raises(UserError, match=r"unknown corpus 'dem'\. Did you mean 'demo'"):
        find_corpus("dem")
    with pytest.raises(UserError, match="no manifest there"):
        find_corpus(str(tmp_path))
    with pytest.raises(UserError, match="no such file"):
        find_corpus("absent.csv")
    with pytest.raises(UserError, match="absent: no such folder"):
        find_corpus("absent/")


def test_the_demo_corpus_is_sound_and_balanced() -> None:
    corpus = find_corpus("demo")
    assert corpus.synthetic and corpus.licence == "Apache-2.0" and len(corpus.clips) == 96
    speakers = {clip.speaker: (clip.groups["gender"], clip.groups["accent"]) for clip in corpus.clips}
    assert len(speakers) == 24 and set(Counter(speakers.values()).values()) == {3}
    assert set(Counter(clip.sentence_id for clip in corpus.clips).values()) == {24}
    results = [result for _, result in check_clips(corpus, corpus.clips)]
    assert all(isinstance(result, CheckedAudio) for result in results)
    assert len({result.sha256 for result in results if isinstance(result, CheckedAudio)}) == 96
    assert sum(path.stat().st_size for path in corpus.root.rglob("*")) < 2_000_000


def _median_pitch(samples: np.ndarray, rate: int) -> float:
    """By autocorrelation of 40 ms frames, 60 to 400 Hz."""
    length, found = int(0.04 * rate), []
    for start in range(0, len(samples) - length, length):
        frame = samples[start : start + length] - samples[start : start + length].mean()
        if frame.std() < 0.02:
            continue
        likeness = np.correlate(frame, frame, "full")[length - 1 :] / np.dot(frame, frame)
        lag = rate // 400 + int(np.argmax(likeness[rate // 400 : rate // 60]))
        if likeness[lag] > 0.5:
            found.append(rate / lag)
    return float(np.median(found))


def test_the_demo_voices_differ_in_pitch_by_gender() -> None:
    corpus = find_corpus("demo")
    for clip in corpus.clips[::2]:
        pitch = _median_pitch(read_audio(corpus.path(clip), 16_000).samples, 16_000)
        low, high = (165, 235) if clip.groups["gender"] == "female" else (88, 130)
        assert low < pitch < high, (clip.id, pitch)


@pytest.mark.slow
def test_the_demo_corpus_can_be_made_again(tmp_path: Path) -> None:
    pytest.importorskip("espeakng_loader", reason="the synthesizer is a development dependency")
    demo = library_root() / "corpora" / "demo"
    subprocess.run([sys.executable, demo / "make_demo.py", tmp_path], check=True)
    assert (tmp_path / "manifest.csv").read_bytes() == (demo / "manifest.csv").read_bytes()
    clips = sorted((demo / "clips").iterdir())
    assert [clip.name for clip in clips] == sorted(clip.name for clip in (tmp_path / "clips").iterdir())
    for clip in clips:  # equal on one kind of processor; the Opus coder may round otherwise on another
        np.testing.assert_allclose(
            read_audio(clip, 16_000).samples, read_audio(tmp_path / "clips" / clip.name, 16_000).samples, atol=2e-3
        )


def test_a_user_without_a_home_has_the_corpora_that_come_along(monkeypatch):
    import os

    monkeypatch.delenv("VIBE_HARNESS_DATA", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does where there is no home
    assert "demo" in corpus_manifests()
    with pytest.raises(UserError, match="VIBE_HARNESS_DATA"):
        own_corpora()
