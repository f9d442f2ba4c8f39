"""Every corpus in the layouts that people have, with its real faults."""

import csv
import shutil
import unicodedata
import zipfile
from collections import Counter
from pathlib import Path

import pytest
import soundfile

from tests.corpora.layouts import CREMA_ACTORS, SHARED, crema_d, l2_arctic, needs_recordings, saa
from tests.corpora.sounds import speechlike, write
from vibe_harness.corpora.card import Balancing
from vibe_harness.corpora.importers.base import IMPORTERS, Listing, counted
from vibe_harness.corpora.importers.l2_arctic import FACTS
from vibe_harness.corpora.select import balanced
from vibe_harness.errors import UserError


def _read(name: str, source: Path, work: Path | None = None) -> Listing:
    return IMPORTERS.get(name).read(source, work or source / "unused", name)


def _left(listing: Listing) -> dict[str, str]:
    return {Path(one.file).name: one.why for one in listing.left_out}


# CREMA-D


def test_crema_d_file_names_say_it_all(tmp_path: Path) -> None:
    listing = _read(
        "crema-d", crema_d(tmp_path / "x" / "CREMA-D-master", ["1001_IEO_ANG_HI.wav", "1002_TIE_NEU_XX.wav"])
    )
    one, two = listing.clips
    assert one.id == "crema-d/1001/1001_IEO_ANG_HI" and one.file == "AudioWAV/1001_IEO_ANG_HI.wav"
    assert one.text == "It's eleven o'clock" and one.sentence_id == "IEO"
    assert one.groups == {
        "gender": "male", "age": "51", "race": "caucasian", "ethnicity": "not hispanic",
        "emotion": "anger", "level": "high", "sentence_id": "IEO",
    }  # fmt: skip
    assert two.groups["ethnicity"] == "hispanic" and two.groups["level"] == "unspecified"
    assert listing.root == tmp_path / "x" / "CREMA-D-master" and not listing.left_out


def test_crema_d_names_that_are_none(tmp_path: Path) -> None:
    names = ["1001_IEO_ANG_HI.wav", "1040_ITH_SAD_XX.wav", "1001_XYZ_ANG_XX.wav", "readme.wav", "1001_TIE_ANG_XX.mp3"]
    crema_d(tmp_path, [name for name in names if name.endswith(".wav")])
    (tmp_path / "AudioWAV" / "1001_TIE_ANG_XX.mp3").touch()
    listing = _read("crema-d", tmp_path)
    assert [clip.speaker for clip in listing.clips] == ["1001"]
    assert _left(listing) == {
        "1040_ITH_SAD_XX.wav": "actor is not in VideoDemographics.csv",
        "1001_XYZ_ANG_XX.wav": "name is not ACTOR_SENTENCE_EMOTION_LEVEL",
        "readme.wav": "name is not ACTOR_SENTENCE_EMOTION_LEVEL",
        "1001_TIE_ANG_XX.mp3": "not a WAV",
    }


def test_crema_d_an_actor_who_stands_twice(tmp_path: Path) -> None:
    folder = crema_d(tmp_path, ["1001_IEO_ANG_HI.wav"], CREMA_ACTORS + CREMA_ACTORS.splitlines()[1] + "\n")
    assert len(_read("crema-d", folder).clips) == 1  # with the same facts it is no matter
    table = CREMA_ACTORS + '1001,51,"Female","Caucasian","Not Hispanic"\n'
    with pytest.raises(UserError, match=r"VideoDemographics.csv:5: actor 1001 has two rows"):
        _read("crema-d", crema_d(tmp_path, ["1001_IEO_ANG_HI.wav"], table))
    table = "ActorID,Age,Sex,Race,Ethnicity,Sex\n1001,51,Male,Caucasian,Hispanic,Female\n"
    with pytest.raises(UserError, match="the column 'Sex' is repeated"):
        _read("crema-d", crema_d(tmp_path, ["1001_IEO_ANG_HI.wav"], table))


def test_crema_d_the_level_x_of_old_clones(tmp_path: Path) -> None:
    listing = _read("crema-d", crema_d(tmp_path / "old", ["1001_ITH_SAD_X.wav"]))
    assert listing.clips[0].id == "crema-d/1001/1001_ITH_SAD_XX" and "taken as XX" in listing.notes[0]
    both = _read("crema-d", crema_d(tmp_path / "both", ["1001_ITH_SAD_X.wav", "1001_ITH_SAD_XX.wav"]))
    assert len(both.clips) == 1 and list(_left(both).values()) == ["the same take under another name"]


