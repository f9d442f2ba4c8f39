"""The `vllm` back end: vLLM's offline engine in its own process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, field_validator

from vibe_harness.backends.finish_reasons import outcome_of
from vibe_harness.backends.local.checkpoint import adapter_folder, checkpoint
from vibe_harness.backends.local.likelihood import Labels, answer
from vibe_harness.backends.local.prompt_layout import joined
from vibe_harness.backends.local.subprocess_engine import ChildEngine
from vibe_harness.backends.local.token_sampling import sampling_temperature
from vibe_harness.backends.protocol import Options
from vibe_harness.backends.request_audio import clip_of, wav_data_uri
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Outcome, Request, Response

OURS = frozenset({"model", "revision", "dtype", "limit_mm_per_prompt", "structured_outputs_config", "seed",
                  "logprobs_mode", "enable_lora"})  # fmt: skip


class VLLMArguments(Options):
    """Options that can change an answer."""

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    chat_template_kwargs: dict[str, Any] = Field({}, description="for the chat template: {enable_thinking: false}")
    temperature: float | None = Field(None, ge=0, le=2, description="of free-text answers, instead of the task's")
    adapter: str | None = Field(
        None, min_length=1, description="LoRA adapter of every request: a folder within the model's own"
    )
    engine: dict[str, Any] = Field({}, description="further arguments of vLLM's LLM: {tokenizer_mode: mistral}")

    @field_validator("engine")
    @classmethod
    def _not_ours(cls, value: dict[str, Any]) -> dict[str, Any]:
        if OURS & value.keys():
            raise ValueError(f"'{min(OURS & value.keys())}' is set by the harness, or by an argument of its own")
        return value


class VLLMConnection(Options):
    """Options that can change an answer only through the order of floating-point sums; recorded with the run."""

    max_num_seqs: int = Field(64, ge=1, description="requests in one batch")
    max_model_len: int | None = Field(None, ge=1, description="most tokens of prompt and answer together")
    gpu_memory_utilization: float | None = Field(None, gt=0, le=1)
    kv_cache_memory_bytes: int | None = Field(None, ge=1)
    enforce_eager: bool = False
    enable_prefix_caching: bool = True
    mm_processor_cache_gb: float | None = Field(None, ge=0)
    tensor_parallel_size: int = Field(1, ge=1)


class VLLMEngine(ChildEngine):
    """vLLM in its own process."""

    Arguments = VLLMArguments
    Connection = VLLMConnection
    inside = "vibe_harness.backends.local.vllm:VLLMInside"
    packages = ("vllm",)
    extra = "vllm"
    ahead = 256
    likelihoods = True


class VLLMInside:
    """vLLM in this process. Requests join the running batch as it has room, one step at a time, as in LLM.generate."""

    def __init__(self, card: ModelCard, tasks: Sequence[Task]) -> None:
        # No further process, since this one is already the engine's own.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # on CPUs it logs a warning at every step
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        import torch
        import vllm.lora.request
        from vllm.platforms import current_platform

        if not current_platform.device_type:
            raise UserError(f"the model '{card.model}' needs a GPU, and vLLM sees none; hf:{card.id} runs without one")
        self.card = card
        self.arguments = VLLMArguments.model_validate(card.args)
        self.connection = VLLMConnection.model_validate(card.connection)
        weights = checkpoint(card)
        adapter = self.arguments.adapter and str(adapter_folder(card, weights, self.arguments.adapter))
        try:
            self._llm = vllm.LLM(
                model=weights["id"],
                revision=weights["revision"],
                dtype=self.arguments.dtype,
                seed=0,
                limit_mm_per_prompt={"audio": 1} if card.audio else {},
                # Without disable_any_whitespace, small models fill their answer with spaces.
                structured_outputs_config={"backend": "xgrammar", "disable_any_whitespace": True},
                logprobs_mode="raw_logprobs",  # over all tokens, at temperature 1
                enable_lora=bool(adapter),
                **self.connection.model_dump(exclude_none=True),
                **self.arguments.engine,
            )
        except (OSError, ValueError, TypeError) as error:  # an unknown model or argument
            said = " ".join(str(error).split())[:400]
            raise UserError(f"vLLM does not start the model '{card.model}' ({card.id}): {said}") from None
        except torch.OutOfMemoryError:
            raise EngineError(f"the model '{card.model}' does not fit into the GPU's memory") from None
        self._lora = vllm.lora.request.LoRARequest("adapter", 1, adapter) if adapter else None
        self._labels = Labels(card, self._llm.get_tokenizer())
        self._room = 2 * self.connection.max_num_seqs

    def describe(self) -> Mapping[str, str]:
        """Version and batch settings."""
        import vllm

        settings = self.connection.model_dump(exclude_none=True)
        return {
            "backend": "vllm",
            "engine": f"vllm {vllm.__version__}",
            "structured_output": "json_schema",
            "batch_invariant": os.environ.get("VLLM_BATCH_INVARIANT", "0"),
            **{name: str(value) for name, value in settings.items()},
        }

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield answers as they finish. Raises EngineError if a clip is missing from the prompt."""
        from vllm.exceptions import VLLMClientError

        source = iter(requests)
        running: dict[str, tuple[Request, float, int]] = {}  # vLLM's id -> request, start, prompt tokens without clip
        more = True
        while more or running:
            while more and len(running) < self._room:
                request = next(source, None)
                if request is None:
                    more = False
                    break
                try:
                    key, text_tokens = self._add(request)
                except (
                    VLLMClientError,
                    ValueError,
                ) as error:  # a fault of this request, such as a long prompt or a short clip
                    yield Response(request.id, Outcome.ERROR, error=" ".join(str(error).split())[:300])
                    continue
                running[key] = (request, time.monotonic(), text_tokens)
            for output in self._llm.llm_engine.step():
                request, started, text_tokens = running.pop(output.request_id)
                yield self._response(request, output, time.monotonic() - started, text_tokens)

    def close(self) -> None:
        """Do nothing, since the memory is freed with the process."""

    def _add(self, request: Request) -> tuple[str, int]:
        """Queue a request; returns its id and the number of prompt tokens without the clip (0: unknown)."""
        wave = clip_of(request, self.card)
        options: dict[str, Any] = {"use_tqdm": False, "lora_request": self._lora}
        sampling = self._sampling(request)
        prompt = joined(self.card, request)
        if prompt is None:
            content: list[dict[str, Any]] = [{"type": "text", "text": request.prompt}]
            if wave is not None:
                content.insert(0, {"type": "audio_url", "audio_url": {"url": wav_data_uri(wave)}})
            system = self.card.layout.system
            messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
            messages.append({"role": "user", "content": content if wave is not None else request.prompt})
            [key] = self._llm.enqueue_chat(
                messages, sampling, chat_template_kwargs=self.arguments.chat_template_kwargs or None, **options
            )
            return _outer(key), 0
        data = {} if wave is None else {"multi_modal_data": {"audio": (wave.samples, wave.rate)}}
        try:
            [key] = self._llm.enqueue([{"prompt": prompt, **data}], sampling, **options)
        except AssertionError as error:  # raised by vLLM if the prompt has no placeholder for the clip
            raise UserError(
                f"model '{self.card.model}': vLLM finds no place for the clip in the prompt that the card lays out "
                f"({error}): try vibe-harness models check {self.card.model}"
            ) from None
        return _outer(key), 0 if wave is None else len(self._llm.get_tokenizer().encode(prompt))

    def _sampling(self, request: Request) -> Any:
        import vllm
        from vllm.sampling_params import StructuredOutputsParams

        schema, wanted = request.schema, None
        if request.answer_by == "likelihood":
            wanted = [token for forms in self._labels.tokens(request).values() for token in forms]
        return vllm.SamplingParams(
            temperature=sampling_temperature(request, self.arguments.temperature),
            max_tokens=request.generation.max_tokens,
            seed=request.sampling_seed,
            structured_outputs=None if schema is None else StructuredOutputsParams(json=dict(schema)),
            logprob_token_ids=wanted,
        )

    def _response(self, request: Request, output: Any, seconds: float, text_tokens: int) -> Response:
        [written] = output.outputs
        prompt_tokens = len(output.prompt_token_ids)
        if text_tokens and prompt_tokens <= text_tokens:
            raise EngineError(
                f"{request.clip}: the clip did not get into the prompt of '{self.card.model}': its layout has no "
                "placeholder that vLLM knows"
            )
        measured: dict[str, Any] = {
            "input_tokens": prompt_tokens,
            "output_tokens": len(written.token_ids),
            "seconds": seconds,
            "served_model": f"{self.card.id}@{self.card.revision}" if self.card.revision else self.card.id,
        }
        if request.answer_by == "likelihood":
            logged = {token: one.logprob for token, one in written.logprobs[0].items()}
            return answer(request, self._labels.tokens(request), logged, **measured)
        return Response(
            request.id,
            outcome_of(written.text, written.finish_reason),
            text=written.text,
            finish_reason=written.finish_reason,
            **measured,
        )


def _outer(key: str) -> str:
    """The id that vLLM uses in answers; the one that it returns on queueing has a random suffix."""
    return key.split("-")[0]
