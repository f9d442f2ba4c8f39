"""The `hf` back end: transformers in its own process, one request at a time.

It is slow and exact: without batches there is no padding, and answers never depend on other requests.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from vibe_harness.backends.finish_reasons import outcome_of
from vibe_harness.backends.local.checkpoint import checkpoint
from vibe_harness.backends.local.likelihood import Labels, answer
from vibe_harness.backends.local.processor import Processor
from vibe_harness.backends.local.subprocess_engine import ChildEngine
from vibe_harness.backends.local.token_sampling import sampling_temperature
from vibe_harness.backends.protocol import Options
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Request, Response

GREEDY: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}


class HFArguments(Options):
    """Options that can change an answer."""

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    attention: Literal["sdpa", "eager", "flash_attention_2"] | None = None
    trust_remote_code: bool = Field(False, description="run Python code from the model's repository")
    chat_template_kwargs: dict[str, Any] = Field({}, description="for the chat template: {enable_thinking: false}")
    temperature: float | None = Field(None, ge=0, le=2, description="of free-text answers, instead of the task's")


class HFConnection(Options):
    """Options that can change an answer only through the order of floating-point sums."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"


class HFEngine(ChildEngine):
    """transformers in its own process."""

    Arguments = HFArguments
    Connection = HFConnection
    inside = "vibe_harness.backends.local.hf:HFInside"
    packages = ("torch", "transformers", "xgrammar")
    extra = "hf"
    ahead = 8
    likelihoods = True


class HFInside:
    """transformers in this process."""

    def __init__(self, card: ModelCard, tasks: Sequence[Task]) -> None:
        import torch
        import transformers

        self.card = card
        self.arguments = HFArguments.model_validate(card.args)
        self._device = _device(HFConnection.model_validate(card.connection).device)
        weights = checkpoint(card)
        self._processor = Processor(card, self.arguments.trust_remote_code, self.arguments.chat_template_kwargs)
        model_class = transformers.AutoModelForMultimodalLM if card.audio else transformers.AutoModelForCausalLM
        try:
            self._model: Any = model_class.from_pretrained(
                weights["id"],
                revision=weights["revision"],
                dtype=self.arguments.dtype,
                attn_implementation=self.arguments.attention,
                trust_remote_code=self.arguments.trust_remote_code,
            )
        except (OSError, ValueError, ImportError) as error:
            said = " ".join(str(error).split())[:400]
            raise UserError(f"transformers does not load the model '{card.model}' ({card.id}): {said}") from None
        try:
            self._model.to(self._device).eval()
        except torch.cuda.OutOfMemoryError:
            raise EngineError(f"the model '{card.model}' does not fit into the GPU's memory") from None
        self._labels = Labels(card, self._processor.tokenizer)
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
        """Yield answers in the order of the requests. Raises EngineError if a clip is missing from the inputs."""
        for request in requests:
            started = time.monotonic()
            inputs = self._inputs(request)
            if request.answer_by == "likelihood":
                yield self._likeliest(request, inputs, started)
                continue
            tokens = self._tokens(request, inputs)
            ended = bool(tokens) and tokens[-1] in self._ends()
            text = self._processor.tokenizer.decode(tokens, skip_special_tokens=True)
            reason = "stop" if ended else "length"
            yield Response(
                request.id,
                outcome_of(text, reason),
                text=text,
                finish_reason=reason,
                input_tokens=inputs["input_ids"].shape[1],
                output_tokens=len(tokens),
                seconds=time.monotonic() - started,
                served_model=self._served,
            )

    def close(self) -> None:
        """Do nothing, since the memory is freed with the process."""

    @property
    def _served(self) -> str:
        return f"{self.card.id}@{self.card.revision}" if self.card.revision else self.card.id

    def _inputs(self, request: Request) -> Any:
        inputs = self._processor.inputs(request)
        if request.audio is None:
            return inputs.to(self._device)
        return inputs.to(self._device, dtype=self._model.dtype)  # changes the type of floating-point tensors only

    def _tokens(self, request: Request, inputs: Any) -> list[int]:
        """The new tokens, including the final one."""
        import torch

        generation = request.generation
        options = GREEDY
        temperature = sampling_temperature(request, self.arguments.temperature)
        if temperature > 0:
            torch.manual_seed(request.sampling_seed)
            options = {"do_sample": True, "temperature": temperature, "top_p": 1.0, "top_k": 0}
        if request.schema is not None:
            options = {**options, "logits_processor": [self._constraint(request.schema)]}
        output = self._generated(inputs, max_new_tokens=generation.max_tokens, **options)
        tokens: list[int] = output[0, inputs["input_ids"].shape[1] :].tolist()
        return tokens

    def _likeliest(self, request: Request, inputs: Any, started: float) -> Response:
        """The answer by likelihood: one forward pass, with the logits after the last token of the prompt."""
        tokens = self._labels.tokens(request)
        # Raw logits, without logits processors.
        output = self._generated(inputs, max_new_tokens=1, output_logits=True, return_dict_in_generate=True, **GREEDY)
        logged = output.logits[0][0].float().log_softmax(-1)
        return answer(
            request,
            tokens,
            {token: float(logged[token]) for forms in tokens.values() for token in forms},
            input_tokens=inputs["input_ids"].shape[1],
            output_tokens=1,
            seconds=time.monotonic() - started,
            served_model=self._served,
        )

    def _generated(self, inputs: Any, **options: Any) -> Any:
        import torch

        try:
            with torch.inference_mode():
                return self._model.generate(**inputs, repetition_penalty=1.0, **options)
        except torch.cuda.OutOfMemoryError:
            raise EngineError(f"'{self.card.model}': the GPU's memory does not hold this request") from None

    def _ends(self) -> set[int]:
        ends = self._model.generation_config.eos_token_id
        return set(ends) if isinstance(ends, list) else {ends}

    def _constraint(self, schema: Mapping[str, Any]) -> Any:
        """A new logits processor that allows only text that follows the schema."""
        import xgrammar
        from xgrammar.contrib.hf import LogitsProcessor

        if self._grammar_compiler is None:
            size = self._model.config.get_text_config().vocab_size
            info = xgrammar.TokenizerInfo.from_huggingface(
                self._processor.tokenizer, vocab_size=size, stop_token_ids=sorted(self._ends())
            )
            self._grammar_compiler = xgrammar.GrammarCompiler(info)
        key = json.dumps(schema)  # the order of the keys is the order in the answer
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
        raise UserError("there is no GPU: use --model-args device=cpu")
    return asked
