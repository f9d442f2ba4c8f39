"""Manifests: tables (CSV, JSONL or Parquet) with one row per clip. Any further column is a group or stratum."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from vibe_harness.corpora.group_names import plain
from vibe_harness.corpora.table_rows import TableRow, parquet_metadata, read_rows
from vibe_harness.errors import UserError
from vibe_harness.records import Clip
from vibe_harness.registry import did_you_mean

REQUIRED = ("file", "speaker")
# Columns that describe the clip or the corpus. Every other column is a group or a stratum.
KNOWN = frozenset((
    *REQUIRED, "id", "text", "licence", "synthetic", "corpus", "duration_s", "sample_rate", "channels", "format",
    "subtype", "sha256", "level_db", "clipped", "pauses", "noise_db", "bandwidth_hz",
))  # fmt: skip
METADATA = "vibe_harness"  # key in the Parquet metadata of a prepared corpus: what its card says beyond the rows


@dataclass(frozen=True)
class Corpus:
    """The clips of one manifest, in its order."""

    name: str
    root: Path  # the folder that the clips' files lie below
    clips: tuple[Clip, ...]
    licence: str | None = None  # several licences are joined with "; "
    synthetic: bool = False  # whether any row is marked as synthesized speech
    notes: tuple[str, ...] = ()  # what readers of the results should know; one sentence each
    silence: bool = False  # the clips are silent on purpose, as a control condition
    speaker_strata: Mapping[str, Sequence[str]] = field(default_factory=dict)  # dimension -> permute within these
    strata: Sequence[str] = ()  # columns that vary within a speaker and are balanced over groups: emotion, sentence
    named_groups: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  # column -> groups named like missing values
    distinct_speakers: Sequence[str] = ()  # different people whose names differ in spelling only
    min_speakers: int = 1  # smaller groups of a compared dimension are left out
    left_out: Sequence[tuple[str, str]] = ()  # file and reason, for rows that the card beside the manifest leaves out

    def path(self, clip: Clip) -> Path:
        """The clip's file."""
        return self.root / clip.file


def load_manifest(path: Path, name: str | None = None, distinct_speakers: Collection[str] = ()) -> Corpus:
    """Read a manifest.

    Every row needs `file` and `speaker`; `id`, `text`, `sentence_id`, `licence` and `synthetic` are optional. Every
    other column, and sentence_id, becomes an entry of Clip.groups; empty cells are left out. Files are paths below the
    manifest's folder, or below the audio folder that a prepared corpus names.

    name: of the corpus; by default the folder's name for a file called manifest.*, else the file's name without its
    extension. Clip.id is "CORPUS/SPEAKER/ID", where ID is the id column or the file without its extension.
    distinct_speakers: different speakers whose names differ in spelling only, such as 0010 and 10.

    Raises UserError with file, line and remedy if the file is not a manifest or would give a wrong corpus.
    """
    prepared = _prepared(path) if path.suffix.lower() == ".parquet" else _Facts()
    name = name or prepared.corpus or (path.resolve().parent.name if path.stem == "manifest" else path.stem)
    root = Path(prepared.audio_folder) if prepared.audio_folder else path.parent
    reader = _Reader(path, name, root, {*distinct_speakers, *prepared.distinct_speakers})
    clips = tuple(reader.clip(row) for row in read_rows(path, _check_columns))
    if not clips:
        raise UserError(f"{path}: no rows: a manifest has one row a clip")
    synthetic = ("synthetic speech, not recordings of people",) if reader.synthetic else ()
    return Corpus(
        name=name,
        root=root,
        clips=clips,
        licence="; ".join(sorted(reader.licences)) or None,
        synthetic=reader.synthetic,
        notes=tuple(dict.fromkeys((*synthetic, *prepared.notes))),  # a synthetic base has the note already
        silence=prepared.silence,
        speaker_strata=prepared.speaker_strata,
        strata=prepared.strata,
        named_groups=prepared.named_groups,
        distinct_speakers=tuple(sorted({*distinct_speakers, *prepared.distinct_speakers})),
        min_speakers=prepared.min_speakers,
    )


