"""The whole job against a server, for both roles: the model that hears and the extractor that reads."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import Loopback
from tests.server_runs import cards, lines


def test_both_roles_over_one_server_that_misbehaves(quick: Any, tones: Path, tmp_path: Path) -> None:
    rates = {"limited": 0.03, "unavailable": 0.03, "reset": 0.03, "half": 0.03, "bad_request": 0.05, "filtered": 0.05}
    with Loopback(rates=rates, seed=4) as server:
        model, extractor = cards(tmp_path, server.url)
        command = (
            "--model", model, "--extractor", extractor, "--tasks", "story,advisory", "--corpus", tones,
            "--dimension", "gender", "--tau", 1, "--permutations", 100, "--output-path", "run",
        )  # fmt: skip
        assert quick.json(*command)["hearing_check"] == "passed"
        responses, extractions = (lines(next((tmp_path / "run").glob(f"{n}*"))) for n in ("responses", "extractions"))
        seen = server.seen()
        assert len(responses) == 48 and len({r["request"] for r in responses}) == 48
        failed = [e for e in extractions if "error" in e["readings"].values()]
        errors = sum(r["outcome"] == "error" for r in responses) + len(failed)
        readable = sum(r["outcome"] == "ok" for r in responses)
        assert len(extractions) == readable
        assert seen["played"]["bad_request"] == errors >= 1
        silent = [clip for clip in seen["heard"].values() if clip["rms"] == 0]
        assert len(seen["heard"]) == 24 + len(silent) and len(silent) == 1  # the hearing check's silence
        assert {clip["rate"] for clip in seen["heard"].values()} == {16_000}
        assert seen["last"]["response_format"]["type"] == "json_schema"
        before = sum(seen["asked"].values())
        quick.json(*command)  # the same command again asks for what failed, and for nothing else
        again = sum(server.seen()["asked"].values()) - before
        assert again == errors + 1  # and the proof that the extractor follows a schema


def test_without_a_hearing_check_the_results_say_so(quick: Any, tones: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        model, extractor = cards(tmp_path, server.url)
        results = quick.json(
            "--model", model, "--extractor", extractor, "--tasks", "advisory", "--corpus", tones, "--tau", 1,
            "--permutations", 20, "--no-hearing-check",
        )  # fmt: skip
        assert results["hearing_check"] == "left out"
        assert all(clip["rms"] > 0 for clip in server.seen()["heard"].values())


def test_a_budget_of_requests_stops_the_run_and_keeps_what_was_answered(
    quick: Any, tones: Path, tmp_path: Path
) -> None:
    with Loopback() as server:
        model, extractor = cards(tmp_path, server.url)
        command = (
            "--model", model, "--extractor", extractor, "--tasks", "advisory", "--corpus", tones, "--tau", 1,
            "--permutations", 20, "--output-path", "run", "--max-requests", 10,
        )  # fmt: skip
        done = quick(*command)
        assert done.returncode == 3 and "--max-requests" in done.stderr and "Traceback" not in done.stderr
        assert len(lines(tmp_path / "run" / "responses.jsonl")) == 10


PRICES = (  # 20 tokens a prompt: 0.02
    "prices: {input: 1000, output: 0, currency: EUR, read_on: '2026-12-01'}\naudio_tokens_per_second: 10\n"
)


def test_a_budget_of_money_stops_the_run_and_a_larger_one_ends_it(quick: Any, tones: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        model, extractor = cards(tmp_path, server.url, PRICES)
        command = (
            "--model", model, "--extractor", extractor, "--tasks", "advisory", "--corpus", tones, "--tau", 1,
            "--permutations", 20, "--output-path", "run", "--model-args", "concurrency=2",
        )  # fmt: skip
        done = quick(*command, "--max-cost", 0.1)
        assert done.returncode == 3 and "the budget of 0.1 is used up (--max-cost)" in done.stderr
        kept = len(lines(tmp_path / "run" / "responses.jsonl"))
        assert 5 <= kept <= 5 + 4  # those under way
        quick.json(*command, "--max-cost", 10)
        assert len(lines(tmp_path / "run" / "responses.jsonl")) == 24
        missing = cards(tmp_path, server.url)[0]
        assert "has no prices" in quick.refuses(*command, "--max-cost", 1, "--model", missing)


def test_the_dry_run_estimates(quick: Any, tones: Path, tmp_path: Path) -> None:
    model, extractor = cards(tmp_path, "http://127.0.0.1:9/v1", PRICES)
    command = ("--model", model, "--extractor", extractor, "--tasks", "advisory,story", "--corpus", tones, "--dry-run")
    plan = quick.json(*command)
    asked, read = plan["estimate"]["model"], plan["estimate"]["extractor"]
    assert asked["requests"] == read["requests"] == 48
    assert asked["audio_seconds"] == pytest.approx(48 * 0.6) and asked["audio_tokens"] == 288
    assert asked["most_output_tokens"] == 48 * 512 and asked["currency"] == "EUR"
    letters = len(plan["first_prompt"])
    assert asked["text_tokens"] == pytest.approx(48 * letters / 4, rel=1)  # two prompts of about that length
    assert asked["most_cost"] == pytest.approx((asked["text_tokens"] + 288) * 1000 / 1e6)
    assert read["audio_tokens"] == 0 and read["most_cost"] is None and read["text_tokens"] > 48 * 512
    told = quick(*command, check=0).stdout
    assert "288 tokens" in told and f"{asked['most_cost']:.2f} EUR" in told
    bare, _ = cards(tmp_path, "http://127.0.0.1:9/v1")
    told = quick(*command, "--model", bare, check=0).stdout
    assert "tokens not known: audio_tokens_per_second" in told and "EUR" not in told


@pytest.mark.slow
def test_batch_invariance_is_checked_once_and_reported(quick: Any, tones: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        model, extractor = cards(tmp_path, server.url)
        command = (
            "--model", model, "--extractor", extractor, "--tasks", "advisory", "--corpus", tones, "--tau", 1,
            "--permutations", 20, "--output-path", "run",
        )  # fmt: skip
        assert quick.json(*command)["batch_check"] is None
        before = sum(server.seen()["asked"].values())
        results = quick.json(*command, "--check-batch-invariance", 5, "--no-hearing-check")
        assert results["batch_check"] == {"requests": 5, "different": 0}
        assert sum(server.seen()["asked"].values()) - before == 5
        quick.json(*command, "--check-batch-invariance", 5)
        assert sum(server.seen()["asked"].values()) - before == 5
        path = tmp_path / "run" / "responses.jsonl"  # as if another batch had changed the words
        path.write_text(path.read_text(encoding="utf-8").replace("A low voice", "A voice"), encoding="utf-8")
        assert quick.json(*command, "--check-batch-invariance", 24)["batch_check"]["different"] >= 4


def test_a_key_reaches_no_file_and_no_message(
    quick: Any, tones: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sk-secret-0123456789"
    monkeypatch.setenv("VIBE_TEST_KEY", key)
    caplog.set_level(logging.DEBUG)
    with Loopback(key=key, rates={"bad_request": 0.2, "limited": 0.2}) as server:
        model, extractor = cards(tmp_path, server.url)
        for card in (model, extractor):
            text = card.read_text(encoding="utf-8").replace(
                "max_retries: 3", "max_retries: 3, api_key_env: VIBE_TEST_KEY"
            )
            card.write_text(
                text.replace("audio: false", "audio: false\nargs: {structured_output: none}"), encoding="utf-8"
            )
        command = (
            "--model", model, "--extractor", extractor, "--tasks", "advisory", "--corpus", tones, "--tau", 1,
            "--permutations", 20, "--no-hearing-check", "--output-path", "run",
        )  # fmt: skip
        said = [quick(*command), quick(*command, "--json")]
        monkeypatch.setenv("VIBE_TEST_KEY", f"{key}-wrong")
        said.append(quick(*command, "--output-path", "other"))
    assert [done.returncode in (0, 1) for done in said] == [True, True, False] and said[2].returncode == 3
    assert "[key]" in said[2].stderr
    assert not any(key in done.stdout + done.stderr for done in said)
    assert caplog.text and key not in caplog.text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 30 and not [path for path in files if key.encode() in path.read_bytes()]
