"""Answers by likelihood from real engines, on a tiny checkpoint, against transformers' own forward pass."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("vllm")

import torch
from transformers import AutoProcessor, Qwen2AudioForConditionalGeneration

from tests.choice_corpora import quiz
from tests.engines.tiny_engines import CHATML, RATE, card, lines, tone
from tests.tiny_checkpoint import build
from vibe_harness.backends.local.hf import HFEngine
from vibe_harness.backends.local.vllm import VLLMEngine
from vibe_harness.errors import UserError
from vibe_harness.records import Generation, Option, Outcome, Request, Response

LABELS = "ABCD"
OPTIONS = tuple(Option(label, label.lower(), f"thing {label}") for label in LABELS)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("tiny"))


def asked(number: int = 16) -> list[Request]:
    """Questions over different sounds; a generated one among them, as in the hearing check of a run."""
    found = []
    for i in range(number):
        wave = tone(100 * 1.15**i, 0.4 + 0.1 * i)
        found.append(
            Request(
                f"r{i}", "t", "v", f"c{i}", f"Which of {i}?", Generation(1), lambda w=wave: w, options=OPTIONS,
                answer_by="likelihood",
            )
        )  # fmt: skip
    wave = tone(300, 1)
    return [*found, Request("free", "t", "v", "c", "hobbies?", Generation(8), lambda: wave)]


@pytest.fixture(scope="module")
def expected(checkpoint: Path) -> dict[str, dict[str, float]]:
    """Request -> label -> log-probability: the logits at the last position of one forward pass, all in float32.

    The vocabulary of the checkpoint holds letters and no letter with a space ahead.
    """
    processor = AutoProcessor.from_pretrained(checkpoint)
    model = Qwen2AudioForConditionalGeneration.from_pretrained(checkpoint, dtype=torch.float32).eval()
    found = {}
    for request in asked()[:-1]:
        assert request.audio is not None
        text = f"{CHATML.before}{CHATML.after}{request.prompt}{CHATML.end}"
        inputs = processor(text=text, audio=[request.audio().samples], sampling_rate=RATE, return_tensors="pt")
        with torch.no_grad():
            logits = model(**inputs).logits[0, -1]
        whole = torch.log_softmax(logits, 0)
        found[request.id] = {a: float(whole[processor.tokenizer.convert_tokens_to_ids(a)]) for a in LABELS}
    return found


def renormalised(likelihoods: Any) -> dict[str, float]:
    total = math.log(sum(map(math.exp, likelihoods.values())))
    return {label: value - total for label, value in likelihoods.items()}


@pytest.mark.parametrize("backend", ["hf", "vllm"])
def test_the_letter_and_its_log_probability_are_those_of_a_forward_pass(
    backend: str, checkpoint: Path, expected: dict[str, dict[str, float]]
) -> None:
    engine = (HFEngine if backend == "hf" else VLLMEngine)(card(backend, checkpoint), ())
    try:
        found: dict[str, Response] = {response.request: response for response in engine.generate(asked())}
    finally:
        engine.close()
    assert found["free"].likelihoods is None and found["free"].finish_reason in ("stop", "length")
    letters = set()
    for name, by_label in expected.items():
        response = found[name]
        assert response.outcome is Outcome.OK and response.finish_reason == "likelihood"
        assert response.text == max(by_label, key=by_label.__getitem__)
        assert response.likelihoods is not None
        assert list(response.likelihoods) == list(LABELS)
        assert dict(response.likelihoods) == pytest.approx(by_label, abs=1e-3)
        assert renormalised(response.likelihoods) == pytest.approx(renormalised(by_label), abs=1e-3)
        letters.add(response.text)
    assert len(letters) > 1  # it hangs on what is heard


@pytest.mark.parametrize("backend", ["hf", "vllm"])
def test_labels_that_are_no_single_tokens_are_refused(backend: str, checkpoint: Path) -> None:
    engine = (HFEngine if backend == "hf" else VLLMEngine)(card(backend, checkpoint), ())
    wave = tone(200, 1)
    options = tuple(Option(label, label, label) for label in ("(A)", "(B)"))
    request = Request("r", "t", "v", "c", "?", Generation(1), lambda: wave, options=options, answer_by="likelihood")
    with pytest.raises(UserError, match=r"the labels \(A\), \(B\) are not single tokens of the model 'tiny'"):
        list(engine.generate([request]))


@pytest.mark.parametrize("backend", ["hf", "vllm"])
def test_a_whole_run(backend: str, checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(card(backend, checkpoint).model_dump_json(), encoding="utf-8")
    manifest = quiz(tmp_path / "quiz", questions=2)
    done = subprocess.run(
        [
            sys.executable, "-m", "vibe_harness", "--model", "tiny.yaml", "--tasks", "biasinear", "--corpus",
            str(manifest), "--answer-by", "likelihood", "--permutations", "20", "--check-batch-invariance", "2",
            "--output-path", "run", "--json", "--no-hearing-check",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    answered = lines(tmp_path / "run/responses.jsonl")
    assert len(answered) == 8 and {one["outcome"] for one in answered} == {"ok"}
    for one in answered:
        assert one["text"] == max(one["likelihoods"], key=one["likelihoods"].get)
    results = json.loads(done.stdout)
    assert results["answer_by"] == "likelihood"
    assert results["batch_check"] == {"requests": 2, "different": 0}
