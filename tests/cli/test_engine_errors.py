"""What keeps an engine from answering is told in one line, with exit 2 or 3, and keeps what was answered."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import Loopback
from tests.server_runs import cards, lines

RUN = ("--tasks", "advisory", "--tau", 1, "--permutations", 20, "--dimension", "gender")


def one_line(done: Any, code: int) -> str:
    assert done.returncode == code, done.stderr
    [line] = [line for line in done.stderr.splitlines() if line.startswith("vibe-harness: ")]
    assert done.stderr.rstrip().endswith(line) and "Traceback" not in done.stderr
    return str(line)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("qwen2-adio", "unknown model 'qwen2-adio'. Did you mean 'qwen2-audio'"),
        ("qwen3-8b", "model 'qwen3-8b' takes no audio"),
    ],
)
def test_models_that_cannot_be_asked(quick: Any, tones: Path, model: str, said: str) -> None:
    assert said in one_line(quick("--model", model, *RUN, "--corpus", tones), 2)


@pytest.mark.parametrize(("model", "extra"), [("qwen2-audio", "vllm"), ("hf:org/name", "hf")])
def test_a_missing_extra_names_the_command_that_installs_it(
    quick: Any, tones: Path, model: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    hidden = ("torch", "transformers", "vllm", "xgrammar")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name in hidden else find(name, *more))
    monkeypatch.setitem(sys.modules, "google.genai", None)
    told = one_line(quick("--model", model, *RUN, "--corpus", tones), 2)
    assert f"pip install 'vibe-harness[{extra}]'" in told


def test_no_key(quick: Any, tones: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    told = one_line(quick("--model", "gemini-2.5-flash", *RUN, "--corpus", tones), 2)
    assert "set the environment variable GEMINI_API_KEY" in told


def test_a_server_that_is_not_there(quick: Any, tones: Path) -> None:
    given = ("--model", "server", "--model-args", "base_url=http://127.0.0.1:9/v1,id=x")
    assert "no server answers at http://127.0.0.1:9/v1" in one_line(quick(*given, *RUN, "--corpus", tones), 3)


def test_free_text_that_the_rules_cannot_read_is_told_to_need_a_text_model(quick: Any, tones: Path) -> None:
    with Loopback() as server:
        given = ("--model", "server", "--model-args", f"base_url={server.url},id=loopback", "--extractor", "rules")
        told = quick(*given, *RUN, "--corpus", tones, check=1).stdout
    assert "No score: gender" in told and "free text is read by a text model: --extractor NAME" in told


def test_another_model_in_mid_run_stops_it_and_what_was_answered_is_kept(
    quick: Any, tones: Path, tmp_path: Path
) -> None:
    with Loopback(other_model_after=10) as server:
        model, extractor = cards(tmp_path, server.url)
        given = ("--model", model, "--extractor", extractor, "--no-hearing-check", "--output-path", "run")
        told = one_line(quick(*given, *RUN, "--corpus", tones, "--model-args", "concurrency=1"), 3)
        assert "the server's model changed from 'loopback' to 'loopback-next' in mid-run" in told
        kept = lines(tmp_path / "run" / "responses.jsonl")
        assert 1 <= len(kept) <= 10 and {one["served_model"] for one in kept} == {"loopback"}
        told = one_line(quick(*given, *RUN, "--corpus", tones), 3)  # nor does it go on later
        assert "was asked for 'loopback' and answers as 'loopback-next'" in told
        assert lines(tmp_path / "run" / "responses.jsonl")[: len(kept)] == kept


def test_a_schema_that_the_server_ignores_stops_before_the_extraction(quick: Any, tones: Path, tmp_path: Path) -> None:
    with Loopback(ignore_schema=True) as server:
        model, extractor = cards(tmp_path, server.url)
        given = ("--model", model, "--extractor", extractor, "--output-path", "run", *RUN, "--corpus", tones)
        told = one_line(quick(*given), 3)
        assert "does not follow the JSON Schema" in told and "structured_output: none" in told
        assert len(lines(tmp_path / "run" / "responses.jsonl")) == 24
        card = extractor.read_text(encoding="utf-8") + "args: {structured_output: none}\n"
        extractor.write_text(card, encoding="utf-8")
        told = one_line(quick(*given), 2)
        assert "differs in extractor" in told
        given = (*given, "--output-path", "other")
        quick(*given)
        read = lines(tmp_path / "other" / "extractions.jsonl")
        assert len(read) == 24 and all(set(one["readings"].values()) == {"unparsed"} for one in read)
