"""Manifests: what is read, and what is refused with file, line and remedy."""

import json
import time
import tracemalloc
import unicodedata
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpora.sounds import speechlike, write
from vibe_harness.corpora import table_rows as tables
from vibe_harness.corpora.audio.decode import check_audio
from vibe_harness.corpora.group_names import plain
from vibe_harness.corpora.manifest import METADATA, load_manifest
from vibe_harness.errors import UserError
from vibe_harness.records import CheckedAudio

ROWS = [
    {"file": "a/1.wav", "speaker": "s1", "gender": "female", "text": "Good day, all", "sentence_id": "01"},
    {"file": "a/2.wav", "speaker": "s2", "gender": "male", "text": "", "sentence_id": "02"},
    {"file": "b/1.wav", "speaker": "s2", "gender": "", "text": "", "sentence_id": "02"},
]


def _write(folder: Path, kind: str, rows: list[dict[str, str]] = ROWS, name: str = "manifest") -> Path:
    path = folder / f"{name}.{kind}"
    frame = pd.DataFrame(rows)
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_three_formats_give_the_same_corpus(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "voices"
    folder.mkdir()
    corpus = load_manifest(_write(folder, kind))
    assert corpus.name == "voices" and corpus.root == folder and not corpus.synthetic and corpus.licence is None
    assert [clip.id for clip in corpus.clips] == ["voices/s1/a/1", "voices/s2/a/2", "voices/s2/b/1"]
    assert [dict(clip.groups) for clip in corpus.clips] == [
        {"gender": "female", "sentence_id": "01"},
        {"gender": "male", "sentence_id": "02"},
        {"sentence_id": "02"},  # an empty cell: the clip lacks the group
    ]
    assert [clip.text for clip in corpus.clips] == ["Good day, all", None, None]
    assert [clip.sentence_id for clip in corpus.clips] == ["01", "02", "02"]
    assert corpus.path(corpus.clips[2]) == folder / "b" / "1.wav"


def test_names_ids_licence_and_synthetic(tmp_path: Path) -> None:
    rows = [
        {"file": "x.wav", "speaker": "s", "id": "one", "licence": "CC0", "synthetic": "True"},
        {"file": "x.wav", "speaker": "s", "id": "two", "licence": "Apache-2.0", "synthetic": "false"},
    ]
    corpus = load_manifest(_write(tmp_path, "csv", rows, name="mine"))
    assert corpus.name == "mine"
    assert [clip.id for clip in corpus.clips] == ["mine/s/one", "mine/s/two"]
    assert corpus.licence == "Apache-2.0; CC0" and corpus.synthetic and "synthetic" in corpus.notes[0]
    assert load_manifest(tmp_path / "mine.csv", "other").clips[0].id == "other/s/one"


def test_numbers_and_blanks_of_data_frames(tmp_path: Path) -> None:
    rows = '{"file": "1.wav", "speaker": 7, "age": 24, "native": true, "x": null, "y": NaN}\n\n'
    (tmp_path / "m.jsonl").write_text(rows, encoding="utf-8")
    clip = load_manifest(tmp_path / "m.jsonl").clips[0]
    assert clip.speaker == "7" and dict(clip.groups) == {"age": "24", "native": "true"}
    frame = pd.DataFrame({"file": ["1.wav", "2.wav"], "speaker": [7, 8], "age": [24.0, float("nan")], "y": [None, "b"]})
    frame.to_parquet(tmp_path / "m.parquet")
    one, two = load_manifest(tmp_path / "m.parquet").clips
    assert one.speaker == "7" and dict(one.groups) == {"age": "24"} and dict(two.groups) == {"y": "b"}


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_byte_order_mark_and_crlf(tmp_path: Path, start: bytes, end: bytes) -> None:
    lines = ["file,speaker,city", '"a, b.wav",s1,Zürich', '"two', 'lines.wav",s2,東京', "", "c.wav , s3 ,x"]
    (tmp_path / "m.csv").write_bytes(start + end.join(line.encode() for line in lines) + end)
    clips = load_manifest(tmp_path / "m.csv").clips
    assert [clip.speaker for clip in clips] == ["s1", "s2", "s3"]
    assert clips[0].groups["city"] == "Zürich" and clips[1].groups["city"] == "東京" and clips[2].file == "c.wav"


HEAD = "file,speaker,gender\n"
REFUSED = [
    ("", ["m.csv", "first line names the columns"]),
    (HEAD, ["no rows"]),
    ("files,speaker\na.wav,s\n", ["m.csv:1", "no column 'file'", "'files'"]),
    ("file;speaker\na.wav;s\n", ["separated by commas"]),
    ("file,who\na.wav,s\n", ["m.csv:1", "'speaker'"]),
    (HEAD + "a.wav,,f\n", ["m.csv:2", "'speaker' is empty"]),
    (HEAD + "a.wav,s,f\n  ,s,f\n", ["m.csv:3", "'file' is empty"]),
    (HEAD + "a.wav,s,f\nb.wav,s,f\na.wav,s,m\n", ["m.csv:4", "line 2", "m/s/a", "'id'"]),
    (HEAD + "a.wav,s,f\na.flac,s,f\n", ["m.csv:3", "line 2"]),
    (HEAD + "/etc/a.wav,s,f\n", ["m.csv:2", "an absolute path"]),
    (HEAD + "C:/a.wav,s,f\n", ["m.csv:2", "an absolute path"]),
    (HEAD + "x/../../a.wav,s,f\n", ["m.csv:2", "leaves the corpus folder"]),
    (HEAD + "x\\a.wav,s,f\n", ["m.csv:2", "forward slashes"]),
    ("file,speaker,speaker\na.wav,s,t\n", ["m.csv:1", "'speaker' is repeated"]),
    ("file,speaker,\na.wav,s,\n", ["m.csv:1", "no name"]),
    (HEAD + "a.wav,s\n", ["m.csv:2", "2 cells", "3 columns"]),
    (HEAD + '"a\nb.wav",s,f\nc.wav,s,f,g\n', ["m.csv:4", "4 cells"]),
    (HEAD + '"a.wav,s,f\n', ["m.csv", "not a CSV line"]),
    ("file,speaker,synthetic\na.wav,s,perhaps\n", ["m.csv:2", "true or false"]),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_refused_csv(tmp_path: Path, text: str, said: list[str]) -> None:
    (tmp_path / "m.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as raised:
        load_manifest(tmp_path / "m.csv")
    for words in said:
        assert words in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"file": "a.wav"}\n', ["m.jsonl:1", "'speaker'"]),
        ('{"file": "a.wav", "speaker": "s"}\n{"file": "b.wav"}\n', ["m.jsonl:2", "'speaker'"]),
        ('{"file": "a.wav", "speaker": "s", "speaker": "t"}\n', ["m.jsonl:1", "is repeated"]),
        ('{"file": "a.wav", "speaker": {"x": 1}}\n', ["m.jsonl:1", "'speaker' holds a list or an object"]),
        ("[1, 2]\n", ["m.jsonl:1", "one object"]),
        ("3\n", ["m.jsonl:1", "one object"]),
        ('{"file": \n', ["m.jsonl:1", "not a line of JSON"]),
        ("[" * 100_000 + "\n", ["m.jsonl:1", "JSON"]),
        ("", ["no rows"]),
    ],
)
def test_refused_jsonl(tmp_path: Path, text: str, said: list[str]) -> None:
    (tmp_path / "m.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as raised:
        load_manifest(tmp_path / "m.jsonl")
    for words in said:
        assert words in str(raised.value)


def test_refused_encodings_and_files(tmp_path: Path) -> None:
    text = HEAD + "a.wav,s,f\nb.wav,José,f\n"
    (tmp_path / "u16.csv").write_text(text, encoding="utf-16")
    (tmp_path / "latin.csv").write_text(text, encoding="latin-1")
    (tmp_path / "no.parquet").write_bytes(b"PAR1 but not really")
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    (tmp_path / "folder.csv").mkdir()
    for name, said in [
        ("u16.csv", "UTF-16"),
        ("latin.csv", "latin.csv:3: not UTF-8"),
        ("no.parquet", "not a Parquet file"),
        ("a.txt", ".csv, .jsonl or .parquet"),
        ("folder.csv", "a folder"),
        ("absent.csv", "no such file"),
        ("absent.parquet", "no such file"),
    ]:
        with pytest.raises(UserError, match=said):
            load_manifest(tmp_path / name)


def test_many_columns_are_each_looked_at_once(tmp_path: Path) -> None:
    class Counted(str):
        __slots__ = ()
        seen = 0

        def __eq__(self, other: object) -> bool:
            Counted.seen += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [Counted(f"c{number}") for number in range(2_000)]
    tables._check_names("x", names)
    assert Counted.seen < 20_000  # all with all would be 4,000,000
    with pytest.raises(UserError, match="the column 'c7' is repeated"):
        tables._check_names("x", [*names, "c7"])


def test_a_link_out_of_the_folder_is_refused_and_one_within_is_not(tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    (root / "store").mkdir(parents=True)
    (tmp_path / "secret.wav").touch()
    (root / "store" / "b.wav").touch()
    (root / "within.wav").symlink_to(root / "store" / "b.wav")
    (root / "out.wav").symlink_to(tmp_path / "secret.wav")
    (root / "away").symlink_to(tmp_path)
    manifest = root / "manifest.csv"
    manifest.write_text("file,speaker\nwithin.wav,s\n", encoding="utf-8")
    load_manifest(manifest)
    for file in ("out.wav", "away/secret.wav"):
        manifest.write_text(f"file,speaker\n{file},s\n", encoding="utf-8")
        with pytest.raises(UserError, match=r"manifest.csv:2: .* link out of the corpus folder"):
            load_manifest(manifest)


cells = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).map(str.strip).filter(bool)


@settings(deadline=None)
@given(speakers=st.lists(cells, min_size=1, max_size=8, unique_by=plain), group=cells)
def test_any_text_survives(speakers: list[str], group: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("any")
    rows = [{"file": f"{i}.wav", "speaker": speaker, "g": group} for i, speaker in enumerate(speakers)]
    for kind in ("csv", "jsonl", "parquet"):
        clips = load_manifest(_write(folder, kind, rows, "m")).clips
        assert [clip.speaker for clip in clips] == speakers and {clip.groups["g"] for clip in clips} == {group}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[("jos\u00e9", "jose\u0301"), ("Bob", "bob"), ("a b", "a  b"), ("s1", "\uff531"), ("s\u200b1", "s1")],
        *[
            ("0010", "10"),
            ("10", "10.0"),
            ("0010", "10.0"),
            ("10", "\uff11\uff10"),
            ("s01", "s1"),
            ("10", "\u0661\u0660"),
        ],
        ("7", "7.0"),
    ],
)
def test_one_speaker_under_two_spellings_is_refused(one: str, other: str, tmp_path: Path) -> None:
    rows = [{"file": f"{i}.wav", "speaker": speaker} for i, speaker in enumerate([one, "x", one, other])]
    for kind in ("csv", "jsonl", "parquet"):
        with pytest.raises(UserError, match="differs in spelling only"):
            load_manifest(_write(tmp_path, kind, rows, "m"))
    apart = [{**row, "speaker": f"{row['speaker']}{i}"} for i, row in enumerate(rows)]
    assert len({clip.speaker for clip in load_manifest(_write(tmp_path, "csv", apart, "m")).clips}) == 4


