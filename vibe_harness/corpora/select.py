"""Selecting the clips of a corpus as its card says. Clips that are left out are returned with the reason."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from vibe_harness.cards.digest import digest
from vibe_harness.cards.paths import find_file
from vibe_harness.corpora.card import Balancing, Selection
from vibe_harness.corpora.group_names import is_placeholder
from vibe_harness.corpora.importers.base import LeftOut
from vibe_harness.corpora.lexicon import load_lexicon, words_found
from vibe_harness.errors import UserError
from vibe_harness.records import Clip
from vibe_harness.registry import did_you_mean

Kept = tuple[list[Clip], list[LeftOut]]


def add_bands(clips: Sequence[Clip], bands: Mapping[str, Sequence[int] | Mapping[str, Sequence[int]]]) -> list[Clip]:
    """Add a group for each column with bands: age 34 with the bands [30, 50] gets age_group "30 to 49".

    Numbers are rounded down, as ages are: 29.5 counts as 29. A number outside all bands, or a missing one, gets no
    group. Raises UserError for a cell that is not a number.
    """
    done = list(clips)
    for column, wanted in bands.items():
        band_of = _named_band(wanted) if isinstance(wanted, Mapping) else _band_from(wanted)
        for index, clip in enumerate(done):
            cell = clip.groups.get(column, "")
            try:
                number = float(cell)
            except ValueError:
                if cell and not is_placeholder(cell):
                    raise UserError(f"bands: {clip.file} has the {column} '{cell}', which is not a number") from None
                continue
            band = band_of(number) if math.isfinite(number) else None
            if band is not None:
                done[index] = replace(clip, groups={**clip.groups, f"{column}_group": band})
    return done


def _band_from(starts: Sequence[int]) -> Callable[[float], str | None]:
    names = [f"under {starts[0]}"]
    names += [f"{low} to {high - 1}" for low, high in pairwise(starts)]
    names.append(f"{starts[-1]} and over")
    return lambda number: names[bisect_right(starts, number)]


def _named_band(bands: Mapping[str, Sequence[int]]) -> Callable[[float], str | None]:
    return lambda number: next((n for n, (first, last) in bands.items() if first <= math.floor(number) <= last), None)


def keep_where(clips: Sequence[Clip], where: Mapping[str, Sequence[str]]) -> Kept:
    """Keep the clips in the listed groups. Raises UserError if no clip has the column or is in any of its groups."""
    kept, left_out = list(clips), []
    for column, groups in where.items():
        there = {clip.groups[column] for clip in clips if column in clip.groups}
        if not there:
            raise UserError(f"select.where: no clip has the column '{column}'. {did_you_mean(column, _columns(clips))}")
        if there.isdisjoint(groups):
            raise UserError(f"select.where: no clip has the {column} '{groups[0]}'. {did_you_mean(groups[0], there)}")
        kept, fallen = _split(kept, lambda clip, c=column, g=groups: clip.groups.get(c) in g)  # type: ignore[misc]
        left_out += [LeftOut(clip.file, f"{column} is not selected", clip.groups.get(column, "")) for clip in fallen]
    return kept, left_out


def without_duplicates(clips: Sequence[Clip], waveforms: Mapping[str, str]) -> Kept:
    """Leave out repeated waveforms. waveforms: file -> hash.

    Of copies with the same speaker, sentence and groups the first is kept. If their labels disagree, all are left out,
    since any of the labels may be wrong.
    """
    same: dict[str, list[Clip]] = defaultdict(list)
    for clip in clips:
        same[waveforms[clip.file]].append(clip)
    fallen: dict[str, LeftOut] = {}
    for copies in same.values():
        first = copies[0]
        labels = {(clip.speaker, clip.sentence_id, tuple(sorted(clip.groups.items()))) for clip in copies}
        agree = len(labels) == 1
        for clip in copies[1:] if agree else copies if len(copies) > 1 else []:
            other = first if clip is not first else copies[1]
            why = "a copy of another clip" if agree else "one waveform under two labels"
            fallen[clip.id] = LeftOut(clip.file, why, f"the same as {other.file}")
    return [clip for clip in clips if clip.id not in fallen], list(fallen.values())


def select(clips: Sequence[Clip], selection: Selection, folder: Path) -> Kept:
    """Apply lexicon, shared sentences, number of sentences and balance, in this order. `where` was applied before.

    folder: of the card; the word list is found below it.
    """
    kept, left_out = list(clips), []
    steps: list[Callable[[list[Clip]], Kept]] = []
    if selection.lexicon:
        lexicon = load_lexicon(find_file([folder], selection.lexicon))
        steps.append(lambda some: without_words(some, lexicon))
    if selection.shared_sentences:
        steps.append(shared_sentences)
    if selection.sentences is not None:
        wanted = selection.sentences
        steps.append(lambda some: draw_sentences(some, wanted, selection.seed))
    if selection.balance:
        balance = selection.balance
        steps.append(lambda some: balanced(some, balance, selection.seed))
    for step in steps:
        kept, fallen = step(kept)
        left_out += fallen
    return kept, left_out


def without_words(clips: list[Clip], lexicon: Mapping[str, str]) -> Kept:
    """Keep clips whose text holds no listed word. Clips without a text are left out."""
    words: dict[str, list[str]] = {}
    kept, left_out = [], []
    for clip in clips:
        if clip.text is None:
            left_out.append(LeftOut(clip.file, "no transcript to look for listed words in"))
            continue
        if clip.text not in words:
            words[clip.text] = words_found(clip.text, lexicon)
        found = words[clip.text]
        if found:
            topics = sorted({lexicon[word] for word in found})
            left_out.append(LeftOut(clip.file, f"mentions {' and '.join(topics)}", ", ".join(found)))
        else:
            kept.append(clip)
    return kept, left_out


def shared_sentences(clips: list[Clip]) -> Kept:
    """Keep clips of the sentences that every speaker has."""
    speakers: dict[str, set[str]] = defaultdict(set)
    for clip in clips:
        speakers[clip.sentence_id or ""].add(clip.speaker)
    everybody = {clip.speaker for clip in clips}
    shared = {sentence for sentence, have in speakers.items() if sentence and have == everybody}
    kept, fallen = _split(clips, lambda clip: clip.sentence_id in shared)
    return kept, [LeftOut(clip.file, "not every speaker has the sentence", clip.sentence_id or "") for clip in fallen]


def draw_sentences(clips: list[Clip], count: int, seed: int) -> Kept:
    """Keep clips of `count` sentences drawn with the seed. A larger count keeps those of a smaller one."""
    sentences = {clip.sentence_id for clip in clips if clip.sentence_id}
    if len(sentences) < count:
        raise UserError(f"select.sentences: {count} wanted, but only {len(sentences)} remain: write a smaller number")
    drawn = set(sorted(sentences, key=lambda sentence: digest([seed, sentence]))[:count])
    kept, fallen = _split(clips, lambda clip: clip.sentence_id in drawn)
    return kept, [LeftOut(clip.file, "sentence not drawn", clip.sentence_id or "") for clip in fallen]


def balanced(clips: list[Clip], balance: Balancing, seed: int) -> Kept:
    """Keep the same number of speakers in each group, within each group of balance.within, drawn with the seed."""
    columns = [balance.column, balance.within] if balance.within else [balance.column]
    cells: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for clip in clips:
        if not _missing(clip, columns):
            within = clip.groups[balance.within] if balance.within else ""
            cells[within][clip.groups[balance.column]].add(clip.speaker)
    groups = {group for cell in cells.values() for group in cell}
    drawn: set[str] = set()
    for cell in cells.values():
        fewest = min(len(cell.get(group, ())) for group in groups)
        for speakers in cell.values():
            drawn |= set(sorted(speakers, key=lambda speaker: digest([seed, speaker]))[:fewest])
    kept, left_out = [], []
    for clip in clips:
        if clip.speaker in drawn:
            kept.append(clip)
        elif missing := _missing(clip, columns):
            left_out.append(LeftOut(clip.file, f"no {missing[0]} stated"))
        else:
            why = f"speaker beyond an equal number of each {balance.column}"
            left_out.append(LeftOut(clip.file, why, clip.speaker))
    return kept, left_out


def _missing(clip: Clip, columns: Sequence[str]) -> list[str]:
    return [column for column in columns if column not in clip.groups]


def _split(clips: Sequence[Clip], keep: Callable[[Clip], bool]) -> tuple[list[Clip], list[Clip]]:
    kept: list[Clip] = []
    fallen: list[Clip] = []
    for clip in clips:
        (kept if keep(clip) else fallen).append(clip)
    return kept, fallen


def _columns(clips: Sequence[Clip]) -> set[str]:
    return {column for clip in clips for column in clip.groups}
