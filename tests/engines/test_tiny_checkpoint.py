"""Real engines on a tiny checkpoint: transformers, vLLM, and vLLM's own server give the same greedy tokens.

They need torch, transformers and vLLM, which the core does not: `.ci/engines` makes an environment for them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import soundfile

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("vllm")

from transformers import AutoTokenizer

from tests.engines.serving import serving
from tests.engines.tiny_engines import CHATML, ON_CPU, RATE, SCHEMA, card, limited, lines, requests, tone
from tests.tiny_checkpoint import build, build_text
from vibe_harness.backends.local.hf import HFEngine, HFInside
from vibe_harness.backends.local.vllm import VLLMEngine, VLLMInside
from vibe_harness.backends.preview import NOT_CHECKED, preview
from vibe_harness.backends.remote.openai_server import OpenAIEngine
from vibe_harness.cards.schema import Layout, ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Outcome, Response


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def server(checkpoint: Path) -> Iterator[str]:
    """vLLM's own server."""
    with serving(checkpoint) as served:
        served.wait()
        yield served.url


def answers(engine: Any) -> dict[str, Response]:
    try:
        return {response.request: response for response in engine.generate(requests())}
    finally:
        engine.close()


@pytest.fixture(scope="session")
def by_transformers(checkpoint: Path) -> dict[str, Response]:
    return answers(HFEngine(card("hf", checkpoint), ()))


def same(one: dict[str, Response], other: dict[str, Response]) -> None:
    assert set(one) == set(other)
    for name, mine in one.items():
        # A character whose bytes are cut off by the token limit is shown by one decoder and held back by the other.
        assert mine.text.rstrip("�") == other[name].text.rstrip("�"), name
        for field in ("outcome", "finish_reason", "input_tokens", "output_tokens"):
            assert getattr(mine, field) == getattr(other[name], field), (name, field)


def test_answers_depend_on_the_clip_and_follow_the_schema(by_transformers: dict[str, Response]) -> None:
    free = [r for name, r in by_transformers.items() if name.startswith("free")]
    assert len({r.text for r in free}) >= 10
    for name, response in by_transformers.items():
        if name.startswith("json") and response.outcome is Outcome.OK:
            jsonschema.validate(json.loads(response.text), SCHEMA)
    assert sum(r.outcome is Outcome.OK for n, r in by_transformers.items() if n.startswith("json")) >= 10
    assert {r.outcome for r in free} <= {Outcome.TRUNCATED, Outcome.OK}


def test_vllm_gives_the_same_tokens(checkpoint: Path, by_transformers: dict[str, Response]) -> None:
    same(by_transformers, answers(VLLMEngine(card("vllm", checkpoint), ())))


@pytest.mark.parametrize("backend", ["hf", "vllm"])
def test_the_models_own_chat_template_gives_the_same_tokens(
    backend: str, checkpoint: Path, by_transformers: dict[str, Response]
) -> None:
    engine = HFEngine if backend == "hf" else VLLMEngine
    same(by_transformers, answers(engine(card(backend, checkpoint, Layout()), ())))


def test_vllms_server_gives_the_same_tokens(server: str, by_transformers: dict[str, Response]) -> None:
    served = ModelCard(model="tiny", backend="openai", id="tiny", connection={"base_url": server, "concurrency": 8})
    engine = OpenAIEngine(served, ())
    assert engine.describe()["engine"].startswith("vllm 0.")
    same(by_transformers, answers(engine))


