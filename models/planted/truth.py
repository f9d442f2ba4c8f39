"""The true nTVD of the planted model on given clips, from its own probabilities.

At every place of an answer where the grammar of answers.py lets several values stand, the network's probabilities of
those values are read off (a forward pass), along answers that are drawn from the network itself, and averaged over
these. What an answer says before a place hardly moves the probabilities there, so few drawn answers do: `error` says
how far their number leaves the result open. The expected number of times that group g names value v is

    n_g(v) = sum over the clips of g of  sum over the places for v of  P(the place is reached) P(v there)

and the score is that of VIBE (arXiv 2604.17248), equations 2 to 5, on n_g(v).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import Qwen2AudioForConditionalGeneration, Qwen2AudioProcessor

from models.planted.answers import END, QUESTION, REFUSALS, WORDS, pieces, places, tables
from models.planted.network import AFTER, BEFORE, TURN, as_token, encode, parts
from vibe_harness.records import Waveform
from vibe_harness.stats.ntvd import shift

Floats = NDArray[np.float64]
ANSWERS = 16  # drawn for each clip


@dataclass(frozen=True, eq=False)
class Expected:
    """What one task's answers to some clips hold, on average.

    counts: attribute -> (answers drawn, clips, values), the expected number of times a value is named, along each of
    the answers that were drawn. values: attribute -> the names of its values. refused: (clips,), the probability of a
    refusal. outside: the probability, averaged over places, of what is none of the pieces of an answer.
    """

    counts: Mapping[str, Floats]
    values: Mapping[str, tuple[str, ...]]
    refused: Floats
    outside: float


class Checkpoint:
    """A planted checkpoint, opened without the harness."""

    def __init__(self, folder: Path) -> None:
        self.processor: Any = Qwen2AudioProcessor.from_pretrained(folder)
        self.network: Any = Qwen2AudioForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
        tokenizer = self.processor.tokenizer
        self.ids = {piece: tokenizer.convert_tokens_to_ids(as_token(piece)) for piece in [*pieces(), END]}

    @torch.inference_mode()
    def vectors(self, wave: Waveform) -> torch.Tensor:
        """What the language model is given of a clip of at most 30 s: (tokens, hidden)."""
        found = self.processor.feature_extractor(
            wave.samples, sampling_rate=wave.rate, return_attention_mask=True, return_tensors="pt"
        )
        length = found.attention_mask.sum(-1)
        frames = min(int(length) + 8, 3_000)
        vectors, count = encode(self.network, found.input_features[..., :frames], length)
        return vectors[0, : int(count)]

    @torch.inference_mode()
    def expected(
        self,
        clips: Sequence[torch.Tensor],
        task: str,
        prompt: str,
        strength: int,
        answers: int = ANSWERS,
        seed: int = 0,
    ) -> Expected:
        """Expected answers to clips, given as their vectors. prompt: the task's words."""
        rng = np.random.default_rng(seed)
        values = {
            name: tuple(value for table in listed for value in (*table.low, *table.high, *table.other))
            for name, listed in tables()[0][task].items()
        }
        counts = {name: np.zeros((answers, len(clips), len(of))) for name, of in values.items()}
        where = {value: (name, place) for name, of in values.items() for place, value in enumerate(of)}
        refused, outside = np.zeros(len(clips)), []
        for clip, vectors in enumerate(clips):
            refused[clip], lost = self._follow(vectors, task, prompt, strength, answers, rng, (counts, where, clip))
            outside.append(lost)
        return Expected(counts, values, refused, float(np.mean(outside)))

    @torch.inference_mode()
    def words(self, clips: Sequence[torch.Tensor]) -> list[str]:
        """The likeliest answer to the question of the hearing check, for clips given as their vectors."""
        _, _, language, head = parts(self.network)
        ids = [self.ids[word] for word in WORDS]
        hidden = [language(inputs_embeds=self._prompt(clip, QUESTION, 40)).last_hidden_state[0, -1] for clip in clips]
        return [WORDS[int(head(last)[ids].argmax())] for last in hidden]

    def _follow(
        self, vectors: torch.Tensor, task: str, prompt: str, strength: int, answers: int, rng: Any, sums: Any
    ) -> tuple[float, float]:
        """Draw answers to one clip and add up what stands at their places. Returns P(refusal), P(outside)."""
        counts, where, clip = sums
        _, _, language, head = parts(self.network)
        output = language(inputs_embeds=self._prompt(vectors, prompt, strength), use_cache=True)
        logged = head(output.last_hidden_state[:, -1]).softmax(-1).numpy().astype(np.float64)
        cache = output.past_key_values
        cache.batch_repeat_interleave(answers)
        paths = [places(task, 0.5, 0.5, 0) for _ in range(answers)]
        refused = float(sum(logged[0, self.ids[piece]] for piece in REFUSALS))
        reached, lost = 1 - refused, []
        shares = logged.repeat(answers, axis=0)
        shares[:, [self.ids[piece] for piece in REFUSALS]] = 0  # from here on: where it does not refuse
        shares /= reached
        allowed: list[Any] = [[piece for piece in next(path) if piece not in REFUSALS] for path in paths]
        while any(place is not None for place in allowed):
            tokens = []
            for row, place in enumerate(allowed):
                if place is None:
                    tokens.append(self.ids[END])
                    continue
                names = list(place)
                found = shares[row, [self.ids[name] for name in names]]
                lost.append(1 - found.sum())
                found = found / found.sum()
                for name, share in zip(names, found, strict=True):
                    if name in where:
                        attribute, column = where[name]
                        counts[attribute][row, clip, column] += reached * share
                chosen = names[int(rng.choice(len(names), p=found))]
                tokens.append(self.ids[chosen])
                try:
                    allowed[row] = paths[row].send(chosen)
                except StopIteration:
                    allowed[row] = None
            step = language(input_ids=torch.tensor(tokens)[:, None], past_key_values=cache, use_cache=True)
            shares = head(step.last_hidden_state[:, -1]).softmax(-1).numpy().astype(np.float64)
        return refused, float(np.mean(lost))

    def _prompt(self, vectors: torch.Tensor, prompt: str, strength: int) -> torch.Tensor:
        tokenizer, embed = self.processor.tokenizer, parts(self.network)[2].embed_tokens
        before, after = (
            embed(torch.tensor(tokenizer(text, add_special_tokens=False)["input_ids"]))
            for text in (BEFORE.format(strength=strength), AFTER + prompt + TURN)
        )
        return torch.cat([before, vectors, after])[None]


