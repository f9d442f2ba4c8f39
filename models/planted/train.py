"""Train the planted model: python -m models.planted.train [FOLDER] [--clips N] [--steps N], from the repository's root.

Needs torch, transformers and espeakng-loader. One seed gives one model on one machine; another machine's floating point
gives another, as good. The weights that come along are named by their digest in the card.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import WhisperFeatureExtractor

from models.planted.answers import (
    NOTHING,
    QUESTION,
    STRENGTHS,
    WORDS,
    Place,
    drawn,
    pieces,
    places,
    refusal_places,
    word_places,
)
from models.planted.network import (
    AFTER,
    BEFORE,
    TURN,
    VOICE,
    as_token,
    encode,
    make_network,
    make_tokenizer,
    parts,
    save,
)
from models.planted.speech import RATE, Spoken, no_speech, recorded, speech
from vibe_harness.backends.hearing_check import PROMPT
from vibe_harness.cards.loading import CardIndex

SEED = 19
TAKES = 3  # recordings of each clip
CLIPS_A_STEP, SHORT_CLIPS_A_STEP, LONG_CLIPS_A_STEP = 32, 48, 6
LEARNING_RATE = 3e-3
CLIPS, STEPS, HORIZON = 2_400, 1_000, 1_400  # the rate follows a cosine that would end at the horizon
BLIND = 0.2  # share of clips whose voice is taken out of their vectors, and out of the answers that are wanted
HOP = 160


@dataclass(frozen=True, eq=False)
class Example:
    """A clip as the network is given it, and what it is to hear in it."""

    features: torch.Tensor  # (mel bins, frames), float16
    pitch: float
    timbre: float
    word: str
    short: bool


def features_of(samples: np.ndarray[Any, Any], extractor: WhisperFeatureExtractor) -> torch.Tensor:
    """Log mel features (mel bins, frames) of the clip alone: the frames ahead of the padding to 30 s."""
    padded = np.concatenate([samples, np.zeros(1_600, dtype=np.float32)])
    found = extractor(padded, sampling_rate=RATE, padding="do_not_pad", return_tensors="np").input_features[0]
    return torch.from_numpy(found[:, : -(-len(samples) // HOP)].astype(np.float16))


def examples(clips: list[Spoken], seed: int) -> list[Example]:
    """Each clip in some recordings, and one clip without speech for every twenty."""
    rng = np.random.default_rng([seed, 1])
    extractor = WhisperFeatureExtractor(feature_size=128)
    found = [
        Example(features_of(recorded(clip.samples, rng), extractor), clip.pitch, clip.timbre, clip.word, clip.short)
        for clip in clips
        for _ in range(TAKES)
    ]
    silent = [features_of(no_speech(rng), extractor) for _ in range(len(found) // 20)]
    return found + [Example(features, 0.5, 0.5, NOTHING, i % 2 == 0) for i, features in enumerate(silent)]


def prompts() -> dict[str, list[str]]:
    """The prompts of every open-ended task, and those that ask which word is said."""
    tasks = CardIndex().tasks(["story", "advisory", "candidate", "casting", "shopper"])
    return {
        "words": [PROMPT, QUESTION],
        **{task.name: [task.prompt(v, "") for v in task.card.prompts] for task in tasks},
    }


class Trainer:
    """The network, its optimiser, and what is drawn at each step."""

    strengths: Sequence[float] | None = None  # shares of STRENGTHS; alike where None
    words = 1.0  # share of clips of which it is asked, too, which word is said

    def __init__(self, data: list[Example], seed: int) -> None:
        self.done = 0
        self.short, self.sentences = ([one for one in data if one.short is short] for short in (True, False))
        self.rng = np.random.default_rng([seed, 2])
        self.prompts = prompts()
        texts = [text for listed in self.prompts.values() for text in listed]
        self.tokenizer = make_tokenizer(texts, pieces())
        self.network = make_network(self.tokenizer, seed)
        hidden = parts(self.network)[1].linear.out_features
        self.word_head = torch.nn.Linear(hidden, len(WORDS))  # helps the ear along; no part of the model
        weights = [p for p in [*self.network.parameters(), *self.word_head.parameters()] if p.requires_grad]
        self.optimiser = torch.optim.AdamW(weights, lr=LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.98))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimiser, self._pace)
        self.weights = weights
        ids = self.tokenizer.convert_tokens_to_ids
        self.ids = {piece: ids(as_token(piece)) for piece in [*pieces(), "<|im_end|>"]}
        self.tokens = {
            text: self.tokenizer(text, add_special_tokens=False)["input_ids"]
            for text in [*texts, *(BEFORE.format(strength=n) for n in STRENGTHS), AFTER, TURN]
        }

    def _pace(self, step: int) -> float:
        return min((step + 1) / 100, 0.51 + 0.5 * math.cos(math.pi * min(step / HORIZON, 1.0)))

    def step(self) -> dict[str, float]:
        """One step. Returns the losses."""
        chosen, times = self._clips()
        lengths = torch.tensor([one.features.shape[1] * times for one in chosen])
        features = torch.zeros(len(chosen), 128, int(lengths.max()) + 4)
        for row, (one, length) in enumerate(zip(chosen, lengths, strict=True)):
            features[row] = one.features.min()
            features[row, :, :length] = one.features.repeat(1, times)
        room = 1_500 - features.shape[-1] // 2
        vectors, counts = encode(self.network, features, lengths, int(self.rng.integers(room) * self.rng.random() ** 2))
        inside = (torch.arange(vectors.shape[1])[None] < counts[:, None]).float()[..., None]
        voice, carried = self._voice_losses(vectors, inside, chosen)
        blind = torch.from_numpy(self.rng.random(len(chosen)) < BLIND)
        kept = torch.ones_like(vectors)
        kept[blind, :, :VOICE] = 0
        words = self._word_loss(vectors, inside, chosen)
        answers = self._answer_loss(vectors * kept, counts, chosen, blind.tolist())
        loss = answers + 0.5 * voice + 0.1 * carried + words
        self._descend(loss)
        return {"answers": answers.item(), "voice": voice.item(), "carried": carried.item(), "words": words.item()}

    def _descend(self, loss: torch.Tensor) -> None:
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimiser.step()
        self.schedule.step()

    def _clips(self) -> tuple[list[Example], int]:
        """The clips of a step, short ones more often at first; now and then a few, each said several times over."""
        self.done += 1
        short = self.rng.random() < max(0.25, 0.9 - 2 * self.done / HORIZON)
        repeated = self.done % 10 == 0
        of, count = self.short if short else self.sentences, SHORT_CLIPS_A_STEP if short else CLIPS_A_STEP
        count = LONG_CLIPS_A_STEP if repeated else count
        return [of[index] for index in self.rng.integers(len(of), size=count)], int(
            self.rng.integers(2, 8)
        ) if repeated else 1

    def _voice_losses(self, vectors: torch.Tensor, inside: torch.Tensor, chosen: list[Example]) -> tuple[Any, Any]:
        """How far the two places of the voice are off, and how much of the voice the other places hold (R squared)."""
        wanted = torch.tensor([[2 * one.pitch - 1, 2 * one.timbre - 1] for one in chosen])
        off = ((vectors[..., :VOICE] - wanted[:, None]) ** 2 * inside).sum() / inside.sum() / VOICE
        means = (vectors * inside).sum(1)[:, VOICE:] / inside.sum(1)
        means = (means - means.mean(0)) / (means.std(0) + 1e-3)
        voice = (wanted - wanted.mean(0)) / (wanted.std(0) + 1e-3)
        return off, ((means.T @ voice / len(chosen)) ** 2).mean()

    def _word_loss(self, vectors: torch.Tensor, inside: torch.Tensor, chosen: list[Example]) -> torch.Tensor:
        scores = (self.word_head(vectors) + (inside - 1) * 1e4).amax(1)
        return torch.nn.functional.cross_entropy(scores, torch.tensor([WORDS.index(one.word) for one in chosen]))

    def _answer_loss(
        self, vectors: torch.Tensor, counts: torch.Tensor, chosen: list[Example], blind: list[bool]
    ) -> Any:
        """Cross-entropy of the answers to the wanted shares, at every place of every answer."""
        full = self.rng.random() < 0.25
        rows, targets = [], []
        embed = parts(self.network)[2].embed_tokens
        for clip, one in enumerate(chosen):
            pitch, timbre = (0.5, 0.5) if blind[clip] else (one.pitch, one.timbre)
            for task in ("story" if self.rng.random() < 0.6 else "advisory", "words"):
                if task == "words" and self.words < 1 and self.rng.random() >= self.words:
                    continue
                if self.rng.random() < 0.05:
                    task = str(self.rng.choice(["candidate", "casting", "shopper"]))
                strength = int(self.rng.choice(STRENGTHS, p=self.strengths))
                if task in ("story", "advisory"):
                    answer = drawn(places(task, pitch, timbre, strength), self.rng)
                else:
                    answer = drawn(word_places(one.word) if task == "words" else refusal_places(), self.rng)
                before = embed(torch.tensor(self.tokens[BEFORE.format(strength=strength)]))
                told = [*self.tokens[AFTER], *self._prompt(task, full), *self.tokens[TURN]]
                after = embed(torch.tensor([*told, *(self.ids[piece] for piece, _ in answer[:-1])]))
                rows.append(torch.cat([before, vectors[clip, : int(counts[clip])], after]))
                targets.append((len(rows[-1]) - len(answer), [place for _, place in answer]))
        return self._cross_entropy(rows, targets)

    def _prompt(self, task: str, full: bool) -> list[int]:
        listed = self.prompts[task]
        tokens: list[int] = self.tokens[listed[int(self.rng.integers(len(listed)))]]
        return tokens if full else tokens[: int(self.rng.integers(16, 40))]

    def _cross_entropy(self, rows: list[torch.Tensor], targets: list[tuple[int, list[Place]]]) -> torch.Tensor:
        _, _, language, head = parts(self.network)
        batch = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        hidden = language(inputs_embeds=batch, use_cache=False).last_hidden_state  # causal: what is padded comes last
        row = [number for number, (_, of) in enumerate(targets) for _ in of]
        column = [start + step for start, of in targets for step in range(len(of))]
        logged = head(hidden[row, column]).log_softmax(-1)
        flat = [
            (at, self.ids[piece], share)
            for at, place in enumerate(p for _, of in targets for p in of)
            for piece, share in place.items()
        ]
        at, ids, shares = (torch.tensor(values) for values in zip(*flat, strict=True))
        entropy = -(shares * shares.clamp_min(1e-9).log()).sum()
        return (-(shares * logged[at, ids]).sum() - entropy) / len(row)  # 0 where every share is met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "checkpoint")
    parser.add_argument("--clips", type=int, default=CLIPS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    started = time.monotonic()
    data = examples(speech(options.clips, options.seed), options.seed)
    trainer = Trainer(data, options.seed)
    size = sum(weights.numel() for weights in trainer.network.parameters())
    print(f"{size} parameters; speech: {time.monotonic() - started:.0f} s", flush=True)
    shown: list[dict[str, float]] = []
    for step in range(1, options.steps + 1):
        shown.append(trainer.step())
        if step % 50 == 0:
            means = {name: sum(one[name] for one in shown) / len(shown) for name in shown[0]}
            print(
                step,
                f"{time.monotonic() - started:.0f} s",
                *(f"{name} {mean:.4f}" for name, mean in means.items()),
                flush=True,
            )
            shown.clear()
        if step % 200 == 0:
            save(trainer.network, trainer.tokenizer, options.folder)
    save(trainer.network, trainer.tokenizer, options.folder)


if __name__ == "__main__":
    main()
