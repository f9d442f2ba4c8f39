"""Perturbations of the audio that a corpus card names. Pitch and rate are changed with Signalsmith Stretch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vibe_harness.cards.digest import digest
from vibe_harness.corpora.card import Perturbation
from vibe_harness.corpora.importers.base import LeftOut
from vibe_harness.errors import UserError
from vibe_harness.records import Clip, Waveform

_SEED = 1  # of the stretcher's phase noise


def perturbed(wave: Waveform, card: Perturbation, clip: Clip) -> Waveform:
    """Apply pitch, rate, loudness and silence to a clip, in this order. Samples may exceed full scale.

    Raises UserError if the library is missing, or if the card gives no pitch for the clip's group.
    """
    samples = wave.samples
    semitones = _semitones(card, clip)
    if semitones:
        samples = _stretched(samples, wave.rate, 1.0, semitones)
    if card.rate != 1.0:
        samples = _stretched(samples, wave.rate, card.rate, 0.0)
    if card.loudness != 1.0:
        samples = samples * np.float32(card.loudness)
    if card.silence:
        samples = np.zeros_like(samples)
    return Waveform(np.ascontiguousarray(samples, dtype=np.float32), wave.rate)


def swap_speakers(clips: Sequence[Clip], seed: int) -> tuple[list[Clip], list[LeftOut]]:
    """Give each clip the file of another speaker who says the same sentence, drawn with the seed.

    Id, speaker and groups stay, so that scores compare the same groups while the model gets other voices. Every file is
    used once. Clips whose sentence no other speaker says are left out. The order of speakers does not depend on their
    names: neighbours by name often are of one group ("arabic1", "arabic2").
    """
    by_sentence: dict[str | None, list[Clip]] = defaultdict(list)
    for clip in clips:
        by_sentence[clip.sentence_id].append(clip)
    played: dict[str, Clip] = {}  # clip id -> the clip whose file it gets
    left_out = []
    for sentence, members in sorted(by_sentence.items(), key=lambda item: item[0] or ""):
        ordered = sorted(members, key=lambda clip: (digest([seed, clip.speaker]), digest([seed, clip.id])))
        most = max(sum(clip.speaker == one.speaker for clip in ordered) for one in ordered)
        if sentence is None or 2 * most > len(ordered):  # one speaker has more than half of the clips
            left_out += [LeftOut(clip.file, "no other speaker to swap with", sentence or "") for clip in members]
            continue
        for index, clip in enumerate(ordered):  # by speaker, so `most` places further on is another speaker
            played[clip.id] = ordered[(index + most) % len(ordered)]
    swapped = [
        replace(clip, file=played[clip.id].file, groups={**clip.groups, "heard_speaker": played[clip.id].speaker})
        for clip in clips
        if clip.id in played
    ]
    return swapped, left_out


def _semitones(card: Perturbation, clip: Clip) -> float:
    if not isinstance(card.pitch, dict):
        return card.pitch
    shift = 0.0
    for column, groups in card.pitch.items():
        group = clip.groups.get(column)
        if group not in groups:
            raise UserError(f"perturb.pitch.{column}: no semitones for '{group}', the {column} of {clip.id}")
        shift += groups[group]
    return shift


def _stretched(samples: NDArray[np.float32], rate: int, speed: float, semitones: float) -> NDArray[np.float32]:
    """Change the rate by the factor `speed` at the same pitch, and the pitch by `semitones` at the same length."""
    try:
        from python_stretch import Signalsmith
    except ImportError:
        raise UserError("perturbing rate or pitch needs a library: pip install 'vibe-harness[perturb]'") from None

    stretch = Signalsmith.Stretch(_SEED)
    stretch.preset(1, float(rate))
    stretch.setTimeFactor(speed)
    stretch.setTransposeSemitones(semitones)
    changed: NDArray[np.float32] = np.asarray(stretch.process(samples[np.newaxis, :]), dtype=np.float32)[0]
    return changed
