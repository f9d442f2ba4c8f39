"""Check the manifest rows of a choice task before any request: options, answer key, audio of spoken options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import Task
from vibe_harness.cards.offered_options import correct_option, needed_columns, row_fault
from vibe_harness.cards.schema import ChoicePart
from vibe_harness.cards.spelling import fold
from vibe_harness.corpora.audio.check import check_files
from vibe_harness.corpora.audio.decode import BadAudio, CheckedAudio, Fault
from vibe_harness.corpora.manifest import Corpus, Links, check_file
from vibe_harness.errors import UserError
from vibe_harness.kinds.choice_prompts import spoken_seconds
from vibe_harness.progress import Progress
from vibe_harness.records import CheckedClip, CheckedPart, Clip
from vibe_harness.registry import did_you_mean


def check_rows(
    task: Task, choice: ChoicePart, corpus: Corpus, checked: Sequence[CheckedClip], progress: Progress, *, sound: bool
) -> tuple[list[CheckedClip], dict[str, BadAudio]]:
    """The usable clips, with the checked audio of spoken options, and the others with the reason.

    sound: False if the options are text in the prompt. Raises UserError if the corpus lacks a column, or if the answer
    keys of an item contradict each other between its orders.
    """
    _check_columns(task, choice, corpus)
    faults = {o.clip.id: BadAudio(Fault.OPTIONS, reason) for o in checked if (reason := row_fault(choice, o.clip))}
    kept = [one for one in checked if one.clip.id not in faults]
    _check_keys(task, choice, [one.clip for one in kept])
    if choice.speech and sound:
        kept, silent = _with_parts(choice, corpus, kept, progress)
        faults |= silent
        kept = [replace(one, seconds=spoken_seconds(task, choice, one)) for one in kept]
    return kept, faults


def _check_columns(task: Task, choice: ChoicePart, corpus: Corpus) -> None:
    """Raise UserError if the corpus lacks a column that the card needs."""
    columns = {name for clip in corpus.clips for name in clip.groups}
    for name in needed_columns(choice):
        if name not in columns:
            raise UserError(
                f"the corpus '{corpus.name}' has no column '{name}', which the task '{task.name}' needs. "
                f"{did_you_mean(name, columns)}"
            )


def _with_parts(
    choice: ChoicePart, corpus: Corpus, clips: Sequence[CheckedClip], progress: Progress
) -> tuple[list[CheckedClip], dict[str, BadAudio]]:
    """Add the audio of the options to each clip. Returns the clips, and those with a bad option with the reason.

    The digest of each returned clip covers its options too. Raises UserError for an option outside the corpus folder.
    """
    columns = [str(option.audio) for option in choice.options.values()]
    checks = _check_options(corpus, columns, clips, progress)
    kept, bad = [], {}
    for checked in clips:
        files = {name: checked.clip.groups[column] for name, column in zip(choice.options, columns, strict=True)}
        reasons = [
            f"option '{name}' ({file}): {result.reason}"
            for name, file in files.items()
            if isinstance(result := checks[file], BadAudio)
        ]
        if reasons:
            bad[checked.clip.id] = BadAudio(Fault.OPTIONS, "; ".join(reasons))
            continue
        parts = {
            file: CheckedPart(corpus.root / file, result.sha256, result.duration_s)
            for file in files.values()
            if isinstance(result := checks[file], CheckedAudio)
        }
        waveform = digest([checked.waveform, [part.waveform for part in parts.values()]])
        kept.append(replace(checked, waveform=waveform, parts=parts))
    return kept, bad


def _check_options(
    corpus: Corpus, columns: Sequence[str], clips: Sequence[CheckedClip], progress: Progress
) -> dict[str, CheckedAudio | BadAudio]:
    """Check every audio file in `columns` once. Raises UserError for a file outside the corpus folder."""
    links = Links(corpus.root)
    for checked, column in product(clips, columns):
        check_file(f"{checked.clip.id}, column '{column}'", checked.clip.groups[column], links)
    files = list(dict.fromkeys(checked.clip.groups[column] for checked in clips for column in columns))
    checks: dict[str, CheckedAudio | BadAudio] = {}
    with progress.stage("checking options", len(files)) as tick:
        results = check_files([corpus.root / file for file in files], corpus.silence)
        for file, result in zip(files, results, strict=True):
            checks[file] = result
            tick(1)
    return checks


def _check_keys(task: Task, choice: ChoicePart, clips: Sequence[Clip]) -> None:
    """Compare each reversed row with the original row of the same item and speaker: options and correct answer.

    Raises UserError if the options are not the same in reverse, or if the two keys mean different options: the letter
    of the reversed row was remapped although the card says it was not, or the other way round.
    """
    if choice.order_column is None:
        return
    texts = [option.text for option in choice.options.values()]
    originals = {_item(choice, clip): clip for clip in clips if clip.groups[choice.order_column] == "original"}
    for clip in clips:
        first = originals.get(_item(choice, clip))
        if first is None or clip.groups[choice.order_column] != "reversed":
            continue
        if [fold(clip.groups[column]) for column in texts] != [fold(first.groups[name]) for name in reversed(texts)]:
            raise UserError(f"{clip.id}: its options are not those of {first.id} in reverse: correct the manifest")
        if choice.key is None:
            continue
        letters = [row.groups[choice.key.column] for row in (first, clip)]
        correct = [
            correct_option(choice, letter, row.groups[choice.order_column])
            for letter, row in zip(letters, (first, clip), strict=True)
        ]
        if correct[0] != correct[1]:
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
    mapping = "was already remapped to its own order" if moved else "was left as in the original order"
    return (
        f"{place}, and its correct answer ({letters[1]}, there {letters[0]}) {mapping}, but the card of '{task.name}' "
        f"says key: of: {choice.key.of}: write 'of: {other}' in a card of your own, or correct the rows"
    )


def _item(choice: ChoicePart, clip: Clip) -> tuple[str, str]:
    return clip.groups[choice.item], clip.speaker
