"""Speech Accent Archive: speakers of many first languages read one paragraph. Reads the layout of its Kaggle copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from vibe_harness.cards.text_file import read_text
from vibe_harness.corpora.importers.base import FileNames, Importer, LeftOut, Listing, folders, not_found
from vibe_harness.corpora.importers.hub import HubRow, write_table
from vibe_harness.corpora.table_rows import TableRow, read_rows, require_columns
from vibe_harness.errors import UserError
from vibe_harness.records import Clip

TABLE = "speakers_all.csv"
AUDIO_FOLDERS = ("recordings/recordings", "recordings", "processed_wav_files", "audio")
COLUMNS = {  # our name -> the archive's, in this and in later releases
    "file": ("filename", "speech_sample"),
    "gender": ("sex", "gender"),
    "accent": ("native_language",),
    "age": ("age",),
    "english_onset": ("age_onset", "onset_age"),
    "birth_country": ("country",),
    "missing": ("file_missing?", "file_missing"),
}
NEEDED = ("file", "gender", "accent")
GENDERS = {"male": "male", "female": "female", "famale": "female"}
MISSPELLED = frozenset(GENDERS) - {"male", "female"}


def read(source: Path, _: Path, corpus: str) -> Listing:
    """Read one clip per speaker, with gender, first language (also as accent), age, age of onset, country of birth."""
    root = next((folder for folder in folders(source) if (folder / TABLE).is_file()), None)
    if root is None:
        raise not_found(source, IMPORTER)
    audio = next((root / name for name in AUDIO_FOLDERS if _audio_names(root / name)), None)
    if audio is None:
        raise UserError(f"{root}: has {TABLE}, but no recordings: looked in {', '.join(AUDIO_FOLDERS)}")
    files = FileNames(_audio_names(audio))
    rows = _rows(root / TABLE)
    counts = Counter(row["file"] for row in rows)
    passage = root / "reading-passage.txt"
    text = " ".join(read_text(passage).split()) if passage.is_file() else None
    clips, left_out, notes = [], [], []
    for row in rows:
        name = row["file"]
        found = files.find(f"{name}.mp3", f"{name}.wav", name)
        shown = f"{audio.relative_to(root).as_posix()}/{found or name + '.mp3'}"
        why = _why_not(row, found, counts[name])
        if why:
            left_out.append(LeftOut(shown, why))
            continue
        if row["gender"].lower() in MISSPELLED:
            notes.append(f"{name}: the gender '{row['gender']}' was read as {GENDERS[row['gender'].lower()]}")
        clips.append(Clip(f"{corpus}/{name}/{name}", shown, name, _groups(row), text, "paragraph"))
    return Listing(root, clips, left_out, notes)


def read_hub(rows: Iterable[HubRow], work: Path, corpus: str) -> Listing:
    """Read a copy on the hub with the archive's columns. The rows are written to `work` in its layout, then read."""
    table = []
    for row in rows:
        name = row.text(*COLUMNS["file"])
        table.append({column: row.text(column) for column in row.cells if column != "audio"})
        if row.cells.get("audio"):
            row.write_audio(work, "recordings", f"{name}{row.audio_suffix()}")
    write_table(work / TABLE, table)
    return read(work, work, corpus)


def _why_not(row: dict[str, str], found: str | None, count: int) -> str | None:
    if row["file"].startswith("synthesized"):
        return "synthesized voice"
    if row.get("missing", "").lower() == "true":
        return "marked missing"
    if count > 1:
        return "several speakers share the file name"
    if found is None:
        return "no audio file"
    if row["gender"].lower() not in GENDERS:
        return f"gender is '{row['gender']}'"
    if not row["accent"]:
        return "no first language stated"
    return None


def _groups(row: Mapping[str, str]) -> dict[str, str]:
    facts = {column: row.get(column, "") for column in ("accent", "age", "english_onset", "birth_country")}
    facts["age"] = facts["age"].removesuffix(".0")
    groups = {"gender": GENDERS[row["gender"].lower()], **{column: fact for column, fact in facts.items() if fact}}
    return groups | {"first_language": groups["accent"], "sentence_id": "paragraph"}


def _audio_names(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    return [entry.name for entry in folder.iterdir() if entry.suffix.lower() in (".mp3", ".wav")]


def _rows(path: Path) -> list[dict[str, str]]:
    """The rows of the table, with our names for its columns. Unnamed columns, at its end, are ignored."""
    columns: dict[str, str] = {}

    def check(_: str, have: list[str]) -> None:
        columns.update({ours: name for ours, theirs in COLUMNS.items() for name in theirs if name in have})
        require_columns(path, have, [COLUMNS[ours][0] for ours in NEEDED if ours not in columns])

    def renamed(row: TableRow) -> dict[str, str]:
        return {ours: row.cells.get(theirs, "") for ours, theirs in columns.items()}

    return [row for row in map(renamed, read_rows(path, check)) if any(row.values())]


IMPORTER = Importer(
    title="the Speech Accent Archive",
    licence="CC BY-NC-SA",
    looks_for=f"{TABLE} with recordings/ beside it",
    read=read,
    columns=("gender", "accent", "age", "english_onset", "birth_country", "first_language", "sentence_id"),
    hub=read_hub,
)