class _Facts(BaseModel):
    """Metadata that `corpus prepare` writes into a Parquet file; the defaults for other files."""

    model_config = ConfigDict(extra="ignore", strict=True)
    corpus: str | None = None
    audio_folder: str | None = None
    notes: list[str] = []
    silence: bool = False
    speaker_strata: dict[str, list[str]] = {}
    strata: list[str] = []
    named_groups: dict[str, list[str]] = {}
    distinct_speakers: list[str] = []
    min_speakers: int = 1


def _prepared(path: Path) -> _Facts:
    try:
        facts = _Facts.model_validate_json(parquet_metadata(path).get(METADATA, "{}"))
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise UserError(
            f"{path}: its metadata '{METADATA}' are not those that `corpus prepare` writes ({where}: {fault['msg']}): "
            "prepare the corpus again"
        ) from None
    if facts.audio_folder is not None and not Path(facts.audio_folder).is_dir():
        raise UserError(
            f"{path}: its audio lay in {facts.audio_folder}, which is gone: run `vibe-harness corpus prepare` again "
            "with the --source where the audio is now"
        )
    return facts


def _check_columns(place: str, columns: list[str]) -> None:
    for column in columns:
        if not column:
            raise UserError(f"{place}: a column has no name: name it, or take it out")
    for column in REQUIRED:
        if column not in columns:
            hint = did_you_mean(column, columns)
            if len(columns) == 1 and any(mark in columns[0] for mark in ";\t"):
                hint = "Columns are separated by commas."
            raise UserError(f"{place}: no column '{column}'. {hint}")


class _Reader:
    """Turns rows into clips. Equal strings and groups are shared, so that 100,000 clips take little memory."""

    def __init__(self, path: Path, corpus: str, root: Path, distinct: Collection[str]) -> None:
        self.path = path
        self.corpus = corpus
        self._distinct = distinct
        self.licences: set[str] = set()
        self.synthetic = False
        self._links = Links(root)
        self._ids: dict[str, int] = {}  # clip id -> line
        self._speakers: dict[str, str] = {}  # speaker, as written and in its `plain` form -> its first spelling
        self._groups: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}

    def clip(self, row: TableRow) -> Clip:
        place = f"{self.path}:{row.line}"
        cells = row.cells
        for column in REQUIRED:
            if not cells.get(column):
                raise UserError(f"{place}: '{column}' is empty: every clip names its {column}")
        file, speaker = cells["file"], sys.intern(cells["speaker"])
        if self._speakers.get(speaker) != speaker:
            self._check_speaker(place, speaker)
        on_disk = check_file(place, file, self._links)
        name = cells.get("id") or _without_extension(file)
        if cells.get("corpus"):  # written by `corpus prepare`, with whole clip ids
            name = name.removeprefix(f"{cells['corpus']}/{speaker}/")
        clip_id = f"{self.corpus}/{speaker}/{name}"
        key = clip_id if clip_id.isascii() else unicodedata.normalize("NFC", clip_id)
        if key in self._ids:
            raise UserError(
                f"{place}: the clip '{clip_id}' is also in line {self._ids[key]}: remove one of the two, or "
                "give each its own name in a column 'id'"
            )
        self._ids[key] = row.line
        if cells.get("licence"):
            self.licences.add(cells["licence"])
        if "synthetic" in cells:
            self.synthetic |= _truth(place, cells["synthetic"])
        text, sentence = cells.get("text"), cells.get("sentence_id")
        return Clip(
            id=clip_id,
            file=on_disk,
            speaker=speaker,
            groups=self._shared_groups(cells),
            text=sys.intern(text) if text else None,
            sentence_id=sys.intern(sentence) if sentence else None,
        )

    def _check_speaker(self, place: str, speaker: str) -> None:
        """Raise UserError if an earlier row spells the speaker differently: a permutation test of whole speakers would
        count one person as two."""
        if speaker in self._distinct:
            self._speakers[speaker] = speaker
            return
        known = self._speakers.setdefault(plain(speaker), speaker)
        self._speakers[speaker] = known
        if known != speaker:
            raise UserError(
                f"{place}: speaker '{speaker}' is '{known}' in an earlier row, which differs in spelling only: use one "
                "spelling; if they are two people, rename one of them, or list both in the corpus card "
                f"(distinct_speakers: ['{known}', '{speaker}'])"
            )

    def _shared_groups(self, cells: Mapping[str, str]) -> Mapping[str, str]:
        key = tuple((column, cell) for column, cell in cells.items() if cell and column not in KNOWN)
        if key not in self._groups:
            self._groups[key] = {sys.intern(column): sys.intern(cell) for column, cell in key}
        return self._groups[key]


