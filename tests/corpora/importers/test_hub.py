"""Copies of the corpora as data sets of the hub: read by `datasets` from a folder laid out as one, no hub at hand."""

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from tests.corpora.sounds import speechlike
from vibe_harness.corpora.card import load_corpus_card
from vibe_harness.corpora.importers.base import IMPORTERS, Listing
from vibe_harness.corpora.importers.hub import HubRow, stream
from vibe_harness.corpora.prepare import prepare as preparing
from vibe_harness.corpora.prepare.folder import PreparedCorpus
from vibe_harness.errors import UserError


def _audio(name: str | None, seed: int) -> dict[str, object]:
    data = io.BytesIO()
    soundfile.write(data, speechlike(0.3, 8_000, seed=seed), 8_000, format="WAV")
    return {"bytes": data.getvalue(), "path": name}


def _dataset(folder: Path, rows: list[dict[str, object]]) -> Path:
    """Parquet as `datasets` writes it: a feature Audio, of file content and file name."""
    columns = dict.fromkeys(column for row in rows for column in row)
    features = {name: {"dtype": "string", "_type": "Value"} for name in columns} | {"audio": {"_type": "Audio"}}
    table = pa.table({name: pa.array([row.get(name) for row in rows]) for name in columns})
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    (folder / "data").mkdir(parents=True)
    pq.write_table(table, folder / "data" / "train-00000-of-00001.parquet")
    return folder


def _prepared(name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PreparedCorpus:
    """As from the command line, the hub's id standing for a folder."""
    monkeypatch.setattr(preparing, "stream", lambda _, tick, work: stream(str(folder), tick, work))
    card, path = load_corpus_card(name)
    return preparing.prepare(card, path, "someone/some-corpus", tmp_path / "out")


def _imported(name: str, folder: Path, work: Path) -> Listing:
    hub = IMPORTERS.get(name).hub
    assert hub is not None
    return hub(stream(str(folder)), work, name)


def test_rows_that_a_later_revision_lacks_are_no_clips_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["1001_IEO_ANG_HI.wav", "1001_TIE_NEU_XX.wav", "1002_IEO_ANG_HI.wav", "1002_TIE_NEU_XX.wav"]
    rows: list[dict[str, object]] = [
        {"audio": _audio(name, index), "gender": "Female" if name.startswith("1002") else "Male"}
        for index, name in enumerate(names)
    ]
    first = _prepared("crema-d", _dataset(tmp_path / "first", rows), tmp_path, monkeypatch)
    assert len(first.corpus.clips) == 4
    later = _prepared("crema-d", _dataset(tmp_path / "later", rows[:1] + rows[2:]), tmp_path, monkeypatch)
    assert [Path(clip.file).stem for clip in later.corpus.clips] == [Path(names[at]).stem for at in (0, 2, 3)]


def test_crema_d(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["1001_IEO_ANG_HI.wav", "1001_TIE_NEU_XX.wav", "1002_IEO_ANG_HI.wav"]
    rows: list[dict[str, object]] = [
        {"audio": _audio(name, index), "gender": "Female" if name.startswith("1002") else "Male", "age": "30"}
        for index, name in enumerate(names)
    ]
    prepared = _prepared("crema-d", _dataset(tmp_path / "hub", rows), tmp_path, monkeypatch)
    assert [(clip.speaker, clip.groups["gender"], clip.groups["emotion"]) for clip in prepared.corpus.clips] == [
        ("1001", "male", "anger"), ("1001", "male", "neutral"), ("1002", "female", "anger"),
    ]  # fmt: skip
    assert prepared.corpus.clips[0].groups["age_group"] == "30 to 49"
    assert (prepared.corpus.root / prepared.corpus.clips[0].file).read_bytes() == rows[0]["audio"]["bytes"]  # type: ignore[index]


def test_crema_d_whose_rows_do_not_do(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"audio": _audio("1001_IEO_ANG_HI.wav", 0), "sex": "male"},
        {"audio": _audio("1001_TIE_ANG_XX.wav", 1), "sex": "female"},
    ]
    with pytest.raises(UserError, match=r"row 2 of train: actor 1001 is .*'female'"):
        _imported("crema-d", _dataset(tmp_path / "a", rows), tmp_path / "work")
    with pytest.raises(UserError, match=r"no column 'sex' or 'gender' or .*; it has 'audio', 'emotion'"):
        _imported("crema-d", _dataset(tmp_path / "b", [{"audio": rows[0]["audio"], "emotion": "x"}]), tmp_path / "work")


def test_l2_arctic(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"audio": _audio(name, 7), "speaker_code": speaker, "text": "Some words.", "id": "arctic_b0002"}
        for speaker in ("SKA", "ABA")
        for name in ("arctic_a0001.wav", None)
    ]
    listing = _imported("l2-arctic", _dataset(tmp_path / "hub", rows), tmp_path / "work")
    assert [clip.id for clip in listing.clips] == [
        "l2-arctic/ABA/arctic_a0001", "l2-arctic/ABA/arctic_b0002", "l2-arctic/SKA/arctic_a0001",
        "l2-arctic/SKA/arctic_b0002",
    ]  # fmt: skip
    assert listing.clips[3].groups["gender"] == "female" and listing.clips[3].text == "Some words."