def test_two_speakers_whose_names_differ_in_spelling_alone_are_two_where_it_is_said(tmp_path: Path) -> None:
    rows = [{"file": f"{i}.wav", "speaker": speaker} for i, speaker in enumerate(["0010", "10", "10", "10.0"])]
    path = _write(tmp_path, "csv", rows[:3], "m")
    with pytest.raises(UserError, match=r"distinct_speakers: \['0010', '10'\]"):
        load_manifest(path)
    corpus = load_manifest(path, distinct_speakers=["0010", "10"])
    assert [clip.speaker for clip in corpus.clips] == ["0010", "10", "10"]
    with pytest.raises(UserError, match="spelling only"):  # of the two it is said, and of no third
        load_manifest(_write(tmp_path, "csv", rows, "m"), distinct_speakers=["0010", "10"])


@pytest.mark.parametrize("disk", ["NFC", "NFD"])
def test_a_file_is_found_in_another_unicode_form(disk: str, tmp_path: Path) -> None:
    """Folder and file; the clip's name stays as the manifest has it, whatever the disk."""
    other = "NFD" if disk == "NFC" else "NFC"
    names = {form: unicodedata.normalize(form, "frühe/größe.wav") for form in ("NFC", "NFD")}
    write(tmp_path / names[disk], speechlike())
    corpus = load_manifest(_write(tmp_path, "csv", [{"file": names[other], "speaker": "s"}], "m"))
    assert corpus.clips[0].file == names[disk] and corpus.clips[0].id == f"m/s/{names[other].removesuffix('.wav')}"
    assert isinstance(check_audio(corpus.path(corpus.clips[0])), CheckedAudio)
    both = [{"file": name, "speaker": "s"} for name in names.values()]
    with pytest.raises(UserError, match="is also in line 2"):
        load_manifest(_write(tmp_path, "csv", both, "m"))