class Links:
    """The files on disk below a corpus folder: which are links out of it, and how names are spelled that the manifest
    has in another Unicode form. Each folder is listed once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._real_root = Path(os.path.realpath(root))
        self._known: dict[str, frozenset[str]] = {}  # folder below the root -> names that are links out of the root
        self._spelled: dict[str, dict[str, list[str]]] = {}  # folder below the root -> NFC name -> names on disk

    def lead_out(self, file: str) -> bool:
        """Whether the file, a path below the root, is a link out of it."""
        folder, _, name = file.rpartition("/")
        if folder not in self._known:
            self._known[folder] = self._leading_out(folder)
        return name in self._known[folder]

    def on_disk(self, file: str) -> str:
        """The file as spelled on disk: "größe.wav" may be stored in composed or decomposed Unicode form. Returns the
        path as given if the disk has exactly that name, none of the name, or several."""
        if file.isascii():
            return file
        found = ""
        for part in file.split("/"):
            if found not in self._spelled:
                self._spelled[found] = self._by_composed_name(found)
            near = self._spelled[found].get(unicodedata.normalize("NFC", part), [])
            name = near[0] if len(near) == 1 and part not in near else part
            found = f"{found}/{name}" if found else name
        return found

    def _by_composed_name(self, folder: str) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        try:
            with os.scandir(self.root / folder) as entries:
                for entry in entries:
                    names.setdefault(unicodedata.normalize("NFC", entry.name), []).append(entry.name)
        except OSError:  # no such folder: the check of the clips will say so
            return {}
        return names

    def _leading_out(self, folder: str) -> frozenset[str]:
        """Names in a folder that are links out of the corpus."""
        try:
            with os.scandir(self.root / folder) as entries:
                if not self._inside(folder):
                    return frozenset(entry.name for entry in entries)
                links = [entry.name for entry in entries if entry.is_symlink()]
        except OSError:  # no such folder: the check of the clips will say so
            return frozenset()
        return frozenset(name for name in links if not self._inside(f"{folder}/{name}" if folder else name))

    def _inside(self, below: str) -> bool:
        return Path(os.path.realpath(self.root / below)).is_relative_to(self._real_root)


def check_file(place: str, file: str, links: Links) -> str:
    """The file as spelled on disk. Raises UserError, with the place that names it, if it is not below the corpus
    folder."""
    if "\\" in file or "\0" in file:
        raise UserError(f"{place}: file {file!r}: write the path with forward slashes")
    if file.startswith("/") or file[1:2] == ":":
        raise UserError(f"{place}: file '{file}' is an absolute path: write it relative to {links.root}")
    if ".." in file.split("/"):
        raise UserError(f"{place}: file '{file}' leaves the corpus folder: write a path below {links.root}")
    file = links.on_disk(file)
    if links.lead_out(file):
        raise UserError(f"{place}: file '{file}' is a link out of the corpus folder {links.root}: copy the file there")
    return file


def _without_extension(file: str) -> str:
    """A path without the extension of its last part. A leading dot does not begin an extension."""
    dot = file.rfind(".")
    return file[:dot] if dot > file.rfind("/") + 1 else file


def _truth(place: str, cell: str) -> bool:
    words = {"true": True, "false": False, "": False}
    if cell.lower() not in words:
        raise UserError(f"{place}: synthetic is '{cell}': write true or false")
    return words[cell.lower()]
