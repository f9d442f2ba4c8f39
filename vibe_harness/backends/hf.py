"""The `hf` backend: transformers, in a process of its own, one request at a time.

Slow and exact: no batch, so no padding, and the answer to one clip never depends on another.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from vibe_harness.backends.audio import clip_of
from vibe_harness.backends.child import ChildEngine
from vibe_harness.backends.ending import outcome_of
from vibe_harness.backends.layout import joined
from vibe_harness.backends.protocol import Options
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Request, Response, Waveform


class HFArguments(Options):
    """What can change an answer."""

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    attention: Literal["sdpa", "eager", "flash_attention_2"] | None = None
    trust_remote_code: bool = Field(False, description="run code that the model's repository brings along")
    chat_template_kwargs: dict[str, Any] = Field({}, description="for the chat template, as enable_thinking: false")


class HFConnection(Options):
    """What cannot change an answer but by the order of floating-point sums."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"


class HFEngine(ChildEngine):
    """transformers in a process of its own."""

    Arguments = HFArguments
    Connection = HFConnection
    inside = "vibe_harness.backends.hf:HFInside"
    packages = ("torch", "transformers", "xgrammar")
    extra = "hf"
    ahead = 8


class HFInside:
    """transformers in this process."""

    def __init__(self, card: ModelCard, tasks: Sequence[Task]) -> None:
        import torch
        import transformers

        self.card = card
        self.arguments = HFArguments.model_validate(card.args)
        self._device = _device(HFConnection.model_validate(card.connection).device)
        shared: dict[str, Any] = {"revision": card.revision, "trust_remote_code": self.arguments.trust_remote_code}
        processor_class = transformers.AutoProcessor if card.audio else transformers.AutoTokenizer
        model_class = transformers.AutoModelForMultimodalLM if card.audio else transformers.AutoModelForCausalLM
        try:
            self._processor: Any = processor_class.from_pretrained(card.id, **shared)
            self._model: Any = model_class.from_pretrained(
                card.id, dtype=self.arguments.dtype, attn_implementation=self.arguments.attention, **shared
            )
        except (OSError, ValueError, ImportError) as error:
            said = " ".join(str(error).split())[:400]
            raise UserError(f"transformers does not load the model '{card.model}' ({card.id}): {said}") from None
        self._tokenizer: Any = getattr(self._processor, "tokenizer", self._processor)
        if card.audio:
            self._check_rate()
        try:
            self._model.to(self._device).eval()
        except torch.cuda.OutOfMemoryError:
            raise EngineError(f"the model '{card.model}' does not fit into the GPU's memory") from None
        self._grammars: dict[str, Any] = {}
        self._grammar_compiler: Any = None

    def describe(self) -> Mapping[str, str]:
        """Versions, device and number format."""
        import torch
        import transformers

        return {
            "backend": "hf",
            "engine": f"transformers {transformers.__version__}, torch {torch.__version__}",
            "device": self._device,
            "dtype": str(self._model.dtype),
            "batch_size": "1",
            "structured_output": "json_schema",
        }

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Answers in the order of the requests. Raises EngineError where a clip did not get into the inputs."""
        for request in requests:
            started = time.monotonic()
            inputs = self._inputs(request)
            tokens = self._tokens(request, inputs)
            ended = bool(tokens) and tokens[-1] in self._ends()
            text = self._tokenizer.decode(tokens, skip_special_tokens=True)
            reason = "stop" if ended else "length"
            yield Response(
                request.id,
                outcome_of(text, reason),
                text=text,
                finish_reason=reason,
                input_tokens=inputs["input_ids"].shape[1],
                output_tokens=len(tokens),
                seconds=time.monotonic() - started,
                served_model=f"{self.card.id}@{self.card.revision}" if self.card.revision else self.card.id,
            )

    def close(self) -> None:
        """Nothing: the memory goes with the process."""

    def _inputs(self, request: Request) -> Any:
        wave = clip_of(request, self.card)
        text = joined(self.card, request) or self._templated(request, wave is not None)
        begin = self._tokenizer.bos_token
        options = {"return_tensors": "pt", "add_special_tokens": not (begin and text.startswith(begin))}
        if wave is None:
            return self._tokenizer(text, **options).to(self._device)
        token = getattr(self._processor, "audio_token", None)
        if token and text.count(token) != 1:
            raise UserError(
                f"model '{self.card.model}': the prompt holds {text.count(token)} placeholders {token!r} for one clip: "
                "its layout needs exactly one"
            )
        self._check_length(wave)
        inputs = self._processor(text=text, audio=[wave.samples], sampling_rate=wave.rate, **options)
        self._check_heard(request, text, inputs)
        return inputs.to(self._device, dtype=self._model.dtype)  # only floating-point tensors change their type

    def _templated(self, request: Request, clip: bool) -> str:
        """The prompt as the model's own chat template makes it, the clip's placeholder where the template puts it."""
        content: Any = request.prompt
        if self.card.audio:
            content = [{"type": "audio"}] if clip else []
            content.append({"type": "text", "text": request.prompt})
        system = self.card.layout.system
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        text: str = self._processor.apply_chat_template(
            [*messages, {"role": "user", "content": content}],
            tokenize=False, add_generation_prompt=True, **self.arguments.chat_template_kwargs,
        )  # fmt: skip
        return text

    def _check_heard(self, request: Request, text: str, inputs: Any) -> None:
        """Features of the clip are among the inputs, and its placeholder grew: a wrong keyword only gets a warning."""
        features = [value for value in inputs.values() if value.is_floating_point() and value.numel() > 0]
        plain = len(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        if not features or not all(value.isfinite().all() for value in features):
            raise EngineError(f"{request.clip}: the clip is not among the inputs that '{self.card.model}' was given")
        if inputs["input_ids"].shape[1] <= plain:
            raise EngineError(f"{request.clip}: the placeholder of the clip was not filled for '{self.card.model}'")

    def _check_rate(self) -> None:
        rate = getattr(getattr(self._processor, "feature_extractor", None), "sampling_rate", None)
        if rate is not None and rate != self.card.sample_rate:
            raise UserError(
                f"model '{self.card.model}': sample_rate is {self.card.sample_rate} on its card, but the model takes "
                f"{rate} Hz"
            )

    def _check_length(self, wave: Waveform) -> None:
        """A Whisper-like feature extractor cuts what is longer than its window, without a word."""
        samples = getattr(getattr(self._processor, "feature_extractor", None), "n_samples", None)
        if samples is not None and self.card.max_seconds is None and len(wave.samples) > samples:
            raise EngineError(
                f"'{self.card.model}' may cut clips at {samples / wave.rate:g} s: say on its card how long a clip it "
                "takes (max_seconds)"
            )

    def _tokens(self, request: Request, inputs: Any) -> list[int]:
        """The new tokens, the final one included."""
        import torch

        generation = request.generation
        options: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        if generation.temperature > 0:
            torch.manual_seed(generation.seed)
            options = {"do_sample": True, "temperature": generation.temperature, "top_p": 1.0, "top_k": 0}
        if request.schema is not None:
            options["logits_processor"] = [self._constraint(request.schema)]
        try:
            with torch.inference_mode():
                output = self._model.generate(
                    **inputs, max_new_tokens=generation.max_tokens, repetition_penalty=1.0, **options
                )
        except torch.cuda.OutOfMemoryError:
            raise EngineError(f"'{self.card.model}': the GPU's memory does not hold this request") from None
        tokens: list[int] = output[0, inputs["input_ids"].shape[1] :].tolist()
        return tokens

    def _ends(self) -> set[int]:
        ends = self._model.generation_config.eos_token_id
        return set(ends) if isinstance(ends, list) else {ends}

    def _constraint(self, schema: Mapping[str, Any]) -> Any:
        """A fresh logits processor that allows only what follows the schema."""
        import xgrammar
        from xgrammar.contrib.hf import LogitsProcessor

        if self._grammar_compiler is None:
            size = self._model.config.get_text_config().vocab_size
            info = xgrammar.TokenizerInfo.from_huggingface(
                self._tokenizer, vocab_size=size, stop_token_ids=sorted(self._ends())
            )
            self._grammar_compiler = xgrammar.GrammarCompiler(info)
        key = json.dumps(schema)  # the order of the keys is the order in which they are written
        if key not in self._grammars:
            self._grammars[key] = self._grammar_compiler.compile_json_schema(
                key, any_whitespace=False, separators=(",", ":")
            )
        return LogitsProcessor(self._grammars[key])


def _device(asked: str) -> str:
    import torch

    if asked == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if asked == "cuda" and not torch.cuda.is_available():
        raise UserError("no GPU is to be seen: --model-args device=cpu runs on the processor")
    return asked
