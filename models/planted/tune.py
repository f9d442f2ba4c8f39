"""Second part of the training: python -m models.planted.tune [FOLDER], behind models.planted.train.

The language model alone, on clips whose vectors stand: by now it writes answers, and learns here how far to shift them.
The strengths at both ends come more often, and so do answers that a voice shifts.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch

from models.planted.network import encode, parts, save
from models.planted.speech import speech
from models.planted.train import Example, Trainer, examples

SEEDS = (20, 21)  # of the rounds, each with clips of its own and a learning rate that falls to 0
CLIPS, STEPS, ROWS, LONG_ROWS = 250, 600, 24, 4
LEARNING_RATE = 2e-3
SHARES = (0.35, 0.15, 0.15, 0.35)  # of the strengths in STRENGTHS


class Tuner(Trainer):
    """The language model of a checkpoint, trained on; see `Trainer`."""

    strengths = SHARES
    words = 0.1

    def __init__(self, data: list[Example], folder: Path, steps: int, seed: int) -> None:
        super().__init__(data, seed)
        self.network = type(self.network).from_pretrained(folder, dtype=torch.float32)
        _, _, language, head = parts(self.network)
        self.weights = [*language.parameters(), *head.parameters()]
        self.optimiser = torch.optim.AdamW(self.weights, lr=LEARNING_RATE, weight_decay=0.0, betas=(0.9, 0.98))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimiser, lambda step: min((step + 1) / 30, 0.5 + 0.5 * math.cos(math.pi * step / steps))
        )
        self.heard = [(one, self._vectors(one, 1)) for one in data]
        drawn = self.rng.integers(len(data), size=40)
        self.heard_long = [(data[i], self._vectors(data[i], int(self.rng.integers(2, 8)))) for i in drawn]

    @torch.inference_mode()
    def _vectors(self, one: Example, times: int) -> torch.Tensor:
        quiet = float(one.features.min())
        features = torch.nn.functional.pad(one.features.float().repeat(1, times), (0, 4), value=quiet)
        vectors, counts = encode(self.network, features[None], torch.tensor([features.shape[1] - 4]))
        return vectors[0, : int(counts)]

    def step(self) -> dict[str, float]:
        self.done += 1
        of, rows = (self.heard_long, LONG_ROWS) if self.done % 10 == 0 else (self.heard, ROWS)
        chosen = [of[index] for index in self.rng.integers(len(of), size=rows)]
        counts = torch.tensor([len(vectors) for _, vectors in chosen])
        vectors = torch.nn.utils.rnn.pad_sequence([vectors for _, vectors in chosen], batch_first=True)
        loss = self._answer_loss(vectors.clone(), counts, [one for one, _ in chosen], [False] * rows)
        self._descend(loss)
        return {"answers": loss.item()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "checkpoint")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    options = parser.parse_args()
    for seed in options.seeds:
        tune(options.folder, options.steps, seed)


def tune(folder: Path, steps: int, seed: int) -> None:
    """One round, on the checkpoint in the folder."""
    started = time.monotonic()
    tuner = Tuner(examples(speech(CLIPS, seed), seed), folder, steps, seed)
    shown: list[float] = []
    for step in range(1, steps + 1):
        shown.append(tuner.step()["answers"])
        if step % 50 == 0:
            print(step, f"{time.monotonic() - started:.0f} s", f"answers {np.mean(shown):.5f}", flush=True)
            shown.clear()
    save(tuner.network, tuner.tokenizer, folder)


if __name__ == "__main__":
    main()
