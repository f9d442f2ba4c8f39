"""The groups of a dimension, and drawing clips evenly from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import TypeVar

from vibe_harness.cards.digest import digest
from vibe_harness.corpora.group_names import check_groups_apart
from vibe_harness.errors import UserError
from vibe_harness.records import Clip, group_in, parts_of
from vibe_harness.registry import did_you_mean

Drawn = TypeVar("Drawn")


def check_dimension(dimension: str, columns: Collection[str], of: str) -> None:
    """Raise UserError if a dimension names a column that is not in `columns`, or crosses a column with itself.

    of: what has the columns, for the message: "the run".
    """
    parts = parts_of(dimension)
    for name in parts:
        if name not in columns:
            hint = did_you_mean(name, columns)
            raise UserError(f"--dimension {dimension}: {of} has no such column '{name}', or it is empty. {hint}")
        if parts.count(name) > 1:
            raise UserError(f"--dimension {dimension}: '{name}' is crossed with itself: name each column once")


def groups_of(clips: Sequence[Clip], dimension: str) -> dict[str, list[Clip]]:
    """Group -> its clips, in order of first appearance. Clips without a value in the dimension are left out.

    Raises UserError if no clip has the dimension, and as `check_groups_apart` does.
    """
    groups: dict[str, list[Clip]] = defaultdict(list)
    for clip in clips:
        group = group_in(clip.groups, dimension)
        if group is not None:
            groups[group].append(clip)
    if not groups:
        known = {name for clip in clips for name in clip.groups}
        raise UserError(f"no clip has the dimension '{dimension}'. {did_you_mean(dimension, known)}")
    check_groups_apart(dimension, words_of(clips, dimension))
    return dict(groups)


def words_of(clips: Sequence[Clip], dimension: str) -> list[tuple[str, ...]]:
    """The groups of a dimension, each as its values in the dimension's columns, in order of first appearance."""
    found = (tuple(clip.groups.get(name, "") for name in parts_of(dimension)) for clip in clips)
    return list(dict.fromkeys(words for words in found if all(words)))


def draw_clips(clips: Sequence[Clip], limit: int, dimensions: Sequence[str], seed: int) -> list[Clip]:
    """Draw `limit` clips evenly over the groups and, within a group, over its speakers; in manifest order.

    With several dimensions, clips are drawn over all combinations of their groups; a missing value counts as a group.
    With the same seed, a larger limit draws the same clips and more. Returns all clips if there are at most `limit`.
    Raises UserError for a limit below 1 and for a dimension that no clip has.
    """
    if limit < 1:
        raise UserError(f"a limit of {limit} clips draws nothing: give 1 or more")
    for dimension in dimensions:
        groups_of(clips, dimension)
    cells: dict[tuple[str | None, ...], dict[str, list[Clip]]] = defaultdict(lambda: defaultdict(list))
    for clip in clips:
        cell = tuple(group_in(clip.groups, dimension) for dimension in dimensions)
        cells[cell][clip.speaker].append(clip)
    queues = []
    for _, speakers in sorted(cells.items(), key=lambda item: digest([seed, *item[0]])):
        own = sorted(speakers.items(), key=lambda item: digest([seed, item[0]]))
        queues.append(in_turn([sorted(those, key=lambda clip: digest([seed, clip.id])) for _, those in own]))
    drawn = {clip.id for clip in in_turn(queues)[:limit]}
    return [clip for clip in clips if clip.id in drawn]


def in_turn(queues: Sequence[Sequence[Drawn]]) -> list[Drawn]:
    """The first item of each queue, then the second of each, until all are empty."""
    longest = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]
