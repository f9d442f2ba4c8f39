"""Writing the perturbed sound of a corpus: a file of its own for each clip."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import soundfile

from vibe_harness.corpora.audio import BadAudio, CheckedAudio, check_audio, decode
from vibe_harness.corpora.card import CorpusCard, Perturbation
from vibe_harness.corpora.importing import LeftOut
from vibe_harness.corpora.perturbing import perturbed, swap_speakers
from vibe_harness.errors import UserError
from vibe_harness.records import Clip


def perturb_files(
    root: Path, clips: Sequence[Clip], card: CorpusCard, folder: Path, workers: int
) -> tuple[list[Clip], list[LeftOut], Path, dict[str, CheckedAudio]]:
    """Write each clip, changed as the card says, below folder/audio: 32-bit float WAV, mono, at the clip's own rate.

    Returns the clips with their new files, those that fell, the new root, and the checks of the new files.
    """
    assert card.perturb is not None
    change = card.perturb
    left_out: list[LeftOut] = []
    if change.swap_speakers:
        clips, left_out = swap_speakers(clips, card.select.seed)
    target, aside = folder / "audio", folder / "audio.part"
    shutil.rmtree(aside, ignore_errors=True)
    audio: dict[str, CheckedAudio] = {}
    done: list[Clip] = []
    try:
        with ThreadPoolExecutor(max(1, workers)) as pool:
            for clip, checked in pool.map(lambda clip: _write_one(root, clip, change, aside), clips):
                done.append(clip)
                audio[clip.file] = checked
        shutil.rmtree(target, ignore_errors=True)
        aside.replace(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return done, left_out, target, audio


def _write_one(root: Path, clip: Clip, change: Perturbation, folder: Path) -> tuple[Clip, CheckedAudio]:
    wave = decode(root / clip.file)
    if isinstance(wave, BadAudio):
        raise UserError(f"{root / clip.file}: {wave.reason}")
    changed = perturbed(wave, change, clip)
    file = f"{clip.id.partition('/')[2]}.wav"
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, changed.samples, changed.rate, subtype="FLOAT")
    checked = check_audio(path, silence=change.silence)
    if isinstance(checked, BadAudio):
        raise UserError(f"{root / clip.file}: once changed, {checked.reason}")
    return replace(clip, file=file), checked
