"""The rows of a choice task, checked before any request: their options, their key, and the sound of the options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import Task
from vibe_harness.cards.offered_options import correct_option, needed_columns, row_fault
from vibe_harness.cards.schema import ChoicePart
from vibe_harness.cards.spelling import fold
from vibe_harness.corpora.audio.check_files import check_files
from vibe_harness.corpora.audio.decode import BadAudio, Fault
from vibe_harness.corpora.manifest import Corpus, Links, check_file
from vibe_harness.errors import UserError
from vibe_harness.kinds.choice_prompts import spoken_seconds
from vibe_harness.progress import Progress
from vibe_harness.records import CheckedAudio, CheckedClip, CheckedPart, Clip
from vibe_harness.registry import did_you_mean


def check_rows(
    task: Task, choice: ChoicePart, corpus: Corpus, checked: Sequence[CheckedClip], progress: Progress, *, sound: bool
) -> tuple[list[CheckedClip], dict[str, BadAudio]]:
    """The clips whose options can be asked, with the checked audio of spoken ones, and the others with the reason.

    sound: False where options are asked in words. Raises UserError where the corpus lacks a column, and where keys
    contradict each other between the orders of one item.
    """
    _check_columns(task, choice, corpus)
    faults = {o.clip.id: BadAudio(Fault.OPTIONS, said) for o in checked if (said := row_fault(choice, o.clip))}
    kept = [one for one in checked if one.clip.id not in faults]
    _check_keys(task, choice, [one.clip for one in kept])
    if choice.speech and sound:
        kept, silent = _with_parts(choice, corpus, kept, progress)
        faults |= silent
        kept = [replace(one, seconds=spoken_seconds(task, choice, one)) for one in kept]
    return kept, faults


def _check_columns(task: Task, choice: ChoicePart, corpus: Corpus) -> None:
    """Raise UserError where the corpus as a whole lacks a column of the card: it is not one that the task can ask."""
    columns = {name for clip in corpus.clips for name in clip.groups}
    for name in needed_columns(choice):
        if name not in columns:
            raise UserError(
                f"the corpus '{corpus.name}' has no column '{name}', which the task '{task.name}' takes its options "
                f"from. {did_you_mean(name, columns)}"
            )


def _with_parts(
    choice: ChoicePart, corpus: Corpus, checked: Sequence[CheckedClip], progress: Progress
) -> tuple[list[CheckedClip], dict[str, BadAudio]]:
    """The clips with the audio of their options, each file checked once; and those of which an option is no audio.

    What stands for a clip's sound, its length and its digest, then covers the options. Raises UserError for an option
    outside of the corpus folder.
    """
    columns = [str(option.audio) for option in choice.options.values()]
    parts = _checked_parts(corpus, columns, checked, progress)
    kept, silent = [], {}
    for one in checked:
        files = {name: one.clip.groups[column] for name, column in zip(choice.options, columns, strict=True)}
        own = {file: part for file in files.values() if isinstance(part := parts[file], CheckedPart)}
        reasons = [
            f"option '{name}' ({file}): {part.reason}"
            for name, file in files.items()
            if isinstance(part := parts[file], BadAudio)
        ]
        if reasons:
            silent[one.clip.id] = BadAudio(Fault.OPTIONS, "; ".join(reasons))
        else:
            whole = digest([one.waveform, [part.waveform for part in own.values()]])
            kept.append(replace(one, waveform=whole, parts=own))
    return kept, silent


def _checked_parts(
    corpus: Corpus, columns: Sequence[str], checked: Sequence[CheckedClip], progress: Progress
) -> dict[str, CheckedPart | BadAudio]:
    """File of an option -> its audio, or why it cannot be used. Each file is checked once."""
    links = Links(corpus.root)
    on_disk: dict[str, str] = {}
    for one, column in product(checked, columns):
        file = one.clip.groups[column]
        on_disk[file] = check_file(f"{one.clip.id}, column '{column}'", file, links)
    parts: dict[str, CheckedPart | BadAudio] = {}
    with progress.stage("checking options", len(on_disk)) as tick:
        paths = [corpus.root / path for path in on_disk.values()]
        for file, path, result in zip(on_disk, paths, check_files(paths, corpus.silence), strict=True):
            if isinstance(result, CheckedAudio):
                parts[file] = CheckedPart(path, result.sha256, result.duration_s)
            else:
                parts[file] = result
            tick(1)
    return parts


def _check_keys(task: Task, choice: ChoicePart, clips: Sequence[Clip]) -> None:
    """Compare each reversed row with the original row of its item and speaker: options and right answer.

    Raises UserError where the options are not the same in reverse, and where the two keys mean different options: the
    reversed row's letter was moved along with the options although the card says it was not, or the other way round.
    """
    if choice.order_column is None:
        return
    texts = [option.text for option in choice.options.values()]
    originals = {_item(choice, clip): clip for clip in clips if clip.groups[choice.order_column] == "original"}
    for clip in clips:
        first = originals.get(_item(choice, clip))
        if first is None or clip.groups[choice.order_column] != "reversed":
            continue
        said = [fold(clip.groups[column]) for column in texts]
        if said != [fold(first.groups[column]) for column in reversed(texts)]:
            raise UserError(f"{clip.id}: its options are not those of {first.id} in reverse: correct the manifest")
        if choice.key is None:
            continue
        letters = [one.groups[choice.key.column] for one in (first, clip)]
        meant = [
            correct_option(choice, letter, one.groups[choice.order_column])
            for letter, one in zip(letters, (first, clip), strict=True)
        ]
        if meant[0] != meant[1]:
            raise UserError(_contradiction(task, choice, first, clip, letters))


def _contradiction(task: Task, choice: ChoicePart, first: Clip, clip: Clip, letters: Sequence[str]) -> str:
    assert choice.key is not None
    other = "original" if choice.key.of == "row" else "row"
    count = len(choice.letters)
    moved = choice.letters.index(letters[0]) == count - 1 - choice.letters.index(letters[1])
    place = f"{clip.id}: its options are those of {first.id} in reverse"
    if letters[0] != letters[1] and not moved:
        return (
            f"{place}, but its correct answer {letters[1]} is not the option {letters[0]} there: correct the manifest"
        )
    told = "was already remapped to its own order" if moved else "was left as in the original order"
    return (
        f"{place}, and its correct answer ({letters[1]}, there {letters[0]}) {told}, but the card of '{task.name}' "
        f"says key: of: {choice.key.of}: write 'of: {other}' in a card of your own, or mend the rows that differ"
    )


def _item(choice: ChoicePart, clip: Clip) -> tuple[str, str]:
    return clip.groups[choice.item], clip.speaker
