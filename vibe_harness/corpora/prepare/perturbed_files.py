"""Writing the perturbed sound of a corpus: a file of its own for each clip."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import soundfile

from vibe_harness.corpora.audio.check_files import CORES
from vibe_harness.corpora.audio.decode import BadAudio, check_audio, decode
from vibe_harness.corpora.card import Perturbation
from vibe_harness.corpora.prepare.perturb import perturbed
from vibe_harness.errors import UserError
from vibe_harness.records import CheckedAudio, Clip


def perturb_files(
    root: Path, clips: Sequence[Clip], change: Perturbation, target: Path, tick: Callable[[int], None]
) -> tuple[list[Clip], dict[str, CheckedAudio]]:
    """Write each clip, changed, below `target`: 32-bit float WAV, mono, at the clip's own rate. Likewise its further
    audio, such as spoken options: columns that end in _file. Where the card lists levels, once for each level.

    target: a folder that holds nothing but these changes of these clips; where it exists, it is whole, and kept.
    Returns the clips with their files below it, and the checks of the new files. Speakers are swapped before.
    Raises UserError where the clips have a column already that is called as the levels are, and for a clip whose name
    is none for a file.
    """
    wanted = [(_at(clip, levels), one) for clip in clips for levels, one in change.changes()]
    aside = target.with_name(target.name + ".part")
    shutil.rmtree(aside, ignore_errors=True)
    folder = target if target.is_dir() else aside
    audio: dict[str, CheckedAudio] = {}
    done: list[Clip] = []
    try:
        with ThreadPoolExecutor(CORES) as pool:
            for clip, checked in pool.map(lambda pair: _changed(root, pair[0], pair[1], folder), wanted):
                done.append(clip)
                audio |= checked
                tick(1)
        if done and folder is aside:
            aside.replace(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return done, audio


def _at(clip: Clip, levels: Mapping[str, str]) -> Clip:
    """The clip at these levels: "CORPUS/SPEAKER/NAME-rate-0.75", with the level as a group."""
    if taken := sorted(levels.keys() & clip.groups.keys()):
        raise UserError(f"perturb.levels: the base has a column '{taken[0]}' already, see {clip.id}")
    suffix = "".join(f"-{column}-{level}" for column, level in levels.items())
    return replace(clip, id=clip.id + suffix, groups={**clip.groups, **levels})


def _changed(root: Path, clip: Clip, change: Perturbation, folder: Path) -> tuple[Clip, dict[str, CheckedAudio]]:
    stem = _stem(clip)
    further = {column: f"{stem}_{column}.wav" for column in clip.groups if column.endswith("_file")}
    sources = {f"{stem}.wav": clip.file, **{name: clip.groups[column] for column, name in further.items()}}
    audio = {}
    for name, source in sources.items():
        path = folder / name
        if not path.is_file():
            _write(root / source, clip, change, path)
        checked = check_audio(path, silence=change.silence)
        if isinstance(checked, BadAudio):
            raise UserError(f"{root / source}: once changed, {checked.reason}")
        audio[name] = checked
    return replace(clip, file=f"{stem}.wav", groups={**clip.groups, **further}), audio


def _stem(clip: Clip) -> str:
    """The clip's files below the folder, without what their names end in. Raises UserError where they lay elsewhere."""
    stem = clip.id.partition("/")[2]
    if any(part in ("", ".", "..") for part in stem.split("/")) or "\\" in stem or "\0" in stem:
        raise UserError(f"{clip.id}: changed sound is written to files called so, and this is no name of a file")
    return stem


def _write(source: Path, clip: Clip, change: Perturbation, path: Path) -> None:
    wave = decode(source)
    if isinstance(wave, BadAudio):
        raise UserError(f"{source}: {wave.reason}")
    changed = perturbed(wave, change, clip)
    file = io.BytesIO()  # a full disk is then Python's to tell: libsndfile keeps it to itself
    soundfile.write(file, changed.samples, changed.rate, format="WAV", subtype="FLOAT")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.getvalue())