def test_of_two_files_in_both_unicode_forms_the_one_that_is_named_is_taken(tmp_path: Path) -> None:
    names = [unicodedata.normalize(form, "größe.wav") for form in ("NFC", "NFD")]
    for name in names:
        (tmp_path / name).touch()
    for name in names:
        assert load_manifest(_write(tmp_path, "csv", [{"file": name, "speaker": "s"}], "m")).clips[0].file == name


def _big(path: Path, rows: int) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.write("file,speaker,gender,accent,sentence_id,text\n")
        for i in range(rows):
            file.write(f"a/{i % 50}/{i}.wav,s{i % 500},{'fm'[i % 2]},{i % 7},{i % 40},sentence number {i % 40}\n")
    return path


def test_rows_share_what_they_have_in_common(tmp_path: Path) -> None:
    """100,000 rows are to take less than 60 MB, so 20,000 a fifth of that."""
    path = _big(tmp_path / "big.csv", 20_000)
    tracemalloc.start()
    clips = load_manifest(path).clips
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6 / 5
    assert clips[0].groups is clips[14_000].groups


@pytest.mark.slow
def test_a_hundred_thousand_rows_are_read_quickly(tmp_path: Path) -> None:
    path = _big(tmp_path / "big.csv", 100_000)
    started = time.process_time()
    assert len(load_manifest(path).clips) == 100_000
    assert time.process_time() - started < 60  # measured 1.2 s; one that looks through all rows for each takes hours


@pytest.mark.parametrize("facts", [b"{", b"[]", b'{"audio_folder": 3}', b'{"notes": 3}', b"\xff"])
def test_metadata_that_prepare_did_not_write(tmp_path: Path, facts: bytes) -> None:
    table = pa.table({"file": ["a.wav"], "speaker": ["s"]}).replace_schema_metadata({METADATA.encode(): facts})
    pq.write_table(table, tmp_path / "m.parquet")
    with pytest.raises(UserError, match="are not those that `corpus prepare` writes"):
        load_manifest(tmp_path / "m.parquet")
