"""The data card of a prepared corpus: what was selected and left out; and tables of the groups of any corpus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vibe_harness.corpora.card import CorpusCard
from vibe_harness.corpora.confounds import Confound, confounds
from vibe_harness.corpora.importers.base import LeftOut, counted
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.records import CheckedAudio, Clip

MOST_GROUPS = 20  # columns with more groups are not listed: ages, sentences, continuations


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group of one column."""

    column: str
    group: str
    speakers: int
    clips: int
    hours: float | None  # None if the audio was not checked


def group_rows(corpus: Corpus, audio: Mapping[str, CheckedAudio]) -> list[GroupRow]:
    """Speakers, clips and hours by group, for every column with 2 to MOST_GROUPS groups that are not all numbers."""
    members: dict[str, dict[str, list[Clip]]] = defaultdict(lambda: defaultdict(list))
    for clip in corpus.clips:
        for column, group in clip.groups.items():
            members[column][group].append(clip)
    rows = []
    for column, groups in members.items():
        if not _few_names(groups):
            continue
        for group, clips in sorted(groups.items()):
            seconds = [audio[clip.file].duration_s for clip in clips if clip.file in audio]
            hours = sum(seconds) / 3600 if len(seconds) == len(clips) else None
            rows.append(GroupRow(column, group, len({clip.speaker for clip in clips}), len(clips), hours))
    return rows


def speaker_dimensions(corpus: Corpus) -> list[str]:
    """Columns that are the same in all clips of a speaker, with 2 to MOST_GROUPS groups that are not all numbers.

    A column that groups the speakers as an earlier one does (first language, if it is also the accent) is left out.
    """
    own: dict[str, dict[str, str | None]] = defaultdict(dict)
    for clip in corpus.clips:
        for column, group in clip.groups.items():
            before = own[column].setdefault(clip.speaker, group)
            if before != group:
                own[column][clip.speaker] = None
    found: dict[str, dict[str, str | None]] = {}
    for column, speakers in own.items():
        groups = set(speakers.values())
        if None not in groups and _few_names(groups) and speakers not in found.values():
            found[column] = speakers
    return list(found)


def why_not_compared(corpus: Corpus) -> dict[str, str]:
    """For a corpus without `speaker_dimensions`: column -> why it is none, for every column that is not empty."""
    groups: dict[str, dict[str, str]] = defaultdict(dict)  # column -> speaker -> the first group
    reasons: dict[str, str] = {}
    for clip in corpus.clips:
        for column, group in clip.groups.items():
            before = groups[column].setdefault(clip.speaker, group)
            if before != group:
                reasons.setdefault(column, f"speaker '{clip.speaker}' is in two groups, '{before}' and '{group}'")
    for column, speakers in groups.items():
        names = sorted(set(speakers.values()))
        what = f"only one group, '{names[0]}'" if len(names) == 1 else f"{len(names)} groups"
        numbers = len(names) > 1 and not _names(names)
        reasons.setdefault(column, f"{what}, all of them numbers" if numbers else what)
    return reasons


def _few_names(groups: Iterable[str | None]) -> bool:
    """Whether there are few enough groups to list, and not all are numbers, which need bands."""
    names = {group for group in groups if group}
    return 2 <= len(names) <= MOST_GROUPS and _names(names)


def _names(groups: Iterable[str]) -> bool:
    return not all(group.replace(".", "", 1).isdigit() for group in groups)


def all_confounds(corpus: Corpus, audio: Mapping[str, CheckedAudio]) -> list[Confound]:
    """Compare the recordings between groups, for every dimension of speakers."""
    return [one for column in speaker_dimensions(corpus) for one in confounds(corpus.clips, audio, column)]


def data_card(card: CorpusCard, corpus: Corpus, audio: Mapping[str, CheckedAudio], left_out: Sequence[LeftOut]) -> str:
    """The card as Markdown."""
    hours = sum(audio[clip.file].duration_s for clip in corpus.clips) / 3600
    speakers = len({clip.speaker for clip in corpus.clips})
    lines = [
        f"# {corpus.name}",
        "",
        f"{card.description} Card version {card.version}. Licence: {corpus.licence or 'not stated'}.",
        *(["**Synthetic speech, not recordings of people.**"] if corpus.synthetic else []),
        "",
        f"{len(corpus.clips):,} clips of {speakers:,} speakers, {hours:.2f} hours. Audio: `{corpus.root}`.",
        "",
        "## Selected",
        "",
        "| column | group | speakers | clips | hours |",
        "|---|---|---:|---:|---:|",
    ]
    lines += [
        f"| {row.column} | {row.group} | {row.speakers} | {row.clips} | {row.hours or 0:.2f} |"
        for row in group_rows(corpus, audio)
    ]
    if left_out:
        lines += ["", "## Left out", "", "left_out.csv lists each file with its reason.", ""]
        lines += ["| reason | files |", "|---|---:|"]
        lines += [f"| {why} | {count} |" for why, count in counted(left_out).items()]
    if corpus.notes:
        lines += ["", "## Notes", "", *(f"- {note}" for note in corpus.notes)]
    lines += ["", "## Recordings compared between groups", ""]
    lines += ["| dimension | property | by group | effect | p | |", "|---|---|---|---:|---:|---|"]
    for one in all_confounds(corpus, audio):
        mark = "**differs**" if one.warned else ""
        lines.append(f"| {one.dimension} | {one.feature} | {one.groups()} | {one.size()} | {one.chance()} | {mark} |")
    lines += [
        "",
        "Each speaker counts once; groups of one speaker are not compared. d: largest difference of two groups in "
        "pooled standard deviations (p: Kruskal-Wallis); "
        "V: Cramér's V, bias-corrected (p: chi-squared). If recordings differ between groups, a shift may come from "
        "them and not from the voices.",
        "",
    ]
    return "\n".join(lines)
