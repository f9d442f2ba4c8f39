"""From a source to a manifest that datasets and pandas open, with every clip accounted for."""

import errno
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.corpora.layouts import POINTER, SHARED, crema_d, l2_arctic, needs_recordings, saa
from tests.corpora.sounds import speechlike, write
from vibe_harness.corpora.audio import check_cache
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.corpora.card import load_corpus_card
from vibe_harness.corpora.importers.base import counted
from vibe_harness.corpora.prepare import folder as prepared_folder
from vibe_harness.corpora.prepare.folder import PreparedCorpus, locked, read_left_out
from vibe_harness.corpora.prepare.prepare import prepare
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.errors import UserError


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIBE_HARNESS_DATA", str(tmp_path / "data"))


def _prepare(card: str, source: Path | None, tmp_path: Path) -> PreparedCorpus:
    loaded, path = load_corpus_card(card)
    return prepare(loaded, path, source and str(source), tmp_path / "data" / "corpora" / loaded.corpus)


CLIPS = ["1001_IEO_ANG_HI.wav", "1001_TIE_NEU_XX.wav", "1002_TIE_NEU_XX.wav", "1002_WSI_SAD_XX.wav"]


def _faulty_crema(folder: Path) -> Path:
    """Four good takes and one of each fault."""
    crema_d(folder, CLIPS)
    audio = folder / "AudioWAV"
    write(audio / "1076_MTI_SAD_XX.wav", np.zeros(40_000, np.float32))
    (audio / "1001_DFA_ANG_XX.wav").write_text(POINTER, encoding="utf-8")
    (audio / "1001_DFA_DIS_XX.wav").touch()
    (audio / "1001_DFA_FEA_XX.wav").write_bytes((audio / CLIPS[0]).read_bytes()[:5_000])
    twin = speechlike(0.5, seed=99)
    write(audio / "1001_ITS_HAP_XX.wav", twin)
    write(audio / "1001_ITS_NEU_XX.wav", twin)
    return folder


def test_every_clip_is_in_the_manifest_or_left_out_by_name(tmp_path: Path) -> None:
    prepared = _prepare("crema-d", _faulty_crema(tmp_path / "src"), tmp_path)
    assert [clip.id.split("/")[-1] + ".wav" for clip in prepared.corpus.clips] == CLIPS
    left = {Path(one.file).name: one.why for one in read_left_out(prepared.folder)}
    assert left == {
        "1076_MTI_SAD_XX.wav": "silent",
        "1001_DFA_ANG_XX.wav": "git-lfs pointer",
        "1001_DFA_DIS_XX.wav": "empty",
        "1001_DFA_FEA_XX.wav": "truncated",
        "1001_ITS_HAP_XX.wav": "one waveform under two labels",
        "1001_ITS_NEU_XX.wav": "one waveform under two labels",
    }
    card = (prepared.folder / "README.md").read_text(encoding="utf-8")
    assert "4 clips of 2 speakers" in card and "| silent | 1 |" in card and "| gender | female | 1 | 2 |" in card
    assert "ODbL" in card


def test_the_manifest_opens_with_pandas_datasets_and_by_name(tmp_path: Path) -> None:
    from datasets import load_dataset

    prepared = _prepare("crema-d", _faulty_crema(tmp_path / "src"), tmp_path)
    path = prepared.folder / "manifest.parquet"
    frame = pd.read_parquet(path)
    assert list(frame["file"]) == [f"AudioWAV/{name}" for name in CLIPS]
    assert {"corpus", "id", "speaker", "gender", "age", "race", "ethnicity", "age_group", "emotion", "level", "text",
            "sentence_id", "duration_s", "sample_rate", "sha256", "licence"} <= set(frame)  # fmt: skip
    assert frame["duration_s"].tolist() == [0.4] * 4 and set(frame["sample_rate"]) == {16_000}
    assert frame["id"].is_unique and frame["id"][0] == "crema-d/1001/1001_IEO_ANG_HI"
    rows = load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert rows[0]["age_group"] == "50 and over"
    found = find_corpus("crema-d")
    assert found.clips == prepared.corpus.clips and found.root == tmp_path / "src"
    assert found.strata == ["emotion", "level", "sentence_id"] and found.licence == "ODbL 1.0"
    assert read_audio(found.path(found.clips[0]), 16_000).rate == 16_000


