"""The modality `cascade`: the model transcribes each clip, and its own transcription then replaces the audio."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from vibe_harness.backends.protocol import Backend
from vibe_harness.cards.digest import digest
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.modality import TRANSCRIBE, TRANSCRIPTION_TOKENS, in_words
from vibe_harness.planning.plan import Plan
from vibe_harness.records import Generation, Outcome, Request, Response
from vibe_harness.store.responses import FinalResponses


def transcribing(plan: Plan) -> Iterator[Request]:
    """Yield one transcription request for each clip."""
    generation = Generation(TRANSCRIPTION_TOKENS, seed=plan.seed)
    identity = [plan.model.identity(), TRANSCRIBE, TRANSCRIPTION_TOKENS, plan.seed]
    for checked in plan.clips:
        yield Request(
            id=digest([*identity, checked.clip.id, checked.waveform]),
            task="transcription",
            variant="cascade",
            clip=checked.clip.id,
            prompt=TRANSCRIBE,
            generation=generation,
            audio=partial(read_audio, checked.path, plan.model.sample_rate),
        )


def transcriptions(finals: FinalResponses) -> dict[str, Response]:
    """Clip -> response to its transcription request."""
    return {stored.clip: stored.response() for stored in finals}


class TranscriptBackend:
    """A back end wrapper that replaces the audio of each request by the clip's transcription.

    If a clip has no transcription, its requests are not sent, and end with the outcome of the transcription.
    """

    def __init__(self, backend: Backend, words: Mapping[str, Response]) -> None:
        """words: clip -> response with its transcription."""
        self._backend = backend
        self._words = words

    def describe(self) -> Mapping[str, str]:
        return self._backend.describe()

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        wordless: list[Response] = []

        def with_words() -> Iterator[Request]:
            for request in requests:
                words = self._words[request.clip]
                if words.outcome in (Outcome.OK, Outcome.TRUNCATED):
                    yield replace(request, prompt=in_words(words.text, request.prompt), audio=None)
                else:
                    why = f"transcription: {words.error or words.outcome}"
                    error = why if words.outcome is Outcome.ERROR else None
                    wordless.append(Response(request.id, words.outcome, finish_reason=why, error=error))

        for response in self._backend.generate(with_words()):
            yield response
            while wordless:
                yield wordless.pop()
        yield from wordless

    def close(self) -> None:
        self._backend.close()