def test_crema_d_clips_that_the_release_lists_and_the_copy_lacks(tmp_path: Path) -> None:
    crema_d(tmp_path, ["1001_IEO_ANG_HI.wav", "1001_ITH_SAD_X.wav"])
    names = ["1001_IEO_ANG_HI", "1001_ITH_SAD_XX", "1001_TIE_ANG_XX"]
    rows = "".join(f'{i},"{name}"\n' for i, name in enumerate(names, 1))
    (tmp_path / "SentenceFilenames.csv").write_text('"Stimulus_Number","Filename"\n' + rows, encoding="utf-8")
    assert _left(_read("crema-d", tmp_path)) == {"1001_TIE_ANG_XX.wav": "listed in SentenceFilenames.csv, no such file"}


def test_a_wrong_folder_says_what_was_looked_for_and_found(tmp_path: Path) -> None:
    (tmp_path / "music").mkdir()
    (tmp_path / "notes.txt").touch()
    for name, looked in [
        ("crema-d", "VideoDemographics.csv"),
        ("l2-arctic", "ABA"),
        ("speech-accent-archive", "speakers_all.csv"),
        ("spoken-stereoset", "metadata/gender_v1.0.csv"),
        ("biasinear", "en_Female"),
    ]:
        with pytest.raises(UserError) as raised:
            _read(name, tmp_path)
        assert looked in str(raised.value) and "music/, notes.txt" in str(raised.value)


def test_a_table_that_lacks_columns_names_them(tmp_path: Path) -> None:
    crema_d(tmp_path / "c", [], CREMA_ACTORS.replace('"Sex"', '"Gender"'))
    (tmp_path / "c" / "AudioWAV").mkdir()
    with pytest.raises(UserError, match=r"VideoDemographics.csv: no column 'Sex'; it has 'ActorID'"):
        _read("crema-d", tmp_path / "c")
    saa(tmp_path / "s", [], ["a1"], header="age,filename,country")
    with pytest.raises(UserError, match="no column 'sex', 'native_language'"):
        _read("speech-accent-archive", tmp_path / "s")


# L2-ARCTIC

SENTENCES = {"arctic_a0001": "Author of the danger trail", "arctic_b0002": "The  road\nwas long"}


def test_l2_arctic_speakers_and_prompts(tmp_path: Path) -> None:
    listing = _read("l2-arctic", l2_arctic(tmp_path, SENTENCES))
    assert len(listing.clips) == 48 and not listing.left_out and not listing.notes
    assert len({clip.id for clip in listing.clips}) == 48  # arctic_a0001 alone is not unique
    assert {clip.text for clip in listing.clips} == {"Author of the danger trail", "The road was long"}
    by_speaker = {clip.speaker: clip.groups for clip in listing.clips}
    assert by_speaker["SKA"]["gender"] == "female" and by_speaker["SKA"]["accent"] == "arabic"
    cells = Counter((facts["accent"], facts["gender"]) for facts in FACTS.values())
    assert len(cells) == 12 and set(cells.values()) == {2}


def test_l2_arctic_doubled_folders_suitcase_and_strangers(tmp_path: Path) -> None:
    l2_arctic(tmp_path, SENTENCES, ["SKA"])
    l2_arctic(tmp_path / "ABA", SENTENCES, ["ABA"])
    l2_arctic(tmp_path, SENTENCES, ["XYZ"])
    write(tmp_path / "suitcase_corpus" / "wav" / "aba.wav", speechlike(0.2))
    write(tmp_path / "SKA" / "wav" / "take2.wav", speechlike(0.2))
    listing = _read("l2-arctic", tmp_path)
    assert Counter(clip.speaker for clip in listing.clips) == {"ABA": 2, "SKA": 2}
    assert next(clip.file for clip in listing.clips) == "ABA/ABA/wav/arctic_a0001.wav"
    assert _left(listing) == {
        "suitcase_corpus": "spontaneous speech, not the prompts",
        "XYZ": "not a speaker of the corpus",
        "take2.wav": "name is not arctic_a0001.wav or the like",
    }
    assert "22 of the 24 speakers are not there" in listing.notes[0]


def zipped(folder: Path, speakers: list[str], made: Path) -> Path:
    """Zips of speakers, as they are released."""
    folder.mkdir(exist_ok=True)
    l2_arctic(made, SENTENCES, speakers)
    for speaker in speakers:
        shutil.make_archive(str(folder / speaker), "zip", made, speaker)
    return folder


