"""What the model is given: the clip, the corpus's words, or its own transcription of the clip."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import Loopback, texts_of
from tests.server_runs import cards, lines
from vibe_harness.corpora.manifest import load_manifest


def with_words(manifest: Path) -> Path:
    """The manifest with a column of words, others for each take."""
    head, *rows = manifest.read_text(encoding="utf-8").splitlines()
    rows = [f"{row},Take {number % 3} of my words" for number, row in enumerate(rows)]
    manifest.write_text("\n".join([f"{head},text", *rows]) + "\n", encoding="utf-8")
    return manifest


def command(folder: Path, url: str, corpus: Path, *more: object) -> tuple[object, ...]:
    model, extractor = cards(folder, url)
    return (
        "--model", model, "--extractor", extractor, "--tasks", "advisory", "--corpus", corpus, "--tau", 1,
        "--permutations", 20, "--output-path", "run", *more,
    )  # fmt: skip


def test_a_transcript_takes_the_place_of_the_clip(quick: Any, tones: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        results = quick.json(*command(tmp_path, server.url, with_words(tones), "--modality", "transcript"))
        seen = server.seen()
    assert results["modality"] == "transcript" and results["hearing_check"] == "no audio"
    assert seen["heard"] == {}
    answers = {r["text"] for r in lines(tmp_path / "run" / "responses.jsonl")}
    assert len(answers) == 3  # one for each text: the voice is gone
    assert json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["asked"]["modality"] == "transcript"


def test_no_clip_is_opened_where_its_words_are_asked_with(quick: Any, tones: Path, tmp_path: Path) -> None:
    corpus = with_words(tones)
    for clip in sorted(tones.parent.rglob("*.wav")):
        clip.unlink()
    with Loopback() as server:
        results = quick.json(*command(tmp_path, server.url, corpus, "--modality", "transcript"))
    assert results["bad_clips"] == results["long_clips"] == {}
    assert len(lines(tmp_path / "run" / "responses.jsonl")) == 24
    quick("run-check", "run", check=0)


def test_what_is_asked_in_words_is_compared_with_what_is_heard(quick: Any, tones: Path, tmp_path: Path) -> None:
    corpus = with_words(tones)
    with Loopback(says=texts_of(load_manifest(corpus))) as server:
        for modality in ("audio", "transcript"):
            quick.json(*command(tmp_path, server.url, corpus, "--modality", modality, "--output-path", modality))
    [compared] = quick.json("compare", "audio", "transcript", "--tau", "1")["comparison"]["compared"]
    assert compared["clips"] == 24


@pytest.mark.slow
def test_a_cascade_asks_with_the_models_own_transcription(quick: Any, tones: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        asked = command(tmp_path, server.url, tones, "--modality", "cascade")
        results = quick.json(*asked)
        seen = server.seen()
        assert quick.json(*asked)["modality"] == "cascade"
        assert server.seen()["asked"] == seen["asked"]  # everything is on disk
    assert results["modality"] == "cascade" and results["hearing_check"] == "passed"
    written = lines(tmp_path / "run" / "transcriptions.jsonl")
    assert len(written) == 24 == len({one["clip"] for one in written})
    assert len({one["text"] for one in written}) == 24  # the stand-in hears each clip
    assert len(seen["heard"]) == 24 + 1  # and the hearing check's silence
    responses = lines(tmp_path / "run" / "responses.jsonl")
    assert len(responses) == 24 and all("I heard nothing" in one["text"] for one in responses)


def test_a_clip_without_a_transcription_ends_as_the_transcription_did(quick: Any, tones: Path, tmp_path: Path) -> None:
    rates = {"filtered": 0.15, "empty": 0.15, "bad_request": 0.15}
    with Loopback(rates=rates, seed=11) as server:
        quick.json(
            *command(tmp_path, server.url, tones, "--modality", "cascade", "--no-hearing-check", "--extractor", "rules")
        )
    heard = {one["clip"]: one["outcome"] for one in lines(tmp_path / "run" / "transcriptions.jsonl")}
    responses = {one["clip"]: one for one in lines(tmp_path / "run" / "responses.jsonl")}
    assert len(responses) == len(heard) == 24
    assert {"blocked", "empty", "error", "ok"} <= set(heard.values())
    for clip, outcome in heard.items():
        if outcome != "ok":
            assert responses[clip]["outcome"] == outcome
            assert "transcription" in responses[clip]["finish_reason"]


@pytest.mark.slow
def test_the_three_modalities_share_no_answer(quick: Any, tones: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        corpus = with_words(tones)
        ids = []
        for modality in ("audio", "transcript", "cascade"):
            asked = command(
                tmp_path, server.url, corpus, "--modality", modality, "--output-path", modality, "--no-hearing-check"
            )
            quick.json(*asked)
            ids.append({one["request"] for one in lines(tmp_path / modality / "responses.jsonl")})
        assert len(set.union(*ids)) == 3 * 24
        refused = quick.refuses(
            *command(tmp_path, server.url, corpus, "--output-path", "cascade", "--no-hearing-check")
        )
    assert "differs in modality" in refused


@pytest.mark.parametrize(
    ("model", "modality", "said"),
    [
        ("simulated", "cascade", "is simulated and only takes audio"),
        ("server", "transcript", "24 clips of 'tones' have no text in its manifest"),
        ("qwen3-8b", "cascade", "takes no audio"),
    ],
)
def test_what_cannot_be_asked_so(quick: Any, tones: Path, model: str, modality: str, said: str) -> None:
    words = ("--model", model, "--tasks", "advisory", "--corpus", tones, "--modality", modality, "--dry-run")
    assert said in quick.refuses(*words)


@pytest.mark.parametrize(
    ("model", "task", "said"),
    [
        ("hf:org/name", "advisory", "only for choice tasks, and 'advisory' is not one"),
        ("server", "spoken_stereoset", "the backend 'openai' of the model 'server' does not give the log-prob"),
    ],
)
def test_what_cannot_be_answered_by_likelihood(quick: Any, tones: Path, model: str, task: str, said: str) -> None:
    words = ("--model", model, "--tasks", task, "--corpus", tones, "--answer-by", "likelihood", "--output-path", "run")
    told = quick.refuses(*words)
    assert said in told and len(told.strip().splitlines()) == 1
    assert not (quick.folder / "run").exists()


def test_a_text_model_may_be_given_the_words(quick: Any, tones: Path) -> None:
    words = ("--model", "qwen3-8b", "--tasks", "advisory", "--modality", "transcript", "--dry-run")
    shown = quick(*words, "--corpus", with_words(tones), check=0).stdout
    assert '"Take 0 of my words"' in shown and "[clip]" not in shown
