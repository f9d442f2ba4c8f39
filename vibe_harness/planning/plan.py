"""The requests of a run: one for each clip, task and prompt variant, clip by clip in an order drawn by the seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.kinds.base import kind_of
from vibe_harness.modality import Modality, in_words, modality_identity
from vibe_harness.records import AnswerBy, CheckedClip, Generation, Request, Waveform
from vibe_harness.store.request_ids import RequestTable


@lru_cache(maxsize=8)
def decoded(path: Path, rate: int) -> Waveform:
    """Decode a clip; cached, because the requests of a clip follow each other. See `read_audio`."""
    return read_audio(path, rate)


@dataclass(frozen=True)
class Plan:
    """The requests of a run. A plan holds clips and tasks; requests are created in iteration."""

    model: ModelCard
    tasks: Sequence[Task]
    variants: Mapping[str, Sequence[str]]  # task -> prompt variants
    clips: Sequence[CheckedClip]
    seed: int
    modality: Modality = "audio"
    answer_by: AnswerBy = "generate"

    def __len__(self) -> int:
        return sum(
            len(self.variants[task.name]) * kind_of(task.card).count(task, checked.clip)
            for task in self.tasks
            for checked in self.clips
        )

    def table(self) -> RequestTable:
        """Id and key of every request."""
        return request_table(self.requests())

    def requests(self, written: Iterator[tuple[str, str]] | None = None) -> Iterator[Request]:
        """Yield every request, clip by clip, so that engines can reuse their cache for a clip.

        The order of the clips is drawn: in the corpus's own order one group often comes after another, and a model
        that changes during the run would seem to shift with the group.

        written: id and prompt of every request from an earlier pass, so that no prompt is rendered twice. In a cascade,
        requests have the clip as audio, and `cascade.TranscriptBackend` replaces it by the model's transcription.
        """
        by_likelihood = self.answer_by == "likelihood"
        how = [self.answer_by] if by_likelihood else []  # keeps the ids of runs older than this option
        identity = digest([self.model.identity(), modality_identity(self.modality), *how])
        for checked in _shuffled(self.clips, self.seed):
            transcript = self.modality == "transcript"
            audio = None if transcript else partial(decoded, checked.path, self.model.sample_rate)
            for task in self.tasks:
                sampling = task.card.generation
                generation = Generation(sampling.max_tokens, sampling.temperature, self.seed)
                if by_likelihood:
                    generation = Generation(max_tokens=1, seed=self.seed)
                styles, sound = self.variants[task.name], self.modality == "audio"
                for instance in kind_of(task.card).prompts(task, styles, checked, self.model.sample_rate, sound=sound):
                    if written is not None:
                        id, prompt = next(written)
                    else:
                        prompt = instance.prompt()
                        if transcript:
                            prompt = in_words(checked.clip.text or "", prompt)
                        id = request_id(identity, task.name, instance.variant, prompt, generation, instance.checked)
                    yield Request(
                        id=id,
                        task=task.name,
                        variant=instance.variant,
                        clip=checked.clip.id,
                        prompt=prompt,
                        generation=generation,
                        audio=instance.audio or audio,
                        options=instance.options,
                        answer_by=self.answer_by,
                    )


def _shuffled(clips: Sequence[CheckedClip], seed: int) -> list[CheckedClip]:
    """The clips in an order that depends on the seed and on their ids alone."""
    return sorted(clips, key=lambda checked: hashlib.sha256(f"{seed} {checked.clip.id}".encode()).digest())


def request_table(requests: Iterable[Request]) -> RequestTable:
    """Id and key of every request."""
    return RequestTable((request.id, request.key) for request in requests)


def request_id(
    identity: str, task: str, variant: str, prompt: str, generation: Generation, checked: CheckedClip
) -> str:
    """Digest (32 hex digits) of everything that can change the answer, so that answers are never mixed up.

    identity: digest of the model card's identity (engine, weights, revision, layout, rate, arguments), the modality and
    the way of answering.
    """
    parts = (
        identity,
        task,
        variant,
        prompt,
        str(generation.max_tokens),
        repr(generation.temperature),
        str(generation.seed),
        checked.clip.id,
        checked.waveform,
    )
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()[:32]