@pytest.mark.parametrize("below", [".", "l2arctic_release_v5.0"])
def test_l2_arctic_some_speakers_unpacked_and_others_zipped_is_refused_in_a_line(tmp_path: Path, below: str) -> None:
    source = l2_arctic(tmp_path / "source", SENTENCES, ["ABA", "SKA"])
    (source / below).mkdir(exist_ok=True)
    zipped(source / below, ["BWC", "HKK"], tmp_path / "made")
    with pytest.raises(UserError, match=r"2 speakers are unpacked and 2 still zips \(BWC\.zip, \.\.\.\)") as raised:
        _read("l2-arctic", source, tmp_path / "work")
    assert "\n" not in str(raised.value)


def test_l2_arctic_zips_that_were_unpacked_beside_are_no_hindrance(tmp_path: Path) -> None:
    source = zipped(l2_arctic(tmp_path / "source", SENTENCES, ["ABA", "SKA"]), ["ABA", "SKA"], tmp_path / "made")
    assert {clip.speaker for clip in _read("l2-arctic", source, tmp_path / "work").clips} == {"ABA", "SKA"}


def test_l2_arctic_a_zip_that_is_gone_leaves_no_speaker_behind(tmp_path: Path) -> None:
    source = zipped(tmp_path / "source", ["ABA", "SKA"], tmp_path / "made")
    assert len({clip.speaker for clip in _read("l2-arctic", source, tmp_path / "work").clips}) == 2
    (source / "SKA.zip").unlink()
    assert {clip.speaker for clip in _read("l2-arctic", source, tmp_path / "work").clips} == {"ABA"}


def test_l2_arctic_as_released_a_zip_for_each_speaker(tmp_path: Path) -> None:
    made = l2_arctic(tmp_path / "made", SENTENCES, ["ABA", "SKA"])
    source = tmp_path / "release"
    source.mkdir()
    for speaker in ("ABA", "SKA"):
        with zipfile.ZipFile(source / f"{speaker}.zip", "w") as archive:
            for path in sorted((made / speaker).rglob("*")):
                archive.write(path, path.relative_to(made))
    listing = _read("l2-arctic", source, tmp_path / "work")
    assert Counter(clip.speaker for clip in listing.clips) == {"ABA": 2, "SKA": 2}
    assert listing.root == tmp_path / "work" and (listing.root / listing.clips[0].file).is_file()


# Speech Accent Archive


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("true", ["TRUE", "True"])
def test_saa_faults_by_name(tmp_path: Path, end: str, true: str) -> None:
    rows = [
        '27.0,9,"virginia, south africa",spanish1,spanish,female,1,south africa,FALSE,,,',
        "6,3,x,spanish2,spanish,famale,2,spain,FALSE,,,",
        f"30,3,x,gone1,gone,male,3,y,{true},,,",
        "30,3,x,absent1,absent,male,4,y,FALSE,,,",
        "0,0,x,synthesized1,synthesized,male,5,y,FALSE,,,",
        "42,42,x,haitian,haitian,male,6,haiti,FALSE,,,",
        "40,35,x,haitian,haitian,male,7,haiti,FALSE,,,",
        "30,3,x,sa'a1,sa'a,male,8,y,FALSE,,,",
        "30,3,x,odd1,odd,unknown,9,y,FALSE,,,",
    ]
    audio = ["spanish1", "spanish2", "synthesized1", "haitian", "sa'a1", "odd1", "gone1"]
    listing = _read("speech-accent-archive", saa(tmp_path, rows, audio, end=end))
    assert [clip.speaker for clip in listing.clips] == ["spanish1", "spanish2", "sa'a1"]
    assert listing.clips[0].groups == {
        "gender": "female", "accent": "spanish", "first_language": "spanish", "age": "27", "english_onset": "9",
        "birth_country": "south africa", "sentence_id": "paragraph",
    }  # fmt: skip
    assert listing.clips[1].groups["gender"] == "female" and "'famale' was read as female" in listing.notes[0]
    assert counted(listing.left_out) == {
        "several speakers share the file name": 2, "marked missing": 1, "no audio file": 1, "synthesized voice": 1,
        "gender is 'unknown'": 1,
    }  # fmt: skip


def test_saa_columns_of_later_releases(tmp_path: Path) -> None:
    header = "speakerid,speech_sample,native_language,gender,age,onset_age,country"
    saa(tmp_path, ["1,arabic1,arabic,male,30,12,egypt"], [], header=header)
    write(tmp_path / "processed_wav_files" / "arabic1.wav", speechlike(0.3))
    clip = _read("speech-accent-archive", tmp_path).clips[0]
    assert clip.file == "processed_wav_files/arabic1.wav" and clip.groups["english_onset"] == "12"