def test_nothing_changed_nothing_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = _faulty_crema(tmp_path / "src")
    first = _prepare("crema-d", source, tmp_path)
    asked: list[list[Path]] = []
    real = check_cache.check_files
    monkeypatch.setattr(check_cache, "check_files", lambda paths: asked.append(paths) or real(paths))
    again = _prepare("crema-d", source, tmp_path)
    assert asked == [[]] and again.corpus == first.corpus and again.left_out == first.left_out
    write(source / "AudioWAV" / CLIPS[0], speechlike(0.6, seed=5))
    changed = _prepare("crema-d", source, tmp_path)
    assert asked[1] == [source / "AudioWAV" / CLIPS[0]]
    assert changed.audio[f"AudioWAV/{CLIPS[0]}"].duration_s == 0.6


def test_a_damaged_cache_is_made_again(tmp_path: Path) -> None:
    source = _faulty_crema(tmp_path / "src")
    first = _prepare("crema-d", source, tmp_path)
    (first.folder / "checks.parquet").write_bytes(b"PAR1 nonsense")
    assert _prepare("crema-d", source, tmp_path).audio == first.audio


def test_lfs_pointers_are_told_in_one_message_and_write_nothing(tmp_path: Path) -> None:
    crema_d(tmp_path / "src", [])
    (tmp_path / "src" / "AudioWAV").mkdir()
    for name in CLIPS:
        (tmp_path / "src" / "AudioWAV" / name).write_text(POINTER, encoding="utf-8")
    with pytest.raises(UserError, match=r"4 of 4 clips are git-lfs pointers.*git lfs pull"):
        _prepare("crema-d", tmp_path / "src", tmp_path)
    assert not list((tmp_path / "data").rglob("*.*rquet"))


@pytest.mark.parametrize("failing", ["save_checks", "write_manifest", "_write_text"])
def test_a_disk_that_fills_up_leaves_the_old_manifest_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    source = _faulty_crema(tmp_path / "src")
    folder = _prepare("crema-d", source, tmp_path).folder
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    write(source / "AudioWAV" / "1002_IEO_ANG_HI.wav", speechlike(0.6, seed=5))

    def full(path: Path, *_: object) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(prepared_folder, failing, full)
    with pytest.raises(UserError, match="disk is full"):
        _prepare("crema-d", source, tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_audio_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    _prepare("crema-d", _faulty_crema(tmp_path / "src"), tmp_path)
    (tmp_path / "src").rename(tmp_path / "moved")
    with pytest.raises(UserError, match=r"which is gone: run `vibe-harness corpus prepare` again"):
        find_corpus("crema-d")


def test_what_cannot_be_prepared(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give --source, the folder or zip of CREMA-D"):
        _prepare("crema-d", None, tmp_path)
    with pytest.raises(UserError, match="'crema-d' is not prepared yet"):
        _prepare("crema-d-pitch-swapped", None, tmp_path)
    with pytest.raises(UserError, match="is made from 'crema-d': leave --source out"):
        _prepare("crema-d-pitch-swapped", tmp_path, tmp_path)
    with pytest.raises(UserError, match=r"no card for a corpus 'crema'. Did you mean 'crema-d'"):
        load_corpus_card("crema")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "corpus: mine\nversion: 1\ndescription: x\nimporter: crema-d\nselct: {}\n",
            "mine.yaml:5: unknown field 'selct'. Did you mean 'select'",
        ),
        (
            "corpus: mine\nversion: 1\ndescription: x\nbase: demo\nmanifest: m.csv\n",
            "mine.yaml:1: name one of importer, base",
        ),
        ("corpus: other\nversion: 1\ndescription: x\nbase: demo\n", "but its file is named 'mine'"),
        ("corpus: mine\nversion: 1\ndescription: x\nbase: demo\nbands: {age: [50, 30]}\n", "rising numbers"),
        ("corpus: mine\nversion: 1\ndescription: x\nbase: demo\nperturb: {}\n", "nothing is changed"),
        ("corpus: mine\nversion: 1\ndescription: x\nbase: demo\nperturb: {rate: 9}\n", "perturb.rate"),
    ],
)
def test_cards_that_will_not_do(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=said):
        load_corpus_card(str(tmp_path / "mine.yaml"))


