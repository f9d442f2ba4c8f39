"""Writing the perturbed audio of a corpus, one file per clip."""

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
    """Write each changed clip below `target`: 32-bit float WAV, mono, at the clip's own rate.

    Further audio of a clip, such as spoken options (columns that end in _file), is changed too. If the card lists
    levels, each clip is written once per level. target: a folder for these changes of these clips only; if it exists,
    it is complete and kept. Returns the clips with their files below it, and the checks of the new files. Speakers have
    been swapped before. Raises UserError if the clips already have a column with the name of a level, and for a clip
    id that cannot be a file name.
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
        raise UserError(f"perturb.levels: the base already has a column '{taken[0]}', see {clip.id}")
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
            raise UserError(f"{root / source}: after the change, {checked.reason}")
        audio[name] = checked
    return replace(clip, file=f"{stem}.wav", groups={**clip.groups, **further}), audio


def _stem(clip: Clip) -> str:
    """Path of the clip's files below the folder, without their suffixes. Raises UserError if it leads elsewhere."""
    stem = clip.id.partition("/")[2]
    if any(part in ("", ".", "..") for part in stem.split("/")) or "\\" in stem or "\0" in stem:
        raise UserError(f"{clip.id}: the id cannot be the name of a file, which changed audio needs: rename the clip")
    return stem


def _write(source: Path, clip: Clip, change: Perturbation, path: Path) -> None:
    wave = decode(source)
    if isinstance(wave, BadAudio):
        raise UserError(f"{source}: {wave.reason}")
    changed = perturbed(wave, change, clip)
    file = io.BytesIO()  # written by Python, since libsndfile does not report a full disk
    soundfile.write(file, changed.samples, changed.rate, format="WAV", subtype="FLOAT")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.getvalue())