def test_saa_names_that_differ_in_case_or_unicode_form(tmp_path: Path) -> None:
    rows = [f"30,3,x,{name},lang,male,1,y,FALSE,,," for name in ("Yoruba1", unicodedata.normalize("NFC", "guaraní1"))]
    saa(tmp_path, rows, ["yoruba1", unicodedata.normalize("NFD", "guaraní1")])
    listing = _read("speech-accent-archive", tmp_path)
    assert len(listing.clips) == 2 and all((listing.root / clip.file).is_file() for clip in listing.clips)


def test_saa_without_recordings(tmp_path: Path) -> None:
    saa(tmp_path, [], [])
    with pytest.raises(UserError, match="but no recordings: looked in recordings/recordings"):
        _read("speech-accent-archive", tmp_path)


# Spoken StereoSet


def test_spoken_stereoset_tables_decide(tmp_path: Path) -> None:
    head = "id,speaker,{},context,irrelevant,stereotypical,anti-stereotypical,labels,annotators\n"
    rows = [
        "00000,Ava,female,I walk.,A hat.,Bags sway.,A case sways.,\"{'x': ['y']}\",[]",
        "00002,Brian,male,I walk.,A hat.,A case sways.,Bags sway.,{},[]",  # the pair is unordered
        "00005,Brian,male,I run.,A hat.,A case sways.,Bags sway.,{},[]",
    ]
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "gender_v1.0.csv").write_text(head.format("gender") + "\n".join(rows), encoding="utf-8")
    age = "00008,old_man,elderly,I eat.,A sock.,Fat.,Slim.,{},[]\n"
    (tmp_path / "metadata" / "age_v1.0.csv").write_text(head.format("age") + age, encoding="utf-8")
    for name in ("00000_ava", "00002_Brian", "09999_Ava"):  # one name in another case
        write(tmp_path / "speech" / "gender" / f"{name}.wav", speechlike(0.3, 24_000), 24_000)
    path = tmp_path / "speech" / "age" / "00008_old_man.wav"
    path.parent.mkdir()
    soundfile.write(path, speechlike(0.5, 44_100), 44_100, format="MP3")  # MP3 data under the name of a WAV
    listing = _read("spoken-stereoset", tmp_path)
    ava, brian, old = listing.clips
    assert ava.id == "spoken-stereoset/Ava/gender-00000"  # the id stays a string with its zeros
    assert ava.groups["gender"] == "female" and "age" not in ava.groups and old.groups["age"] == "elderly"
    assert ava.groups["item"] == brian.groups["item"] != old.groups["item"]
    assert (ava.groups["stereotypical"], brian.groups["stereotypical"]) == ("Bags sway.", "A case sways.")
    assert _left(listing) == {"00005_Brian.wav": "no audio file", "09999_Ava.wav": "audio that no row names"}


# Names in another case


def test_names_whose_case_was_changed_are_found(tmp_path: Path) -> None:
    crema = _read("crema-d", crema_d(tmp_path / "c", ["1001_ieo_ang_hi.WAV", "1002_TIE_NEU_XX.wav"]))
    assert [clip.id for clip in crema.clips] == ["crema-d/1001/1001_IEO_ANG_HI", "crema-d/1002/1002_TIE_NEU_XX"]
    assert crema.clips[0].file == "AudioWAV/1001_ieo_ang_hi.WAV"
    arctic = l2_arctic(tmp_path / "l", {"arctic_a0001": "Some words"}, ["SKA"])
    (arctic / "SKA" / "wav" / "arctic_a0001.wav").rename(arctic / "SKA" / "wav" / "ARCTIC_A0001.WAV")
    (arctic / "SKA").rename(arctic / "ska")
    [clip] = _read("l2-arctic", arctic).clips
    assert (clip.id, clip.file, clip.text) == ("l2-arctic/SKA/arctic_a0001", "ska/wav/ARCTIC_A0001.WAV", "Some words")


def test_two_names_that_differ_in_case_alone_are_one_clip(tmp_path: Path) -> None:
    crema = _read("crema-d", crema_d(tmp_path / "c", ["1001_IEO_ANG_HI.wav", "1001_ieo_ang_hi.wav"]))
    assert len(crema.clips) == 1 and set(_left(crema).values()) == {"the same take under another name"}
    arctic = l2_arctic(tmp_path / "l", {"arctic_a0001": "Some words"}, ["SKA"])
    write(arctic / "SKA" / "wav" / "ARCTIC_A0001.wav", speechlike(0.2))
    listing = _read("l2-arctic", arctic)
    assert len(listing.clips) == 1 and set(_left(listing).values()) == {"the same sentence under another name"}


