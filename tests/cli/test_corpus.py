"""`vibe-harness corpus`, as a person runs it."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.command_line import QuickCommand
from tests.corpora.layouts import POINTER, crema_d
from tests.corpora.sounds import speechlike, write


@pytest.fixture()
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[QuickCommand]:
    monkeypatch.setenv("VIBE_HARNESS_DATA", str(tmp_path / "data"))
    yield QuickCommand(tmp_path)


def test_prepare_then_list_show_check_and_lexicon(command: QuickCommand, tmp_path: Path) -> None:
    source = crema_d(tmp_path / "src", ["1001_TIE_NEU_XX.wav", "1001_ITH_ANG_XX.wav", "1002_TIE_NEU_XX.wav"])
    write(source / "AudioWAV" / "1076_MTI_SAD_XX.wav", np.zeros(40_000, np.float32))
    done = command("corpus", "prepare", "crema-d", "--source", source, check=0).stdout
    assert "3 clips, 2 speakers" in done and "left out: 1, silent" in done and "--corpus crema-d" in done
    listed = {line.split()[0]: line for line in command("corpus", "list", check=0).stdout.splitlines() if line.strip()}
    assert "96 clips of 24 speakers; synthetic speech" in listed["demo"]  # which has no card to be told from
    assert (
        "  prepared" in listed["crema-d"] and "not prepared" in listed["l2-arctic"] and "comes along" in listed["demo"]
    )
    shown = command("corpus", "show", "crema-d", check=0).stdout
    assert "african american" in shown and "left out: 1, silent" in shown and "Figure" not in shown
    assert "Figure: groups.svg" in command("corpus", "show", "crema-d", "--figure", "groups.svg", check=0).stdout
    drawn = (tmp_path / "groups.svg").read_text(encoding="utf-8")
    assert "race: african american" in drawn and "1 of 1 speakers" in drawn and drawn.startswith("<svg")
    assert "cannot be written" in command.refuses("corpus", "show", "crema-d", "--figure", "groups.svg/x.svg")
    assert "3 of 3 clips can be used" in command("corpus", "check", "crema-d", check=0).stdout
    assert "0 of 2 sentences" in command("corpus", "lexicon", "crema-d", check=0).stdout
    (tmp_path / "words.txt").write_text("[gender]\ndoctor\n", encoding="utf-8")
    told = command("corpus", "lexicon", "crema-d", "--lexicon", tmp_path / "words.txt", check=0).stdout
    assert "ITH" in told and "doctor (gender)" in told


def test_a_verdict_for_each_file_of_a_folder(command: QuickCommand, tmp_path: Path) -> None:
    folder, wave = tmp_path / "all", speechlike(1.0)
    good = {
        "u8.wav": ("PCM_U8", 16_000), "s24.wav": ("PCM_24", 16_000), "float.wav": ("FLOAT", 16_000),
        "slow.wav": ("PCM_16", 8_000), "fast.wav": ("PCM_16", 96_000), "a.flac": ("PCM_16", 16_000),
        "a.ogg": ("VORBIS", 16_000), "a.mp3": ("MPEG_LAYER_III", 16_000),
    }  # fmt: skip
    for name, (subtype, rate) in good.items():
        write(folder / name, wave, rate, subtype=subtype)
    write(folder / "stereo.wav", np.stack([wave, wave], axis=1))
    write(folder / "nan.wav", np.full(16_000, np.nan, np.float32), subtype="FLOAT")
    write(folder / "short.wav", wave[:160])
    (folder / "zero.wav").touch()
    (folder / "pointer.wav").write_text(POINTER, encoding="utf-8")
    whole = (folder / "a.flac").read_bytes()
    (folder / "cut.flac").write_bytes(whole[: len(whole) // 2])
    soundfile.write(folder / "cut.wav", wave, 16_000)
    os.truncate(folder / "cut.wav", 10_000)
    told = command("corpus", "check", folder, check=1).stdout
    assert "9 of 15 clips can be used" in told
    kinds = [line.split() for line in told.splitlines() if " Hz" in line]
    assert ["WAV/FLOAT", "16,000", "Hz", "1", "1"] in kinds and ["WAV/PCM_16", "96,000", "Hz", "1", "1"] in kinds
    assert ["WAV/PCM_16", "16,000", "Hz", "2", "1"] in kinds and len(kinds) == 9
    for bad in ("nan.wav", "short.wav", "zero.wav", "pointer.wav", "cut.flac", "cut.wav"):
        assert f"  {bad}: " in told
    for name in (*good, "stereo.wav"):
        assert f"  {name}: " not in told


def test_a_corpus_without_groups_is_told_to_have_nothing_to_compare(command: QuickCommand, tmp_path: Path) -> None:
    for speaker, pitch in (("anna", 220), ("carl", 110)):
        (tmp_path / "own" / speaker).mkdir(parents=True)
        write(tmp_path / "own" / speaker / "1.wav", speechlike(0.5, pitch=pitch))
    command("corpus", "new", "own", check=0)  # leaves the groups empty
    told = command("corpus", "check", "own/", check=0).stdout
    assert "Nothing was compared: no column" in told and "  every column for groups: empty" in told
    manifest = tmp_path / "own" / "manifest.csv"
    asked = ("--model", "simulated", "--tasks", "advisory", "--corpus", "own/", "--dimension", "gender")
    assert "no such column 'gender', or it is empty" in command.refuses("run", *asked)
    rows = "file,speaker,gender\nanna/1.wav,anna,female\ncarl/1.wav,carl,male\n"
    manifest.write_text(rows, encoding="utf-8")
    assert "Nothing was compared" not in command("corpus", "check", "own/", check=0).stdout


def test_a_check_that_compares_nothing_says_of_each_column_why(command: QuickCommand, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    rows = ["file,speaker,gender,accent,age,place"]
    for row, gender in enumerate(("female", "female", "male", "Male")):
        write(tmp_path / "own" / f"{row}.wav", speechlike(0.5, pitch=100 + row))
        speaker = row // 2
        rows.append(f"{row}.wav,speaker {speaker},{gender},scottish,{30 + speaker},")
    (tmp_path / "own" / "manifest.csv").write_text("\n".join(rows), encoding="utf-8")
    told = command("corpus", "check", "own/", check=0).stdout
    assert told.splitlines()[-3:] == [
        "  gender: speaker 'speaker 1' is in two groups, 'male' and 'Male'",
        "  accent: only one group, 'scottish'",
        "  age: 2 groups, all of them numbers",
    ]


def test_a_check_without_one_usable_clip_says_why_of_each_and_compares_nothing(
    command: QuickCommand, tmp_path: Path
) -> None:
    rows = "file,speaker,gender\nanna.wav,anna,female\ncarl.wav,carl,male\n"
    (tmp_path / "gone.csv").write_text(rows, encoding="utf-8")
    for options in ((), ("--dimension", "gender")):
        done = command("corpus", "check", "gone.csv", *options, check=1)
        assert "anna.wav: " in done.stdout and "0 of 2 clips can be used" in done.stdout and done.stderr == ""


def test_what_is_made_from_synthetic_speech_says_so_once(command: QuickCommand, tmp_path: Path) -> None:
    card = "corpus: quiet\nversion: 1\ndescription: x\nbase: demo\nperturb: {loudness: 0.5}\n"
    (tmp_path / "quiet.yaml").write_text(card, encoding="utf-8")
    command("corpus", "prepare", "quiet.yaml", check=0)
    shown = command("corpus", "show", "quiet", check=0).stdout
    assert shown.count("synthetic speech") == 1 and "loudness 0.5" in shown


def test_mistakes_are_told_in_a_line(command: QuickCommand, tmp_path: Path) -> None:
    assert "Did you mean 'crema-d'" in command.refuses("corpus", "prepare", "cremad", "--source", ".")
    assert "give --source" in command.refuses("corpus", "prepare", "crema-d")
    assert "looked for VideoDemographics.csv" in command.refuses("corpus", "prepare", "crema-d", "--source", tmp_path)
    assert "is not prepared yet" in command.refuses("corpus", "show", "crema-d")
    assert "no such column" in command.refuses("run", "--model", "simulated", "--tasks", "story", "--corpus", "demo",
                                               "--dimension", "height")  # fmt: skip
