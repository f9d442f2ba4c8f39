"""What a run asks: one request per clip, task and prompt variant, ordered by clip."""

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
    """The clip, kept while the tasks ask of it one after the other; see `read_audio`."""
    return read_audio(path, rate)


@dataclass(frozen=True)
class Plan:
    """All requests of a run, made when they are asked for: a plan holds clips and tasks, not requests."""

    model: ModelCard
    tasks: Sequence[Task]
    variants: Mapping[str, Sequence[str]]  # task -> prompt variants
    clips: Sequence[CheckedClip]
    seed: int
    modality: Modality = "audio"
    answer_by: AnswerBy = "generate"

    def __len__(self) -> int:
        each = [(task, len(self.variants[task.name])) for task in self.tasks]
        return sum(
            prompts * kind_of(task.card).count(task, heard.clip) for task, prompts in each for heard in self.clips
        )

    def table(self) -> RequestTable:
        """The id of every request with its key."""
        return request_table(self.requests())

    def requests(self, written: Iterator[tuple[str, str]] | None = None) -> Iterator[Request]:
        """Every request, clip by clip: what is asked of one clip shares the engine's caches.

        written: id and prompt of each, as an earlier pass gave them, so that no prompt is rendered twice.

        Those of a cascade come with the clip: `cascade.TranscriptBackend` puts the model's transcription in its place.
        """
        by_likelihood = self.answer_by == "likelihood"
        how = [self.answer_by] if by_likelihood else []  # an id from before there were two ways stands
        identity = digest([self.model.identity(), modality_identity(self.modality), *how])
        for heard in self.clips:
            transcript = self.modality == "transcript"
            audio = None if transcript else partial(decoded, heard.path, self.model.sample_rate)
            for task in self.tasks:
                sampling = task.card.generation
                generation = Generation(sampling.max_tokens, sampling.temperature, self.seed)
                if by_likelihood:
                    generation = Generation(max_tokens=1, seed=self.seed)
                styles, sound = self.variants[task.name], self.modality == "audio"
                for asked in kind_of(task.card).prompts(task, styles, heard, self.model.sample_rate, sound=sound):
                    if written is not None:
                        id, prompt = next(written)
                    else:
                        prompt = asked.prompt()
                        if transcript:
                            prompt = in_words(heard.clip.text or "", prompt)
                        id = request_id(identity, task.name, asked.variant, prompt, generation, asked.checked)
                    yield Request(
                        id=id,
                        task=task.name,
                        variant=asked.variant,
                        clip=heard.clip.id,
                        prompt=prompt,
                        generation=generation,
                        audio=asked.audio or audio,
                        options=asked.options,
                        answer_by=self.answer_by,
                    )


def request_table(requests: Iterable[Request]) -> RequestTable:
    """The id of every request with its key."""
    return RequestTable((request.id, request.key) for request in requests)


def request_id(identity: str, task: str, variant: str, prompt: str, generation: Generation, heard: CheckedClip) -> str:
    """Digest (32 hex digits) of everything that can change an answer, so that no other answer is ever taken for it.

    identity: digest of the model card's identity (engine, weights, revision, layout, rate, arguments), of the form in
    which the model meets the clip, and of how it answers.
    """
    parts = (
        identity,
        task,
        variant,
        prompt,
        str(generation.max_tokens),
        repr(generation.temperature),
        str(generation.seed),
        heard.clip.id,
        heard.waveform,
    )
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()[:32]