def test_every_card_that_comes_along_is_sound() -> None:
    from vibe_harness.corpora.card import corpus_cards
    from vibe_harness.corpora.importers.base import IMPORTERS

    cards = {name: load_corpus_card(name)[0] for name in corpus_cards()}
    assert {"crema-d", "l2-arctic", "l2-arctic-600", "speech-accent-archive", "spoken-stereoset", "biasinear"} <= set(
        cards
    )
    assert all(card.base or card.importer in IMPORTERS.names() for card in cards.values())
    assert cards["l2-arctic-600"].select.sentences == 600 and cards["l2-arctic-600"].select.shared_sentences
    assert cards["l2-arctic"].speaker_strata == {"accent": ["gender"]}


def test_l2_arctic_by_a_card_of_ones_own(tmp_path: Path) -> None:
    sentences = {f"arctic_a{i:04d}": f"plain words number {i}" for i in range(6)} | {"arctic_b0001": "there she goes"}
    l2_arctic(tmp_path / "src", sentences, ["ABA", "SKA"])
    (tmp_path / "src" / "SKA" / "wav" / "arctic_a0000.wav").unlink()
    card = (tmp_path / "few.yaml").resolve()
    (tmp_path / "words.txt").write_text("[gender]\nshe\n", encoding="utf-8")
    card.write_text(
        "corpus: few\nversion: 1\ndescription: x\nimporter: l2-arctic\n"
        "select: {lexicon: words.txt, shared_sentences: true, sentences: 3}\nspeaker_strata: {accent: [gender]}\n",
        encoding="utf-8",
    )
    prepared = _prepare(str(card), tmp_path / "src", tmp_path)
    assert len(prepared.corpus.clips) == 6
    assert counted(prepared.left_out) == {
        "sentence not drawn": 4, "mentions gender": 2, "not every speaker has the sentence": 1,
    }  # fmt: skip
    assert find_corpus("few").speaker_strata == {"accent": ["gender"]}


def test_the_archive_with_a_language_that_is_absent(tmp_path: Path) -> None:
    rows = [f"30,3,x,korean{i},korean,{'male' if i else 'female'},{i},y,FALSE,,," for i in range(4)]
    prepared = _prepare("speech-accent-archive", saa(tmp_path / "s", rows, [f"korean{i}" for i in range(4)]), tmp_path)
    assert len(prepared.corpus.clips) == 2
    assert any("arabic, french, mandarin, russian, spanish" in note for note in prepared.corpus.notes)


@needs_recordings
def test_the_real_samples(tmp_path: Path) -> None:
    assert len(_prepare("crema-d", SHARED / "crema-d", tmp_path).corpus.clips) == 7
    archive = _prepare("speech-accent-archive", SHARED / "saa", tmp_path)
    assert len(archive.corpus.clips) == 24  # of the six languages the sample has arabic and russian
    stereo = _prepare("spoken-stereoset", SHARED / "spoken_stereoset", tmp_path)
    assert len(stereo.corpus.clips) == 112 and stereo.corpus.synthetic
    kinds = {(one.format, one.rate) for one in stereo.audio.values()}
    assert {kind for kind, _ in kinds} == {"WAV", "MP3"} and len({rate for _, rate in kinds}) > 1
    with pytest.raises(UserError, match="git-lfs"):
        _prepare("crema-d", SHARED / "crema-d-lfs-pointers", tmp_path)


