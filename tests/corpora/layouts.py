"""Published corpora as people have them on disk, built by the tests: tiny synthetic audio, real names and headers."""

import os
from pathlib import Path

import pytest

from tests.corpora.sounds import speechlike, write
from vibe_harness.corpora.importers.l2_arctic import FACTS

SHARED = Path(os.environ.get("VIBE_SHARED", Path(__file__).parents[3] / "shared")) / "corpora"
needs_recordings = pytest.mark.skipif(not SHARED.is_dir(), reason="the real recordings are not at hand")
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 72862\n"

CREMA_ACTORS = '"ActorID","Age","Sex","Race","Ethnicity"\n1001,51,"Male","Caucasian","Not Hispanic"\n' + (
    '1002,21,"Female","African American","Hispanic"\n1076,25,"Female","Asian","Not Hispanic"\n'
)
SAA_HEADER = "age,age_onset,birthplace,filename,native_language,sex,speakerid,country,file_missing?,,,"


def crema_d(folder: Path, names: list[str], actors: str = CREMA_ACTORS) -> Path:
    """Each name a clip of its own sound."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "VideoDemographics.csv").write_text(actors, encoding="utf-8")
    for index, name in enumerate(names):
        write(folder / "AudioWAV" / name, speechlike(0.4, seed=index))
    return folder


def l2_arctic(folder: Path, sentences: dict[str, str], speakers: list[str] | None = None) -> Path:
    """Every speaker with every sentence: sentence id -> text."""
    for number, speaker in enumerate(speakers or sorted(FACTS)):
        for index, (sentence, text) in enumerate(sentences.items()):
            write(
                folder / speaker / "wav" / f"{sentence}.wav", speechlike(0.2, 8_000, seed=1000 * number + index), 8_000
            )
            path = folder / speaker / "transcript" / f"{sentence}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return folder


def saa(folder: Path, rows: list[str], audio: list[str], header: str = SAA_HEADER, end: str = "\n") -> Path:
    """The table, and an mp3 for each name in `audio`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "speakers_all.csv").write_bytes(end.join([header, *rows, ""]).encode())
    for index, name in enumerate(audio):
        write(folder / "recordings" / "recordings" / f"{name}.mp3", speechlike(0.5, seed=index), format="MP3")
    return folder