def test_the_archive(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"speech_sample": "korean1", "gender": "male", "native_language": "korean", "audio": _audio("k.mp3", 1)},
        {"speech_sample": "korean2", "gender": "famale", "native_language": "korean", "audio": _audio(None, 2)},
        {"speech_sample": "korean3", "gender": "male", "native_language": "korean", "audio": None},
    ]
    listing = _imported("speech-accent-archive", _dataset(tmp_path / "hub", rows), tmp_path / "work")
    assert [(clip.file, clip.groups["gender"]) for clip in listing.clips] == [
        ("recordings/korean1.mp3", "male"), ("recordings/korean2.wav", "female"),
    ]  # fmt: skip
    assert [one.why for one in listing.left_out] == ["no audio file"]


def test_spoken_stereoset(tmp_path: Path) -> None:
    words = {"context": "c", "stereotypical": "s", "anti-stereotypical": "a", "irrelevant": "i"}
    rows: list[dict[str, object]] = [
        {"id": f"000{index}", "speaker": f"v{index}", group: value, **words, "audio": _audio("x.wav", index)}
        for index, (group, value) in enumerate([("gender", "female"), ("gender", "male"), ("age", "child")])
    ]
    listing = _imported("spoken-stereoset", _dataset(tmp_path / "hub", rows), tmp_path / "work")
    assert {clip.groups.get("gender", clip.groups.get("age")) for clip in listing.clips} == {"female", "male", "child"}
    assert {clip.file for clip in listing.clips} == {f"speech/gender/000{i}_v{i}.wav" for i in (0, 1)} | {
        "speech/age/0002_v2.wav"
    }


def test_audio_files_beside_a_table_are_read_too(tmp_path: Path) -> None:
    for name in ("1001_IEO_ANG_HI.wav", "1001_TIE_NEU_XX.wav"):
        (tmp_path / "hub" / "train").mkdir(parents=True, exist_ok=True)
        (tmp_path / "hub" / "train" / name).write_bytes(_audio(name, len(name))["bytes"])  # type: ignore[arg-type]
    (tmp_path / "hub" / "train" / "metadata.csv").write_text(
        "file_name,sex\n1001_IEO_ANG_HI.wav,male\n1001_TIE_NEU_XX.wav,male\n", encoding="utf-8"
    )
    assert len(_imported("crema-d", tmp_path / "hub", tmp_path / "work").clips) == 2


@pytest.mark.parametrize("name", ["../evil", "a/b", "..", "", "C:evil", "a\\b"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    row = HubRow("hub, row 1", "hf://datasets/a/b", "default", {"audio": _audio("x.wav", 0)})
    with pytest.raises(UserError, match=r"hub, row 1: .* cannot be the name of a file"):
        row.write_audio(tmp_path / "work", name, "x.wav")
    assert not list(tmp_path.rglob("*.wav"))


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "hf://datasets/a/other/x.wav", "hf://datasets/a/b/../c/x.wav", "http://x"]
)
def test_audio_outside_of_the_data_set_is_not_read(path: str) -> None:
    row = HubRow("hub, row 1", "hf://datasets/a/b", "default", {"audio": {"bytes": None, "path": path}})
    with pytest.raises(UserError, match="lies outside of the data set"):
        row.audio()


def test_what_cannot_be_streamed_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"--source .*empty: no such folder, and it cannot be read from the hub"):
        list(stream(str(tmp_path / "empty")))
