"""Audio that the tests make themselves."""

from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray


def speechlike(seconds: float = 1.0, rate: int = 16_000, pitch: float = 120.0, seed: int = 0) -> NDArray[np.float32]:
    """A voiced sound that comes in syllables with pauses between, over a little noise; peak about 0.5."""
    time = np.arange(int(seconds * rate)) / rate
    voiced = sum(np.sin(2 * np.pi * pitch * k * time) / k for k in range(1, 6))
    syllables = np.clip(np.sin(2 * np.pi * 3 * time), 0, None)
    noise = np.random.default_rng(seed).standard_normal(len(time)) * 1e-3
    return (0.25 * voiced * syllables + noise).astype(np.float32)


def write(path: Path, samples: NDArray[np.float32], rate: int = 16_000, **form: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate, **form)
    return path