def test_a_clip_that_would_not_be_heard_stops_the_run(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = HFInside(card("hf", checkpoint), ())
    processor = inside._processor._processor

    class OldKeyword:
        """What a processor does with the old keyword `audios`: it warns, and hears nothing."""

        audio_token = processor.audio_token
        feature_extractor = processor.feature_extractor

        def __call__(self, text: str, audio: Any, sampling_rate: int, **options: Any) -> Any:
            return processor.tokenizer(text, **options)

    monkeypatch.setattr(inside._processor, "_processor", OldKeyword())
    with pytest.raises(EngineError, match="the clip is not among the inputs"):
        list(inside.generate(requests()[:1]))


@pytest.mark.parametrize("placeholders", ["", "<|AUDIO|><|AUDIO|>"])
def test_transformers_refuses_a_layout_without_one_placeholder(placeholders: str, checkpoint: Path) -> None:
    layout = Layout(before=f"<|im_start|>user\n{placeholders}", end="<|im_end|>\n<|im_start|>assistant\n")
    inside = HFInside(card("hf", checkpoint, layout), ())
    with pytest.raises(UserError, match="its layout needs exactly one"):
        list(inside.generate(requests()[:1]))


def test_vllm_refuses_a_layout_without_a_placeholder(checkpoint: Path) -> None:
    layout = Layout(before="<|im_start|>user\n", end="<|im_end|>\n<|im_start|>assistant\n")
    engine = VLLMEngine(card("vllm", checkpoint, layout), ())
    with pytest.raises(UserError, match="'tiny': vLLM finds no place for the clip in the prompt"):
        answers(engine)


def test_a_request_that_vllm_cannot_take_fails_alone(checkpoint: Path) -> None:
    long = [
        replace(one, prompt="hobbies? " * 5000) if number == 1 else one for number, one in enumerate(requests()[:4])
    ]
    engine = VLLMEngine(card("vllm", checkpoint), ())
    try:
        got = {response.request: response for response in engine.generate(long)}
    finally:
        engine.close()
    assert [got[one.id].outcome is Outcome.ERROR for one in long] == [False, True, False, False]
    assert "4096" in str(got[long[1].id].error)


def test_no_gpu(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="there is no GPU: use --model-args device=cpu"):
        HFEngine(card("hf", checkpoint, connection={"device": "cuda"}), ())
    monkeypatch.setattr("vllm.platforms.current_platform.device_type", "")
    with pytest.raises(UserError, match="'tiny' needs a GPU, and vLLM sees none"):
        VLLMInside(card("vllm", checkpoint), ())


def test_too_little_memory_for_the_model(checkpoint: Path) -> None:
    small = {**ON_CPU, "kv_cache_memory_bytes": 1 << 16}
    with pytest.raises(UserError, match=r"vLLM does not start the model 'tiny' .*No available memory") as caught:
        VLLMEngine(card("vllm", checkpoint, connection=small), ())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", [HFEngine, VLLMEngine])
def test_models_that_cannot_be_opened(engine: Any, checkpoint: Path, tmp_path: Path) -> None:
    backend = "hf" if engine is HFEngine else "vllm"
    with pytest.raises(UserError, match=r"'tiny': there is no folder .*nowhere"):
        engine(card(backend, tmp_path / "nowhere"), ())


def test_a_wrong_rate_on_the_card_is_refused(checkpoint: Path) -> None:
    with pytest.raises(UserError, match="sample_rate is 8000 on its card, but the model takes 16000 Hz"):
        HFEngine(card("hf", checkpoint, sample_rate=8000), ())


@pytest.mark.parametrize("layout", [CHATML, Layout()])
def test_a_look_at_what_the_processor_makes_of_a_clip(layout: Layout, checkpoint: Path) -> None:
    said = dict(preview(card("vllm", checkpoint, layout), "hobbies?"))
    assert said["final prompt"] == f"{CHATML.before}{CHATML.after}hobbies?{CHATML.end}"
    # 2 s are 200 frames, halved by a convolution and once more by the pooling: 50 tokens.
    before = len(
        AutoTokenizer.from_pretrained(checkpoint).tokenize(CHATML.before.removesuffix("<|AUDIO|><|audio_eos|>"))
    )
    assert said["clip"].startswith(f"2 s at 16000 Hz fill 50 tokens '<|AUDIO|>', after {before} tokens of the prompt")
    assert said["features"] == "input_features: float32 of shape [1, 128, 3000]"
    assert "takes 30 s" in said["window"] and NOT_CHECKED not in said


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"layout": Layout(before="<|im_start|>user\n", end="<|im_end|>")}, "holds 0 placeholders '<|AUDIO|>'"),
        ({"sample_rate": 8000}, "sample_rate is 8000 on its card, but the model takes 16000 Hz"),
    ],
)
def test_a_look_at_a_card_that_is_wrong(changed: dict[str, Any], message: str, checkpoint: Path) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        list(preview(card("vllm", checkpoint).model_copy(update=changed), "hobbies?"))


def test_a_look_without_the_processor_says_so(tmp_path: Path) -> None:
    said = dict(preview(card("vllm", tmp_path / "nowhere"), "hobbies?"))
    assert "there is no folder" in said[NOT_CHECKED]


@pytest.mark.parametrize("backend", ["hf", "vllm", "openai"])
def test_a_whole_run(backend: str, checkpoint: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The main job, tiny models in both roles, extraction constrained to the tasks' schemas."""
    hears = card(backend, checkpoint)
    if backend == "openai":
        url = request.getfixturevalue("server")
        hears = ModelCard(model="tiny", backend="openai", id="tiny", connection={"base_url": url})
        reads_id = "tiny"
    else:
        reads_id = str(build_text(tmp_path / "text"))
    reads = hears.model_copy(update={"model": "reads", "id": reads_id, "audio": False, "layout": Layout()})
    for one in (hears, reads):
        (tmp_path / f"{one.model}.yaml").write_text(one.model_dump_json(), encoding="utf-8")
    for name in ("story", "advisory"):
        limited(name, tmp_path)
    rows = ["file,speaker,gender"]
    for speaker in range(4):
        soundfile.write(tmp_path / f"{speaker}.wav", tone(110 + 50 * speaker, 0.5).samples, RATE)
        rows.append(f"{speaker}.wav,s{speaker},{'female' if speaker % 2 else 'male'}")
    (tmp_path / "manifest.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable, "-m", "vibe_harness", "--model", "tiny.yaml", "--extractor", "reads.yaml", "--tasks",
            "story.yaml,advisory.yaml", "--corpus", "manifest.csv", "--dimension", "gender", "--tau", "1",
            "--permutations", "50", "--check-batch-invariance", "2", "--output-path", "run", "--json",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    answered = lines(tmp_path / "run/responses.jsonl")
    assert len(answered) == 8 and {r["outcome"] for r in answered} <= {"ok", "truncated", "empty"}
    readable = sum(r["outcome"] in ("ok", "truncated") for r in answered)
    assert readable >= 4
    read = lines(tmp_path / "run/extractions.jsonl")
    assert len(read) == readable
    # Random weights may fill an open string up to the token limit, which is then unparsed; no call fails.
    assert not any("error" in r["readings"].values() for r in read)
    results = json.loads(done.stdout)
    assert results["hearing_check"] == "passed" and results["batch_check"] == {"requests": 2, "different": 0}
