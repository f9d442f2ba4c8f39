"""The questions of a choice task about one clip: one for each prompt and order of the options."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import Task
from vibe_harness.cards.offered_options import label_files, option_file, option_orders, template_options
from vibe_harness.cards.schema import ChoicePart
from vibe_harness.corpora.audio.concat import joined
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.corpora.sampling import in_turn
from vibe_harness.kinds.base import PromptInstance
from vibe_harness.records import Clip, Option, Waveform, group_in

if TYPE_CHECKING:
    from vibe_harness.records import CheckedClip


def choice_prompts(
    task: Task, choice: ChoicePart, styles: Sequence[str], checked: CheckedClip, rate: int, *, sound: bool = True
) -> Iterator[PromptInstance]:
    """The questions of a choice task about a clip: one for each prompt and order of the options.

    styles: its prompts to use. rate: of the waveforms, in Hz. sound: False where words take the place of sound, so that
    the options stand in the prompt.
    """
    for style in styles:
        spoken = sound and choice.speech is not None
        for variant, options in option_orders(choice, style, checked.clip):
            context = {"options": template_options(options), "spoken": spoken}
            prompt = partial(task.prompt, style, checked.clip.text, context)
            if not spoken:
                yield PromptInstance(variant, prompt, checked, options)
                continue
            pieces = _pieces(task, choice, checked, options)
            pause = choice.speech.pause_s if choice.speech else 0.0
            whole = replace(checked, waveform=digest([pause, [waveform for _, waveform in pieces]]))
            paths = [path for path, _ in pieces]
            yield PromptInstance(variant, prompt, whole, options, partial(_joined, paths, pause, rate))


def _pieces(task: Task, choice: ChoicePart, heard: CheckedClip, options: Sequence[Option]) -> list[tuple[Path, str]]:
    """Audio file and digest of each piece, in the order in which they are heard."""
    labels = _labels(task)
    found = [labels[""]] if "" in labels else []
    found.append((heard.path, heard.waveform))
    for option in options:
        part = heard.parts[option_file(choice, heard.clip, option.content)]
        found += [labels[option.label], (part.path, part.waveform)]
    return found


@lru_cache(maxsize=16)
def _labels(task: Task) -> dict[str, tuple[Path, str]]:
    """Letter -> its audio file, with a digest of it."""
    files = label_files(task.templates.roots, task.card.choice) if task.card.choice else {}
    return {letter: (path, hashlib.sha256(path.read_bytes()).hexdigest()) for letter, path in files.items()}


def _joined(paths: Sequence[Path], pause_s: float, rate: int) -> Waveform:
    return joined([_decoded(path, rate) for path in paths], pause_s)


_decoded = lru_cache(maxsize=16)(read_audio)  # the labels come again in every question


def spoken_seconds(task: Task, choice: ChoicePart, heard: CheckedClip) -> float:
    """How long a clip lasts joined with its spoken options, labels and pauses; the same in every order."""
    assert choice.speech is not None
    options = [heard.parts[option_file(choice, heard.clip, name)].seconds for name in choice.options]
    labels = [_seconds(path) for path, _ in _labels(task).values()]
    pieces = [heard.seconds, *options, *labels]
    return sum(pieces) + choice.speech.pause_s * (len(pieces) - 1)


@lru_cache(maxsize=64)
def _seconds(path: Path) -> float:
    wave = read_audio(path, 16_000)
    return len(wave.samples) / wave.rate


def draw_items(clips: Sequence[Clip], limit: int, column: str, dimensions: Sequence[str], seed: int) -> list[Clip]:
    """Whole items, drawn by the seed, until they have at least `limit` clips; in the manifest's order.

    An item that some of its voices or orders lack cannot be compared. Where some items are asked in one dimension and
    some in another, they are drawn in turn. A larger limit draws the same items and more.
    """
    items: dict[str, list[int]] = {}
    for index, clip in enumerate(clips):
        items.setdefault(clip.groups.get(column, clip.id), []).append(index)
    asked: dict[tuple[bool, ...], list[str]] = {}
    for item in sorted(items, key=lambda item: digest([seed, item])):
        groups = [clips[index].groups for index in items[item]]
        has = tuple(any(group_in(own, name) is not None for own in groups) for name in dimensions)
        asked.setdefault(has, []).append(item)
    drawn: list[int] = []
    for item in in_turn(list(asked.values())):
        if len(drawn) >= limit:
            break
        drawn += items[item]
    return [clips[index] for index in sorted(drawn)]