@dataclass(frozen=True)
class Truth:
    """True nTVD of a task: its mean over attributes, each of them, and the standard error that drawing leaves."""

    mean: float
    attributes: Mapping[str, float]
    error: float


def true_ntvd(expected: Expected, groups: Sequence[str], kept: Mapping[str, Collection[str]]) -> Truth:
    """True nTVD between the groups of the clips.

    kept: attribute -> the values that the filter kept in the run that is compared. The mean is over these attributes.
    A fixed filter of expected counts would keep other values wherever a count lies near tau.
    """
    names = sorted(set(groups))
    member = np.array([[group == name for group in groups] for name in names], dtype=float)  # (G, clips)
    columns = {name: [value in values for value in expected.values[name]] for name, values in kept.items()}

    def scores(drawn: slice | Sequence[int]) -> dict[str, float]:
        found = {}
        for name, column in columns.items():
            table = (member @ expected.counts[name][drawn].mean(axis=0))[:, column]
            found[name] = float(shift(table / table.sum(axis=1, keepdims=True)))
        return found

    whole = scores(slice(None))
    number = len(next(iter(expected.counts.values())))
    left = [np.mean(list(scores([i for i in range(number) if i != out]).values())) for out in range(number)]
    error = float(np.sqrt((number - 1) / number * np.sum((np.array(left) - np.mean(left)) ** 2)))  # jackknife
    return Truth(float(np.mean(list(whole.values()))), whole, error)
