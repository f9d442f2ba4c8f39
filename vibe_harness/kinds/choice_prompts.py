"""The prompts of a choice task for one clip: one for each prompt style and order of the options."""

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
    """The prompts of a choice task for a clip: one for each prompt style and order of the options.

    styles: names of the prompts to use. rate: sample rate in Hz. sound: False if no audio is played; the options are
    then text in the prompt.
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


def _pieces(task: Task, choice: ChoicePart, checked: CheckedClip, options: Sequence[Option]) -> list[tuple[Path, str]]:
    """Audio file and digest of each piece, in the order in which they are played."""
    labels = _labels(task)
    pieces = [labels[""]] if "" in labels else []
    pieces.append((checked.path, checked.waveform))
    for option in options:
        part = checked.parts[option_file(choice, checked.clip, option.content)]
        pieces += [labels[option.label], (part.path, part.waveform)]
    return pieces


@lru_cache(maxsize=16)
def _labels(task: Task) -> dict[str, tuple[Path, str]]:
    """Letter -> audio file of its label, and the file's digest."""
    files = label_files(task.templates.roots, task.card.choice) if task.card.choice else {}
    return {letter: (path, hashlib.sha256(path.read_bytes()).hexdigest()) for letter, path in files.items()}


def _joined(paths: Sequence[Path], pause_s: float, rate: int) -> Waveform:
    return joined([_decoded(path, rate) for path in paths], pause_s)


_decoded = lru_cache(maxsize=16)(read_audio)  # every prompt plays the same labels


def spoken_seconds(task: Task, choice: ChoicePart, checked: CheckedClip) -> float:
    """Duration (s) of a clip joined with its spoken options, labels and pauses. It is the same in every order."""
    assert choice.speech is not None
    options = [checked.parts[option_file(choice, checked.clip, name)].seconds for name in choice.options]
    labels = [_seconds(path) for path, _ in _labels(task).values()]
    pieces = [checked.seconds, *options, *labels]
    return sum(pieces) + choice.speech.pause_s * (len(pieces) - 1)


@lru_cache(maxsize=64)
def _seconds(path: Path) -> float:
    wave = read_audio(path, 16_000)
    return len(wave.samples) / wave.rate


def draw_items(clips: Sequence[Clip], limit: int, column: str, dimensions: Sequence[str], seed: int) -> list[Clip]:
    """Draw whole items with the seed until they have at least `limit` clips. Returns the clips in manifest order.

    Items are kept whole, because an item can only be compared if all its voices and orders are there. If items differ
    in the dimensions they have, each set of dimensions gets its turn. A larger limit adds items to the same draw.
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
