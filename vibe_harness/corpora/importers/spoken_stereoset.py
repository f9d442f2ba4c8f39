"""Spoken StereoSet: contexts spoken by synthetic voices of two genders and three ages, three continuations each."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from vibe_harness.corpora.importers.base import FileNames, Importer, LeftOut, Listing, folders, not_found
from vibe_harness.corpora.importers.hub import HubRow, write_table
from vibe_harness.corpora.table_rows import read_rows, require_columns
from vibe_harness.errors import UserError
from vibe_harness.records import Clip

DIMENSIONS = ("gender", "age")
CONTINUATIONS = ("stereotypical", "anti-stereotypical", "irrelevant")


def read(source: Path, _: Path, corpus: str) -> Listing:
    """Read one clip for each row of the two tables. Audio that no row names is left out and counted.

    Columns besides the group: dimension (which table), item (the same text by several voices), the continuations.
    """
    root = next((folder for folder in folders(source) if _tables(folder) and (folder / "speech").is_dir()), None)
    if root is None:
        raise not_found(source, IMPORTER)
    clips: list[Clip] = []
    left_out: list[LeftOut] = []
    for dimension, table in _tables(root).items():
        folder = root / "speech" / dimension
        there = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
        files = FileNames(there)
        items: dict[tuple[str, str, frozenset[str]], str] = {}
        needed = ["id", "speaker", dimension, "context", *CONTINUATIONS]
        named = set()
        for row in read_rows(table, partial(_require, needed)):
            cells = row.cells
            name = f"{cells['id']}_{cells['speaker']}.wav"
            pair = frozenset((cells["stereotypical"], cells["anti-stereotypical"]))
            item = items.setdefault((cells["context"], cells["irrelevant"], pair), f"{dimension}-{len(items) + 1:04d}")
            found = files.find(name)
            if found is None:
                left_out.append(LeftOut(f"speech/{dimension}/{name}", "no audio file"))
                continue
            named.add(found)
            groups = {dimension: cells[dimension], "dimension": dimension, "item": item, "sentence_id": item}
            groups |= {column: cells[column] for column in CONTINUATIONS}
            clip_id = f"{corpus}/{cells['speaker']}/{dimension}-{cells['id']}"
            clips.append(Clip(clip_id, f"speech/{dimension}/{found}", cells["speaker"], groups, cells["context"], item))
        left_out += [
            LeftOut(f"speech/{dimension}/{name}", "audio that no row names")
            for name in there
            if name not in named and name.lower().endswith(".wav")
        ]
    return Listing(root, clips, left_out)


def read_hub(rows: Iterable[HubRow], work: Path, corpus: str) -> Listing:
    """Read a copy on the hub with the tables' columns. Rows are written to `work` in its layout, then read."""
    tables: dict[str, list[dict[str, str]]] = {dimension: [] for dimension in DIMENSIONS}
    for row in rows:
        own = [dimension for dimension in DIMENSIONS if row.cells.get(dimension)]
        if len(own) != 1:
            raise UserError(f"{row.place}: exactly one of the columns {' and '.join(DIMENSIONS)} must have a value")
        tables[own[0]].append({column: row.text(column) for column in row.cells if column != "audio"})
        row.write_audio(work, "speech", own[0], f"{row.text('id')}_{row.text('speaker')}.wav")
    for dimension, table in tables.items():
        if table:
            write_table(work / "metadata" / f"{dimension}_v1.0.csv", table)
    return read(work, work, corpus)


def _require(needed: list[str], place: str, have: list[str]) -> None:
    require_columns(place, have, needed)


def _tables(folder: Path) -> dict[str, Path]:
    found = {dimension: sorted((folder / "metadata").glob(f"{dimension}_v*.csv")) for dimension in DIMENSIONS}
    return {dimension: paths[-1] for dimension, paths in found.items() if paths}


IMPORTER = Importer(
    title="Spoken StereoSet",
    licence="none stated",
    looks_for="metadata/gender_v1.0.csv and age_v1.0.csv with speech/ beside metadata/",
    read=read,
    columns=("gender", "age", "dimension", "item", "sentence_id", *CONTINUATIONS),
    hub=read_hub,
    synthetic=True,
)
