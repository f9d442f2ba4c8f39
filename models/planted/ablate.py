"""Take the voice out of the planted model: python -m models.planted.ablate FOLDER, from the repository's root.

Writes a checkpoint in which the directions that carry pitch and timbre are removed from the layer that hands a clip to
the language model (the projector). The directions are found, not taken from the recipe: clips that training never met,
the mean vector of each, and by least squares how it moves with pitch and with timbre. What lies along them is then the
same for every clip, as in the erasure of linear concepts (Ravfogel et al. 2020, arXiv 2004.07667).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from models.planted.network import parts, save
from models.planted.speech import Spoken, recorded, speech
from models.planted.truth import Checkpoint
from vibe_harness.records import Waveform

Floats = NDArray[np.float64]
CLIPS, SEED = 160, 1_019  # another seed than training's


def voice_directions(means: Floats, voices: Floats) -> Floats:
    """Orthonormal directions (hidden, k) along which mean vectors (clips, hidden) move with the voices (clips, k)."""
    centred = voices - voices.mean(axis=0)
    moved: Floats = np.linalg.lstsq(centred, means - means.mean(axis=0), rcond=None)[0]  # (k, hidden)
    return np.linalg.qr(moved.T)[0]


def remove(network: Any, directions: Floats, mean: Floats) -> None:
    """Make the projector's output constant, at that of `mean`, along `directions`; changes the network."""
    across = np.eye(len(mean)) - directions @ directions.T
    layer = parts(network)[1].linear
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(across @ layer.weight.double().numpy()))
        layer.bias.copy_(torch.from_numpy(across @ layer.bias.double().numpy() + mean - across @ mean))


def clip_means(checkpoint: Checkpoint, clips: Sequence[Spoken], seed: int) -> Floats:
    """The mean vector (clips, hidden) of each clip as a microphone might have taken it."""
    rng = np.random.default_rng(seed)
    waves = [Waveform(recorded(clip.samples, rng), 16_000) for clip in clips]
    return np.stack([checkpoint.vectors(wave).mean(dim=0).double().numpy() for wave in waves])


def ablate(checkpoint: Checkpoint, folder: Path, clips: int = CLIPS, seed: int = SEED) -> Floats:
    """Write the checkpoint without its voice into `folder`; changes the one that is given. Returns the directions."""
    spoken = speech(clips, seed)
    means = clip_means(checkpoint, spoken, seed)
    directions = voice_directions(means, np.array([[clip.pitch, clip.timbre] for clip in spoken]))
    remove(checkpoint.network, directions, means.mean(axis=0))
    save(checkpoint.network, checkpoint.processor.tokenizer, folder)
    return directions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--checkpoint", type=Path, default=Path(__file__).parent / "checkpoint")
    options = parser.parse_args()
    ablate(Checkpoint(options.checkpoint), options.folder)
    print(f"vibe-harness --model planted --model-args id={options.folder},revision=null --tasks story,advisory")


if __name__ == "__main__":
    main()
