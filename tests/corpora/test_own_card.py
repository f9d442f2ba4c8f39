"""A corpus of one's own: what a small card beside a manifest says, and what is wrong with one, a line each."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.corpora.sounds import speechlike, write
from tests.support import SHARED, needs_recordings
from vibe_harness.corpora.card import load_corpus_card
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.corpora.prepare.prepare import prepare
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.errors import UserError
from vibe_harness.planning.config import RunConfig
from vibe_harness.planning.prepare import prepare as plan_run
from vibe_harness.progress import Progress

HEAD = "corpus: mine\nversion: 1\ndescription: Recordings of our own.\n"
ROWS = [
    ("1.wav", "a", "female", "us", "19", "joy"),
    ("2.wav", "b", "female", "us", "29.5", "anger"),
    ("3.wav", "c", "male", "us", "30", "joy"),
    ("4.wav", "d", "female", "uk", "61", "anger"),
    ("5.wav", "e", "male", "uk", "", "joy"),
    ("6.wav", "f", "male", "fr", "150", "anger"),
]


def own(folder: Path, card: str, name: str = "mine.yaml") -> Corpus:
    """The corpus of ROWS with that card beside it."""
    folder.mkdir(exist_ok=True)
    with (folder / "mine.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("file", "speaker", "gender", "Accent Region", "age", "emotion"), *ROWS])
    (folder / name).write_text(HEAD + card, encoding="utf-8")
    return find_corpus(str(folder / ("mine.csv" if name == "mine.yaml" else name)))


def test_a_card_beside_a_manifest_says_all_that_a_shipped_one_does(tmp_path: Path) -> None:
    corpus = own(
        tmp_path,
        "bands: {age: {young: [18, 29], middle: [30, 60], old: [61, 120]}}\n"
        "select:\n  where: {Accent Region: [us, uk]}\n  balance: {column: gender, within: Accent Region}\n"
        "  min_speakers: 2\nstrata: [emotion]\nspeaker_strata: {gender: [Accent Region]}\n"
        "groups: {gender: [unknown]}\ndistinct_speakers: ['0010', '10']\n",
    )
    assert corpus.name == "mine" and len(corpus.clips) == 4
    bands = {clip.speaker: clip.groups.get("age_group") for clip in corpus.clips}
    assert bands.items() <= {"a": "young", "b": "young", "c": "middle", "d": "old", "e": None}.items()
    assert [clip.groups["Accent Region"] for clip in corpus.clips] == ["us", "us", "uk", "uk"]
    assert (corpus.strata, corpus.speaker_strata) == (["emotion"], {"gender": ["Accent Region"]})
    assert (corpus.min_speakers, corpus.named_groups) == (2, {"gender": ["unknown"]})
    assert corpus.distinct_speakers == ("0010", "10")
    assert len(corpus.left_out) == 2 and ("6.wav", "Accent Region is not selected") in corpus.left_out


def test_a_number_in_no_band_has_no_group_and_bands_may_be_given_by_where_they_begin(tmp_path: Path) -> None:
    named = own(tmp_path / "a", "bands: {age: {young: [18, 29], old: [61, 120]}}\n")
    assert [clip.groups.get("age_group") for clip in named.clips] == ["young", "young", None, "old", None, None]
    starts = own(tmp_path / "b", "bands: {age: [30]}\n")
    assert [clip.groups.get("age_group") for clip in starts.clips][:3] == ["under 30", "under 30", "30 and over"]


def test_a_card_may_be_called_otherwise_and_name_its_manifest(tmp_path: Path) -> None:
    corpus = own(tmp_path, "manifest: mine.csv\nselect: {where: {gender: [female]}}\n", "women.yaml")
    assert len(corpus.clips) == 3 and len(find_corpus(str(tmp_path / "mine.csv")).clips) == 6


def test_a_manifest_in_a_folder_has_its_card_there(tmp_path: Path) -> None:
    (tmp_path / "manifest.csv").write_text("file,speaker\n1.wav,a\n", encoding="utf-8")
    (tmp_path / "manifest.yaml").write_text(HEAD, encoding="utf-8")
    assert find_corpus(f"{tmp_path}/").name == find_corpus(str(tmp_path / "manifest.yaml")).name == "mine"


def test_another_kind_of_file_beside_a_manifest_is_no_card(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("file,speaker\n1.wav,a\n", encoding="utf-8")
    (tmp_path / "m.yaml").write_text("study: m\nmodels: [simulated]\n", encoding="utf-8")
    assert find_corpus(str(tmp_path / "m.csv")).name == "m"


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ("strata: [emotions]\n", r"mine\.yaml:4: strata: .*no column 'emotions'.*Did you mean 'emotion'"),
        ("bands: {ages: [30]}\n", r"mine\.yaml:4: bands\.ages: .*no column 'ages'"),
        ("select: {where: {sex: [male]}}\n", r"mine\.yaml:4: select\.where\.sex: .*no column 'sex'"),
        ("select: {balance: {column: gender, within: land}}\n", r"select\.balance\.within: .*no column 'land'"),
        ("speaker_strata: {gender: [region]}\n", r"speaker_strata\.gender: .*no column 'region'"),
        ("groups: {race: [unknown]}\n", r"groups\.race: .*no column 'race'"),
        ("select: {where: {gender: [women]}}\n", r"mine\.yaml: select\.where: no clip has the gender 'women'"),
        ("bands: {age: {young: [0, 30], old: [30, 99]}}\n", "overlap: 'young' ends at 30, 'old' begins at 30"),
        ("bands: {age: {young: [30, 0]}}\n", "'young' ends at 0, before it begins at 30"),
        ("bands: {age: {young: 30}}\n", "where bands begin"),
        ("bands: {age: [50, 30]}\n", "rising numbers"),
        ("bands: {emotion: [30]}\n", r"1\.wav has the emotion 'joy', which is not a number"),
        ("select: {min_speakers: 0}\n", "min_speakers"),
        ("selct: {}\n", "unknown field 'selct'"),
        ("perturb: {rate: 1.25}\n", "corpus prepare"),
        ("importer: crema-d\nbase: demo\n", "name one of importer"),
    ],
)
def test_what_is_wrong_with_a_card_is_one_line(card: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said) as caught:
        own(tmp_path, card)
    assert "\n" not in str(caught.value)


def test_columns_that_a_manifest_lacks_are_named_all_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        own(tmp_path, "strata: [emotions, rooms]\ngroups: {race: [unknown]}\n")
    assert len(str(caught.value).splitlines()) == 3


def test_levels_are_made_by_corpus_prepare(tmp_path: Path) -> None:
    own(tmp_path, "")
    for number, (file, *_) in enumerate(ROWS):
        write(tmp_path / file, speechlike(seed=number, pitch=100.0 + 20 * number))
    path = tmp_path / "mine.yaml"
    path.write_text(
        HEAD + "bands: {age: [30]}\nperturb: {levels: {loudness: [0.5, 1]}}\nstrata: [emotion]\n"
        "select: {min_speakers: 2}\ngroups: {gender: [unknown]}\n",
        encoding="utf-8",
    )
    card, path = load_corpus_card(str(path))
    prepare(card, path, None, tmp_path / "out")
    made = find_corpus(str(tmp_path / "out" / "manifest.parquet"))
    assert len(made.clips) == 12 and {clip.groups["loudness"] for clip in made.clips} == {"0.5", "1"}
    assert (made.min_speakers, made.named_groups, made.strata) == (2, {"gender": ["unknown"]}, ["emotion"])


def ravdess(source: Path) -> tuple[list[str], list[list[str]]]:
    with (source / "manifest.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def archive(source: Path) -> tuple[list[str], list[list[str]]]:
    rows = []
    with (source / "speakers_all.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            sound = f"recordings/recordings/{row['filename']}.mp3"
            if (source / sound).is_file():
                rows.append([sound, row["filename"], row["native_language"], row["sex"], row["age"]])
    return ["file", "speaker", "accent", "gender", "age"], rows


def stereoset(source: Path) -> tuple[list[str], list[list[str]]]:
    columns = ["context", "stereotypical", "anti-stereotypical", "irrelevant"]
    rows = []
    with (source / "metadata/gender_v1.0.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            sound = f"speech/gender/{row['id']}_{row['speaker']}.wav"
            if (source / sound).is_file():
                item = "|".join(sorted(row[column] for column in columns))
                rows.append([sound, row["speaker"], row["gender"], item, *(row[column] for column in columns)])
    named = ["text", *columns[1:]]
    return ["file", "speaker", "gender", "item", *named], rows


FIRST_LANGUAGES = "[amharic, arabic, bulgarian, cantonese, dutch]"
PUBLISHED = [
    (ravdess, "ravdess", "story", ["gender"], "strata: [sentence_id]\n"),
    (archive, "saa", "story", ["accent"], "bands: {age: {young: [18, 29], middle: [30, 49], old: [50, 99]}}\n"
     f"select: {{where: {{accent: {FIRST_LANGUAGES}}}, min_speakers: 2}}\nspeaker_strata: {{accent: [gender]}}\n"),
    (archive, "saa", "story", ["age_group"], "bands: {age: {young: [18, 29], middle: [30, 49], old: [50, 99]}}\n"
     "select: {min_speakers: 2}\nspeaker_strata: {age_group: [gender]}\n"),
    (stereoset, "spoken_stereoset", "spoken_stereoset", ["gender"], "strata: [item]\n"),
]  # fmt: skip


@pytest.mark.slow
@needs_recordings
@pytest.mark.parametrize(("read", "folder", "task", "dimensions", "card"), PUBLISHED)
def test_published_recordings_with_a_card_beside_a_manifest(
    read: Callable[[Path], tuple[list[str], list[list[str]]]],
    folder: str,
    task: str,
    dimensions: list[str],
    card: str,
    tmp_path: Path,
) -> None:
    """Everything up to the first request: the table, the sound, the groups."""
    header, rows = read(SHARED / "corpora" / folder)
    for row in rows:
        copy = tmp_path / row[0]
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SHARED / "corpora" / folder / row[0], copy)
    with (tmp_path / "mine.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    (tmp_path / "mine.yaml").write_text(HEAD + card, encoding="utf-8")
    config = RunConfig(
        model="simulated", tasks=[task], corpus=str(tmp_path / "mine.csv"), dimensions=dimensions, skip_bad_clips=True
    )
    [ready] = plan_run(config, Progress())
    assert len(ready.plan.clips) + len(ready.bad_clips) + len(ready.corpus.left_out) == len(rows) >= 48
    assert list(ready.dimensions) == dimensions and len(ready.plan.clips) >= 40, ready.bad_clips
