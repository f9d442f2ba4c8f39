"""Groups that cannot be compared: refused from the table alone, before decoding, all at once, with the remedy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from vibe_harness.cards.faults import Faults
from vibe_harness.cards.loading import Task
from vibe_harness.corpora.group_names import check_group_names
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.corpora.sampling import groups_of, words_of
from vibe_harness.errors import UserError
from vibe_harness.kinds.base import kind_of
from vibe_harness.metrics.frame_counts import unbridged
from vibe_harness.metrics.metric import strata_for
from vibe_harness.records import Clip, group_in, parts_of

SHOWN = 20  # names in a message; the rest is counted
MISSING = 0.05  # share of clips that may stand at levels of a stratum that one group alone has


def without_small_groups(
    corpus: Corpus, clips: Sequence[Clip], dimensions: Sequence[str]
) -> tuple[list[Clip], dict[str, str]]:
    """The clips in groups of at least `corpus.min_speakers` speakers in every dimension; the others with the reason.

    A clip that has no group in a dimension stays for another one. What falls in one dimension can make a group of
    another one small: it is done again until nothing falls.
    """
    kept, fallen = list(clips), dict[str, str]()
    changed = corpus.min_speakers > 1
    while changed:
        changed = False
        for dimension in dimensions:
            speakers: dict[str | None, set[str]] = defaultdict(set)
            for clip in kept:
                speakers[group_in(clip.groups, dimension)].add(clip.speaker)
            small = {group for group, own in speakers.items() if group is not None and len(own) < corpus.min_speakers}
            for clip in kept:
                group = group_in(clip.groups, dimension)
                if group in small:
                    fallen[clip.id] = (
                        f"the {dimension} '{group}' has {len(speakers[group])} speakers, and the corpus card asks for "
                        f"{corpus.min_speakers}"
                    )
            changed |= bool(small)
            kept = [clip for clip in kept if clip.id not in fallen]
    return kept, fallen


def check_groups(corpus: Corpus, tasks: Sequence[Task], dimensions: Sequence[str], clips: Sequence[Clip]) -> None:
    """Raise UserError where groups cannot be compared, with all that is wrong in every dimension, a line each.

    So it is without a dimension, and as `groups_of` and `check_group_names` say. For tasks with free answers it is so
    too with one group, with groups of a single speaker, where some speakers stand in two groups and others in one,
    where a speaker stands in two strata within which speakers are permuted, and where a declared stratum goes with the
    groups or has levels that one group alone has.
    """
    if not dimensions:
        meant = dict.fromkeys(name for task in tasks for name in task.card.dimensions)
        columns = sorted({name for clip in corpus.clips for name in clip.groups})
        raise UserError(
            f"the corpus '{corpus.name}' has no two groups in the dimensions of these tasks ({', '.join(meant)}): name "
            f"one of its columns with --dimension ({', '.join(columns) or 'it has none'})"
        )
    free_text = any(kind_of(task.card).free_text for task in tasks)
    faults = Faults()
    for dimension in dimensions:
        with faults.at():
            if not any(group_in(clip.groups, dimension) for clip in clips):
                raise UserError(
                    f"corpus '{corpus.name}': none of the {len(clips)} clips asked for has a group in the dimension "
                    f"'{dimension}': choose another --dimension or a higher --limit"
                )
            groups = groups_of(clips, dimension)
            with faults.at():
                check_group_names(dimension, words_of(clips, dimension), corpus.named_groups)
            if free_text:  # a choice task asks each voice in every order, and of any number of speakers
                _check_shift(corpus, dimension, groups, faults)
    faults.raise_if_any()


def varies_within_speakers(groups: dict[str, list[Clip]]) -> bool:
    """Whether every speaker has clips in several groups, as with emotions: they are then compared within speakers."""
    return min(map(len, _groups_by_speaker(groups).values())) > 1


def _groups_by_speaker(groups: dict[str, list[Clip]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for group, members in groups.items():
        for clip in members:
            found[clip.speaker].add(group)
    return found


def _check_shift(corpus: Corpus, dimension: str, groups: dict[str, list[Clip]], faults: Faults) -> None:
    compared = [clip for members in groups.values() for clip in members]
    within = varies_within_speakers(groups)
    strata = strata_for(dimension, corpus.speaker_strata)
    for column in strata if within else (dimension, *strata):
        with faults.at():
            _check_one_group_a_speaker(corpus, column, compared)
    with faults.at():
        if len(groups) < 2:
            raise UserError(
                f"corpus '{corpus.name}': the dimension '{dimension}' has one group only ({next(iter(groups))}) among "
                f"the {len(compared)} clips asked for, and two are needed: choose another --dimension or a higher "
                "--limit"
            )
        _check_speakers(corpus, dimension, groups)
        if within and (apart := unbridged(_groups_by_speaker(groups).items())):
            raise UserError(f"--dimension {dimension}: {apart}")
    for column in dict.fromkeys([*corpus.strata, *(() if within else strata)]):
        if column not in parts_of(dimension):
            with faults.at():
                _check_stratum(corpus, dimension, column)


def _check_speakers(corpus: Corpus, dimension: str, groups: dict[str, list[Clip]]) -> None:
    """Raise UserError that names every group of a single speaker."""
    speakers = {group: sorted({clip.speaker for clip in members}) for group, members in sorted(groups.items())}
    alone = {group: own[0] for group, own in speakers.items() if len(own) < 2}
    if not alone:
        return
    named = ", ".join(f"'{group}' ({speaker})" for group, speaker in list(alone.items())[:SHOWN])
    more = f" and {len(alone) - SHOWN} more" if len(alone) > SHOWN else ""
    one = len(alone) == 1
    which = f"the group {named} of '{dimension}' has" if one else f"{len(alone)} groups of '{dimension}' have"
    remedy = "add speakers, or raise --limit"
    if len(groups) - len(alone) > 1:
        remedy += (
            f"; or leave {'it' if one else 'them'} out, with 'select: {{min_speakers: 2}}' (or where: {{{dimension}: "
            "[...]}) in a card beside the manifest"
        )
    raise UserError(
        f"corpus '{corpus.name}': {which} one speaker only{'' if one else f': {named}{more}'}: voice and group cannot "
        f"be told apart there: {remedy}"
    )


def _check_one_group_a_speaker(corpus: Corpus, column: str, clips: Sequence[Clip]) -> None:
    """Raise UserError for a speaker who stands in two groups of a column, where others stand in one."""
    found: dict[str, str] = {}
    for clip in clips:
        group = group_in(clip.groups, column) or "none"
        if found.setdefault(clip.speaker, group) != group:
            raise UserError(
                f"corpus '{corpus.name}': speaker '{clip.speaker}' stands in two groups of '{column}' "
                f"({found[clip.speaker]}, {group}; {clip.file}), and not every speaker does: a speaker belongs to one, "
                "or each to several, which are then compared within speakers: choose another --dimension, mend the "
                "manifest, or raise --limit"
            )


def _check_stratum(corpus: Corpus, dimension: str, column: str) -> None:
    """Raise UserError where levels of a declared stratum stand in one group only, in the whole corpus: all of them, or
    levels with more than MISSING of the clips.

    Nothing can be compared at such a level. Its clips are left out where strata are evened out, so they would be asked
    and paid for in vain, or, where speakers are exchanged within the stratum, never exchanged. A take that is missing
    here or there is no fault of the design; the results then say what was left out.
    """
    levels = groups_by_level(corpus.clips, dimension, column)
    alone = {level: next(iter(groups)) for level, groups in levels.items() if len(groups) == 1}
    if len(levels) < 2 or not alone:
        return
    if len(alone) == len(levels):
        level, group = next(iter(alone.items()))
        raise UserError(
            f"corpus '{corpus.name}': the stratum '{column}' goes with '{dimension}': each of its levels stands in one "
            f"group only ('{level}' in '{group}'), so that the two cannot be told apart: record every group at each "
            f"level, or take '{column}' out of the strata and read the score as that of both"
        )
    compared = [clip for clip in corpus.clips if column in clip.groups and group_in(clip.groups, dimension)]
    lost = sum(clip.groups[column] in alone for clip in compared) / len(compared)
    if lost > MISSING:
        named = ", ".join(f"'{level}' in '{group}'" for level, group in list(alone.items())[:SHOWN])
        shared = ", ".join([level for level in levels if level not in alone][:SHOWN])
        raise UserError(
            f"corpus '{corpus.name}': levels of the stratum '{column}' stand in one group of '{dimension}' only "
            f"({named}{'' if len(alone) <= SHOWN else ', ...'}; {lost:.0%} of the clips), where nothing can be "
            f"compared: record the other groups there, or leave them out with 'select: {{where: {{{column}: "
            f"[{shared}]}}}}' in the corpus card"
        )


def groups_by_level(clips: Sequence[Clip], dimension: str, column: str) -> dict[str, set[str]]:
    """Level of a column -> the groups of a dimension in which it occurs."""
    levels: dict[str, set[str]] = defaultdict(set)
    for clip in clips:
        group = group_in(clip.groups, dimension)
        if group is not None and column in clip.groups:
            levels[clip.groups[column]].add(group)
    return dict(levels)
