"""CREMA-D: 91 actors, 12 sentences, 6 emotions, given by the file names; a table describes the actors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from vibe_harness.corpora.importers.base import FileNames, Importer, LeftOut, Listing, folders, not_found
from vibe_harness.corpora.importers.hub import HubRow, write_table
from vibe_harness.corpora.table_rows import read_rows, require_columns
from vibe_harness.errors import UserError
from vibe_harness.records import Clip

SENTENCES = {
    "IEO": "It's eleven o'clock",
    "TIE": "That is exactly what happened",
    "IOM": "I'm on my way to the meeting",
    "IWW": "I wonder what this is about",
    "TAI": "The airplane is almost full",
    "MTI": "Maybe tomorrow it will be cold",
    "IWL": "I would like a new alarm clock",
    "ITH": "I think I have a doctor's appointment",
    "DFA": "Don't forget a jacket",
    "ITS": "I think I've seen this before",
    "TSI": "The surface is slick",
    "WSI": "We'll stop in a couple of minutes",
}
EMOTIONS = {"ANG": "anger", "DIS": "disgust", "FEA": "fear", "HAP": "happy", "NEU": "neutral", "SAD": "sad"}
LEVELS = {"LO": "low", "MD": "medium", "HI": "high", "XX": "unspecified"}
DEMOGRAPHICS = "VideoDemographics.csv"
NAMES = "SentenceFilenames.csv"
_NAME = re.compile(r"(\d{4})_([A-Z]{3})_([A-Z]{3})_(LO|MD|HI|XX?)")


def read(source: Path, _: Path, corpus: str) -> Listing:
    """Read the clips of AudioWAV/, with the actor's gender, age, race and ethnicity, the emotion and its level."""
    root = next((f for f in folders(source) if (f / DEMOGRAPHICS).is_file() and (f / "AudioWAV").is_dir()), None)
    if root is None:
        raise not_found(source, IMPORTER)
    actors = _actors(root / DEMOGRAPHICS)
    files = FileNames(entry.name for entry in (root / "AudioWAV").iterdir())
    clips, left_out, notes = [], [], []
    seen: dict[str, str] = {}
    for name in sorted(entry.name for entry in (root / "AudioWAV").iterdir()):
        file = f"AudioWAV/{name}"
        parts = _parts(name, actors)
        if isinstance(parts, str):
            left_out.append(LeftOut(file, parts))
            continue
        actor, sentence, emotion, level = parts
        if level == "X":
            level = "XX"
            notes.append(f"{name}: level X of an old clone, taken as XX")
        clip_id = f"{corpus}/{actor}/{'_'.join((actor, sentence, emotion, level))}"
        if clip_id in seen:
            left_out.append(LeftOut(file, "the same take under another name", seen[clip_id]))
            continue
        seen[clip_id] = file
        groups = {**actors[actor], "emotion": EMOTIONS[emotion], "level": LEVELS[level], "sentence_id": sentence}
        clips.append(Clip(clip_id, file, actor, groups, SENTENCES[sentence], sentence))
    left_out += _absent(root / NAMES, files)
    return Listing(root, clips, left_out, notes)


def _parts(name: str, actors: Mapping[str, object]) -> tuple[str, ...] | str:
    """Actor, sentence, emotion and level of a file name, or why it is left out."""
    stem, dot, suffix = name.rpartition(".")
    match = _NAME.fullmatch(stem.upper())  # some disks and programs change the case of names
    if dot and suffix.lower() != "wav":
        return "not a WAV"
    if not match or match[2] not in SENTENCES or match[3] not in EMOTIONS:
        return "name is not ACTOR_SENTENCE_EMOTION_LEVEL"
    return match.groups() if match[1] in actors else f"actor is not in {DEMOGRAPHICS}"


def read_hub(rows: Iterable[HubRow], work: Path, corpus: str) -> Listing:
    """Read a copy on the hub. The name of the audio gives actor, sentence, emotion and level; sex is a column.

    Age, race and ethnicity are optional columns. Rows are written to `work` in the layout of the release, then read.
    """
    actors: dict[str, dict[str, str]] = {}
    for row in rows:
        name = row.audio_name() or PurePosixPath(row.text("file", "filename", "path")).name
        actor = name.partition("_")[0]
        facts = {"ActorID": actor, "Sex": row.text("sex", "gender", "Sex", "speaker_sex", "speaker_gender")}
        for column in ("Age", "Race", "Ethnicity"):
            known = [key for key in (column, column.lower(), f"speaker_{column.lower()}") if key in row.cells]
            facts[column] = row.text(*known) if known else ""
        if actors.setdefault(actor, facts) != facts:
            raise UserError(f"{row.place}: actor {actor} is {facts} here, and {actors[actor]} in an earlier row")
        row.write_audio(work, "AudioWAV", f"{PurePosixPath(name).stem}.wav")
    write_table(work / DEMOGRAPHICS, actors.values())
    return read(work, work, corpus)


def _actors(path: Path) -> dict[str, dict[str, str]]:
    def check(_: str, columns: list[str]) -> None:
        require_columns(path, columns, ["ActorID", "Age", "Sex", "Race", "Ethnicity"])

    actors: dict[str, dict[str, str]] = {}
    for row in read_rows(path, check):
        cells = row.cells
        facts = {
            "gender": cells["Sex"].lower(),
            "age": cells["Age"],
            "race": cells["Race"].lower(),
            "ethnicity": cells["Ethnicity"].lower(),
        }
        actor = {column: fact for column, fact in facts.items() if fact}
        if actors.setdefault(cells["ActorID"], actor) != actor:
            raise UserError(
                f"{path}:{row.line}: actor {cells['ActorID']} has two rows with different facts: remove one"
            )
    return actors


def _absent(path: Path, files: FileNames) -> list[LeftOut]:
    """Clips that the release lists and that are missing here."""
    if not path.is_file():
        return []
    rows = read_rows(path, lambda _, columns: require_columns(path, columns, ["Filename"]))
    names = [row.cells["Filename"] for row in rows]
    return [
        LeftOut(f"AudioWAV/{name}.wav", f"listed in {NAMES}, no such file")
        for name in names
        if not files.find(f"{name}.wav", f"{name.removesuffix('X')}.wav")
    ]


IMPORTER = Importer(
    title="CREMA-D",
    licence="ODbL 1.0",
    looks_for=f"{DEMOGRAPHICS} with AudioWAV/ beside it",
    read=read,
    columns=("gender", "age", "race", "ethnicity", "emotion", "level", "sentence_id"),
    hub=read_hub,
)
