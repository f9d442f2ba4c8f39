"""The cascade: the model writes down what it hears, and is then asked with those words in place of the clip."""

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
    """One request a clip: what is said in it."""
    generation = Generation(TRANSCRIPTION_TOKENS, seed=plan.seed)
    asked = [plan.model.identity(), TRANSCRIBE, TRANSCRIPTION_TOKENS, plan.seed]
    for heard in plan.clips:
        yield Request(
            id=digest([*asked, heard.clip.id, heard.waveform]),
            task="transcription",
            variant="cascade",
            clip=heard.clip.id,
            prompt=TRANSCRIBE,
            generation=generation,
            audio=partial(read_audio, heard.path, plan.model.sample_rate),
        )


def transcriptions(finals: FinalResponses) -> dict[str, Response]:
    """Clip -> how its transcription ended, of those that were asked for."""
    return {stored.clip: stored.response() for stored in finals}


class TranscriptBackend:
    """A backend that is asked with the words of a clip in its place.

    A clip whose transcription gave no words is not asked about: its requests end as the transcription did.
    """

    def __init__(self, backend: Backend, words: Mapping[str, Response]) -> None:
        """words: clip -> its transcription."""
        self._backend = backend
        self._words = words

    def describe(self) -> Mapping[str, str]:
        return self._backend.describe()

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        wordless: list[Response] = []

        def asked() -> Iterator[Request]:
            for request in requests:
                heard = self._words[request.clip]
                if heard.outcome in (Outcome.OK, Outcome.TRUNCATED):
                    yield replace(request, prompt=in_words(heard.text, request.prompt), audio=None)
                else:
                    why = f"transcription: {heard.error or heard.outcome}"
                    error = why if heard.outcome is Outcome.ERROR else None
                    wordless.append(Response(request.id, heard.outcome, finish_reason=why, error=error))

        for response in self._backend.generate(asked()):
            yield response
            while wordless:
                yield wordless.pop()
        yield from wordless

    def close(self) -> None:
        self._backend.close()