# The real samples


@needs_recordings
def test_real_crema_d() -> None:
    for folder, count in (("crema-d", 7), ("crema-d-lfs-pointers", 24)):
        listing = _read("crema-d", SHARED / folder)
        assert len(listing.clips) == count and len(listing.left_out) == 7_442 - count


@needs_recordings
def test_real_speech_accent_archive() -> None:
    listing = _read("speech-accent-archive", SHARED / "saa")
    assert len(listing.clips) == 72 and set(Counter(c.groups["accent"] for c in listing.clips).values()) == {12}
    assert set(Counter(clip.groups["gender"] for clip in listing.clips).values()) == {36}
    assert len(listing.clips) + len(listing.left_out) == 2_172
    assert counted(listing.left_out)["synthesized voice"] == 4
    assert all(clip.text and clip.text == listing.clips[0].text for clip in listing.clips)


@needs_recordings
@pytest.mark.parametrize("table", ["speakers_all.csv", "speakers_all.variant-with-typos.csv"])
def test_real_table_of_the_archive_balances_to_424(tmp_path: Path, table: str) -> None:
    """The six languages of the paper, before missing files fall: the figure of the corpora's own description."""
    source = (SHARED / "saa" / table).read_text(encoding="utf-8-sig").replace("TRUE,,,", "FALSE,,,")
    source = source.replace("True,,,", "FALSE,,,").splitlines()
    names = {line.split('"')[-1].split(",")[1] if '"' in line else line.split(",")[3] for line in source[1:]}
    saa(tmp_path, source[1:], [])
    folder = tmp_path / "recordings" / "recordings"
    folder.mkdir(parents=True)
    for name in names:
        (folder / f"{name}.mp3").touch()
    listing = _read("speech-accent-archive", tmp_path)
    six = {"spanish", "arabic", "mandarin", "french", "korean", "russian"}
    clips = [clip for clip in listing.clips if clip.groups["accent"] in six]
    kept, _ = balanced(clips, Balancing(column="gender", within="accent"), seed=0)
    assert len(kept) == 424
    assert len({(clip.groups["accent"], clip.groups["gender"]) for clip in kept}) == 12


@needs_recordings
def test_real_spoken_stereoset() -> None:
    listing = _read("spoken-stereoset", SHARED / "spoken_stereoset")
    assert len(listing.clips) == 112 and len(listing.left_out) == 2_847 + 793 - 112
    gender = [clip for clip in listing.clips if clip.groups["dimension"] == "gender"]
    voices = Counter(clip.groups["item"] for clip in gender)
    assert len(voices) == 12 and set(voices.values()) == {6}
    ages = Counter(clip.groups["item"] for clip in listing.clips if clip.groups["dimension"] == "age")
    assert len(ages) == 5 and set(ages.values()) == {8}


@needs_recordings
def test_real_spoken_stereoset_items(tmp_path: Path) -> None:
    """458 of 491 items of the gender table carry all six voices."""
    for dimension in ("gender", "age"):
        table = SHARED / "spoken_stereoset" / "metadata" / f"{dimension}_v1.0.csv"
        (tmp_path / "metadata").mkdir(exist_ok=True)
        (tmp_path / "metadata" / table.name).write_bytes(table.read_bytes())
        (tmp_path / "speech" / dimension).mkdir(parents=True)
    for dimension in ("gender", "age"):
        with (tmp_path / "metadata" / f"{dimension}_v1.0.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                (tmp_path / "speech" / dimension / f"{row['id']}_{row['speaker']}.wav").touch()
    listing = _read("spoken-stereoset", tmp_path)
    assert len(listing.clips) == 2_847 + 793 and not listing.left_out
    gender = [clip for clip in listing.clips if clip.groups["dimension"] == "gender"]
    voices = Counter(clip.groups["item"] for clip in gender)
    assert len(voices) == 491 and sum(count == 6 for count in voices.values()) == 458
    assert Counter(clip.groups["gender"] for clip in gender) == {"female": 1_428, "male": 1_419}


def test_saa_a_passage_that_is_not_utf_8(tmp_path: Path) -> None:
    saa(tmp_path, ["30,1,x,arabic1,arabic,male,1,x,FALSE,,,"], ["arabic1"])
    (tmp_path / "reading-passage.txt").write_bytes("café".encode("latin-1"))
    with pytest.raises(UserError, match=r"reading-passage.txt:1: not UTF-8"):
        _read("speech-accent-archive", tmp_path)
