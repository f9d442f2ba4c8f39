"""A model's own processor from transformers, which turns a request with its clip into the model's inputs."""

from __future__ import annotations

from typing import Any

from vibe_harness.backends.local.checkpoint import checkpoint
from vibe_harness.backends.local.prompt_layout import joined
from vibe_harness.backends.request_audio import clip_of
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Request, Waveform


class Processor:
    """The processor of an audio model, or the tokenizer of a text model."""

    def __init__(self, card: ModelCard, trust_remote_code: bool, chat_template_kwargs: dict[str, Any]) -> None:
        """Load it. Raises UserError if that fails, or if the card's sample rate is not the model's."""
        import transformers

        self.card = card
        self._chat_template_kwargs = chat_template_kwargs
        weights = checkpoint(card)
        kind = transformers.AutoProcessor if card.audio else transformers.AutoTokenizer
        try:
            self._processor: Any = kind.from_pretrained(
                weights["id"], revision=weights["revision"], trust_remote_code=trust_remote_code
            )
        except (OSError, ValueError, ImportError) as error:
            said = " ".join(str(error).split())[:400]
            raise UserError(f"transformers does not load the processor of '{card.model}' ({card.id}): {said}") from None
        self.tokenizer: Any = getattr(self._processor, "tokenizer", self._processor)
        self.placeholder: str | None = getattr(self._processor, "audio_token", None)
        self._features: Any = getattr(self._processor, "feature_extractor", None)
        rate = getattr(self._features, "sampling_rate", None)
        if card.audio and rate is not None and rate != card.sample_rate:
            raise UserError(
                f"model '{card.model}': sample_rate is {card.sample_rate} on its card, but the model takes {rate} Hz"
            )

    @property
    def window_s(self) -> float | None:
        """Seconds at which a Whisper-like feature extractor silently cuts a clip; None if it does not."""
        samples = getattr(self._features, "n_samples", None)
        return None if samples is None else float(samples / self.card.sample_rate)

    def text(self, request: Request) -> str:
        """The final prompt, with the card's layout or, if it has none, the model's own chat template.

        Raises UserError if it does not hold exactly one placeholder for the clip.
        """
        text = joined(self.card, request) or self._templated(request)
        if request.audio is not None and self.placeholder and text.count(self.placeholder) != 1:
            raise UserError(
                f"model '{self.card.model}': the prompt holds {text.count(self.placeholder)} placeholders "
                f"{self.placeholder!r} for one clip: its layout needs exactly one"
            )
        return text

    def inputs(self, request: Request) -> Any:
        """The model's inputs, as tensors. Raises EngineError if the clip is missing from them."""
        text, wave = self.text(request), clip_of(request, self.card)
        begin = self.tokenizer.bos_token
        options = {"return_tensors": "pt", "add_special_tokens": not (begin and text.startswith(begin))}
        if wave is None:
            return self.tokenizer(text, **options)
        self._check_length(wave)
        inputs = self._processor(text=text, audio=[wave.samples], sampling_rate=wave.rate, **options)
        self._check_inputs(request, text, inputs)
        return inputs

    def _templated(self, request: Request) -> str:
        """The prompt from the model's own chat template, with the clip's placeholder where the template puts it."""
        content: Any = request.prompt
        if self.card.audio:
            content = [] if request.audio is None else [{"type": "audio"}]
            content.append({"type": "text", "text": request.prompt})
        system = self.card.layout.system
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        text: str = self._processor.apply_chat_template(
            [*messages, {"role": "user", "content": content}],
            tokenize=False, add_generation_prompt=True, **self._chat_template_kwargs,
        )  # fmt: skip
        return text

    def _check_inputs(self, request: Request, text: str, inputs: Any) -> None:
        """Check that the inputs have the clip's features, and that its placeholder was expanded: transformers only
        warns of wrong keywords."""
        features = [value for value in inputs.values() if value.is_floating_point() and value.numel() > 0]
        plain = len(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        if not features or not all(value.isfinite().all() for value in features):
            raise EngineError(f"{request.clip}: the clip is not among the inputs that '{self.card.model}' was given")
        if inputs["input_ids"].shape[1] <= plain:
            raise EngineError(f"{request.clip}: the placeholder of the clip was not filled for '{self.card.model}'")

    def _check_length(self, wave: Waveform) -> None:
        if (
            self.window_s is not None
            and self.card.max_seconds is None
            and len(wave.samples) / wave.rate > self.window_s
        ):
            raise EngineError(
                f"'{self.card.model}' may cut clips at {self.window_s:g} s: write the longest clip that it takes on "
                "its card (max_seconds)"
            )
