"""Fifth step: draw the clips that people rate, as in BiasInEar (appendix B.4), and read the ratings."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vibe_harness.cards.digest import digest
from vibe_harness.csv_sheets import ENCODING, escape_formula, filled_rows
from vibe_harness.errors import UserError
from vibe_harness.speech_sets.card import Rating
from vibe_harness.speech_sets.screening import BINS, ScreenedClip
from vibe_harness.store.atomic_files import atomic_write

RATINGS = ("correct", "acceptable", "incorrect")
COLUMNS = ("language", "bin", "file", "said", "rating", "sha256")


def draw(rows: Sequence[ScreenedClip], rating: Rating, cells: Mapping[str, str], first_part: str) -> list[ScreenedClip]:
    """The sample: of each language and each bin with errors, up to `per_bin` clips.

    Within a bin every group of `rating.stratify` gets its share of the clips, by largest remainders. Within a group
    one clip an item is taken, the question's where it is there, and the cells of `rating.rotate` take turns; where
    that gives too few, further clips fill up. cells: item -> its cell of that column.
    """
    drawn: list[ScreenedClip] = []
    languages = sorted({row.clip.voice.groups.get("language", "") for row in rows})
    for language in languages:
        for name in BINS[1:]:
            pool = [row for row in rows if row.clip.voice.groups.get("language", "") == language and row.bin == name]
            drawn += _from_bin(pool, rating, cells, first_part)
    return drawn


def _from_bin(
    pool: Sequence[ScreenedClip], rating: Rating, cells: Mapping[str, str], first_part: str
) -> list[ScreenedClip]:
    groups: dict[str, list[ScreenedClip]] = {}
    for row in sorted(pool, key=lambda row: digest([rating.seed, row.clip.file])):
        groups.setdefault(row.clip.voice.groups.get(rating.stratify, ""), []).append(row)
    quotas = largest_remainders({name: len(rows) for name, rows in groups.items()}, min(rating.per_bin, len(pool)))
    taken: list[ScreenedClip] = []
    for name in sorted(groups):
        ordered = [*_turns(_one_an_item(groups[name], first_part, rating.seed), cells)]
        chosen = {id(row) for row in ordered}
        rest = [row for row in groups[name] if id(row) not in chosen]
        taken += [*ordered, *rest][: quotas[name]]
    return taken


def _one_an_item(rows: Sequence[ScreenedClip], first_part: str, seed: int) -> list[ScreenedClip]:
    """One row of each item, the items in random order. rows: in random order."""
    items: dict[str, list[ScreenedClip]] = {}
    for row in rows:
        items.setdefault(row.clip.text.item, []).append(row)
    return [
        next((row for row in items[item] if row.clip.text.part == first_part), items[item][0])
        for item in sorted(items, key=lambda item: digest([seed, item]))
    ]


def _turns(rows: Sequence[ScreenedClip], cells: Mapping[str, str]) -> Iterator[ScreenedClip]:
    """The rows, one of each cell in turn."""
    queues: dict[str, list[ScreenedClip]] = {}
    for row in rows:
        queues.setdefault(cells.get(row.clip.text.item, ""), []).append(row)
    while queues:
        for cell in sorted(queues):
            yield queues[cell].pop(0)
            if not queues[cell]:
                del queues[cell]


def largest_remainders(sizes: Mapping[str, int], seats: int) -> dict[str, int]:
    """Seats for each name in proportion to its size; what is left goes to the largest remainders, then by name."""
    total = sum(sizes.values())
    exact = {name: seats * size / total for name, size in sizes.items()}
    given = {name: math.floor(share) for name, share in exact.items()}
    order = sorted(sizes, key=lambda name: (given[name] - exact[name], name))
    for name in order[: seats - sum(given.values())]:
        given[name] += 1
    return given


def write_sheet(path: Path, drawn: Sequence[ScreenedClip]) -> int:
    """The sheet that people fill in, keeping the ratings it holds already. Returns how many clips it lists.

    Raises UserError where a rating would be lost: its clip is no longer in the sample, or sounds otherwise now.
    """
    given = {(row["file"], row["sha256"]): row["rating"] for row in _sheet(path) if row["rating"]}
    lost = given.keys() - {(row.clip.file, row.clip.sha256) for row in drawn}
    if lost:
        raise UserError(
            f"{path}: {len(lost)} ratings are of clips that are not in the sample now (one is {min(lost)[0]}): move "
            "the file aside to have a new sample drawn"
        )
    with atomic_write(path) as aside, aside.open("w", encoding=ENCODING, newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for row in drawn:
            clip = row.clip
            language = clip.voice.groups.get("language", "")
            rating = given.get((clip.file, clip.sha256), "")
            table.writerow([language, row.bin, clip.file, escape_formula(clip.text.text), rating, clip.sha256])
    return len(drawn)


def rated(path: Path) -> dict[tuple[str, str], dict[str, int]]:
    """(language, bin) -> rating -> how many (the paper's Table 3); those not rated yet are left out."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for row in _sheet(path):
        if row["rating"]:
            cell = counts.setdefault((row["language"], row["bin"]), dict.fromkeys(RATINGS, 0))
            cell[row["rating"]] += 1
    return counts


def _sheet(path: Path) -> Iterator[dict[str, str]]:
    for place, row in filled_rows(path, COLUMNS):
        row["rating"] = row["rating"].strip().lower()
        if row["rating"] not in ("", *RATINGS):
            raise UserError(f"{place}: the rating '{row['rating']}' is none of {', '.join(RATINGS)}, or empty")
        yield row
