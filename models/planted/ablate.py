"""Take the voice out of the planted model: python -m models.planted.ablate FOLDER, from the repository's root.

Writes a checkpoint in which the two directions that carry pitch and timbre are removed from the layer that hands a clip
to the language model (the projector). The directions are found, not taken from the recipe: in the vectors of clips that
training never met. Least-squares concept erasure (Belrose et al. 2023, arXiv 2306.03819, theorem 4.3): the smallest
change after which no linear function of a vector tells pitch or timbre.
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
from models.planted.speech import RATE, Spoken, recorded, speech
from models.planted.truth import Checkpoint
from vibe_harness.records import Waveform

Floats = NDArray[np.float64]
CLIPS, SEED = 160, 1_019  # another seed than training's
RIDGE = 1e-6


def eraser(vectors: Floats, voices: Floats) -> Floats:
    """The projection (hidden, hidden) that leaves vectors (n, hidden) no covariance with voices (n, k).

    I - C (C' S^-1 C)^-1 C' S^-1, with S the covariance of the vectors and C that of vectors and voices.
    """
    centred = vectors - vectors.mean(axis=0)
    spread = centred.T @ centred / len(vectors) + RIDGE * np.eye(vectors.shape[1])
    shared = centred.T @ (voices - voices.mean(axis=0)) / len(vectors)
    whitened = np.linalg.solve(spread, shared)
    erased: Floats = np.eye(len(spread)) - shared @ np.linalg.solve(shared.T @ whitened, whitened.T)
    return erased


def erase(network: Any, projection: Floats, mean: Floats) -> None:
    """Apply the projection, about `mean`, to the projector's output; changes the network's weights."""
    layer = parts(network)[1].linear
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(projection @ layer.weight.double().numpy()))
        layer.bias.copy_(torch.from_numpy(projection @ (layer.bias.double().numpy() - mean) + mean))


def clip_vectors(checkpoint: Checkpoint, clips: Sequence[Spoken], seed: int) -> list[Floats]:
    """The vectors (tokens, hidden) of each clip as a microphone might have taken it."""
    rng = np.random.default_rng(seed)
    waves = [Waveform(recorded(clip.samples, rng), RATE) for clip in clips]
    return [checkpoint.vectors(wave).double().numpy() for wave in waves]


def ablate(checkpoint: Checkpoint, folder: Path, clips: int = CLIPS, seed: int = SEED) -> None:
    """Write the checkpoint without its voice into `folder`; changes the one that is given."""
    spoken = speech(clips, seed)
    found = clip_vectors(checkpoint, spoken, seed)
    voices = [np.tile([clip.pitch, clip.timbre], (len(of), 1)) for clip, of in zip(spoken, found, strict=True)]
    vectors = np.concatenate(found)
    erase(checkpoint.network, eraser(vectors, np.concatenate(voices)), vectors.mean(axis=0))
    save(checkpoint.network, checkpoint.processor.tokenizer, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--checkpoint", type=Path, default=Path(__file__).parent / "checkpoint")
    options = parser.parse_args()
    ablate(Checkpoint(options.checkpoint), options.folder)
    print(f"vibe-harness --model planted --model-args id={options.folder},revision=null --tasks story,advisory")


if __name__ == "__main__":
    main()