def _zipped(source: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(source.rglob("*")):
            archive.write(file, f"CREMA-D-master/{file.relative_to(source)}")
    return path


def test_a_zip_as_source(tmp_path: Path) -> None:
    archive = _zipped(crema_d(tmp_path / "src", CLIPS), tmp_path / "crema.zip")
    prepared = _prepare("crema-d", archive, tmp_path)
    archive.unlink()
    assert len(find_corpus("crema-d").clips) == 4 and prepared.corpus.root.is_relative_to(prepared.folder)


def test_a_source_that_will_not_do_leaves_what_was_unpacked_before(tmp_path: Path) -> None:
    prepared = _prepare("crema-d", _zipped(crema_d(tmp_path / "src", CLIPS), tmp_path / "crema.zip"), tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("words", encoding="utf-8")
    with pytest.raises(UserError, match="not CREMA-D"):
        _prepare("crema-d", _zipped(tmp_path / "other", tmp_path / "other.zip"), tmp_path)
    corpus = find_corpus("crema-d")
    assert corpus == prepared.corpus and all(corpus.path(clip).is_file() for clip in corpus.clips)
    assert len(list((prepared.folder / "audio").iterdir())) == 1
    again = _prepare("crema-d", _zipped(crema_d(tmp_path / "new", CLIPS[:3]), tmp_path / "crema.zip"), tmp_path)
    assert len(again.corpus.clips) == 3 and len(list((prepared.folder / "audio").iterdir())) == 1


def test_two_at_once_in_one_folder(tmp_path: Path) -> None:
    source = _faulty_crema(tmp_path / "src")
    folder = _prepare("crema-d", source, tmp_path).folder
    with locked(folder), pytest.raises(UserError, match="another process is preparing this corpus") as error:
        _prepare("crema-d", source, tmp_path)
    assert "\n" not in str(error.value)
    assert len(_prepare("crema-d", source, tmp_path).corpus.clips) == 4


def test_progress_has_a_total(tmp_path: Path) -> None:
    stages: dict[str, list[int]] = {}

    @contextmanager
    def stage(name: str, total: int) -> Iterator[Callable[[int], None]]:
        stages[name] = [total, 0]

        def tick(steps: int) -> None:
            stages[name][1] += steps

        yield tick

    card, path = load_corpus_card("crema-d")
    prepare(card, path, str(crema_d(tmp_path / "src", CLIPS)), tmp_path / "out", stage)
    assert stages == {"checking clips": [4, 4]}


def test_two_rows_that_name_one_clip_are_refused(tmp_path: Path) -> None:
    row = "00000,Ava,female,I walk.,A hat.,Bags sway.,A case sways.,{},[]"
    table = tmp_path / "src" / "metadata" / "gender_v1.0.csv"
    table.parent.mkdir(parents=True)
    head = "id,speaker,gender,context,irrelevant,stereotypical,anti-stereotypical,labels,annotators"
    table.write_text("\n".join([head, row, row]), encoding="utf-8")
    write(tmp_path / "src" / "speech" / "gender" / "00000_Ava.wav", speechlike(0.3))
    with pytest.raises(UserError, match="two clips have the id 'spoken-stereoset/Ava/gender-00000'"):
        _prepare("spoken-stereoset", tmp_path / "src", tmp_path)


def test_what_is_linked_from_elsewhere_is_left_out(tmp_path: Path) -> None:
    """A manifest that names it would be refused later, when the corpus is used."""
    source = crema_d(tmp_path / "src", CLIPS)
    for name in CLIPS[:2]:
        (source / "AudioWAV" / name).replace(tmp_path / name)
        (source / "AudioWAV" / name).symlink_to(tmp_path / name)
    prepared = _prepare("crema-d", source, tmp_path)
    assert counted(prepared.left_out) == {"a link out of the source folder: copy the file there": 2}
    assert len(find_corpus("crema-d").clips) == 2
    for name in CLIPS[2:]:
        (source / "AudioWAV" / name).replace(tmp_path / name)
        (source / "AudioWAV" / name).symlink_to(tmp_path / name)
    with pytest.raises(UserError, match="all of its clips are links out of that folder"):
        _prepare("crema-d", source, tmp_path)


def test_faults_of_options_alone_are_told(tmp_path: Path) -> None:
    base = tmp_path / "data" / "corpora" / "base"
    write(base / "question.wav", speechlike())
    (base / "manifest.csv").write_text("file,speaker,option_a_file\nquestion.wav,s,absent.wav\n", encoding="utf-8")
    (tmp_path / "mine.yaml").write_text("corpus: mine\nversion: 1\ndescription: x\nbase: base\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"absent.wav: no such file"):
        _prepare(str(tmp_path / "mine.yaml"), None, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems take no such names")
def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    source = crema_d(tmp_path / "src", CLIPS)
    (source / "AudioWAV" / os.fsdecode(b"\xff.wav")).touch()
    with pytest.raises(UserError, match="is not UTF-8"):
        _prepare("crema-d", source, tmp_path)
    assert not list((tmp_path / "data").rglob("*.part"))
