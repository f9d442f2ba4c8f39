"""The whole job against a server, for both roles: the model that hears and the extractor that reads."""

import json
from pathlib import Path
from typing import Any

from tests.loopback import Loopback


def cards(folder: Path, url: str) -> tuple[Path, Path]:
    """Model cards of the stand-in as audio model and as extractor."""
    paths = []
    for name, audio in (("hears", "true"), ("reads", "false")):
        path = folder / f"{name}.yaml"
        path.write_text(
            f"model: {name}\nbackend: openai\nid: loopback\naudio: {audio}\n"
            f"connection: {{base_url: '{url}', max_retries: 3}}\n",
            encoding="utf-8",
        )
        paths.append(path)
    return paths[0], paths[1]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_both_roles_over_one_server_that_misbehaves(vibe: Any, tones: Path, tmp_path: Path) -> None:
    rates = {"limited": 0.03, "unavailable": 0.03, "reset": 0.03, "half": 0.03, "bad_json": 0.05, "filtered": 0.05}
    with Loopback(rates=rates, seed=4) as server:
        model, extractor = cards(tmp_path, server.url)
        command = (
            "--model", model, "--extractor", extractor, "--tasks", "story,advisory", "--corpus", tones,
            "--dimension", "gender", "--tau", 1, "--permutations", 100, "--output-path", "run",
        )  # fmt: skip
        assert vibe.json(*command)["hearing_check"] == "passed"
        responses, extractions = (lines(next((tmp_path / "run").glob(f"{n}*"))) for n in ("responses", "extractions"))
        seen = server.seen()
        assert len(responses) == 48 and len({r["request"] for r in responses}) == 48
        failed = [e for e in extractions if "error" in e["readings"].values()]
        errors = sum(r["outcome"] == "error" for r in responses) + len(failed)
        readable = sum(r["outcome"] == "ok" for r in responses)
        assert len(extractions) == readable
        assert seen["played"]["bad_json"] == errors >= 1
        silent = [clip for clip in seen["heard"].values() if clip["rms"] == 0]
        assert len(seen["heard"]) == 24 + len(silent) and len(silent) == 1  # the hearing check's silence
        assert {clip["rate"] for clip in seen["heard"].values()} == {16_000}
        assert seen["last"]["response_format"]["type"] == "json_schema"
        before = sum(seen["asked"].values())
        vibe.json(*command)  # the same command again asks for what failed, and for nothing else
        again = sum(server.seen()["asked"].values()) - before
        assert again == errors


def test_without_a_hearing_check_the_results_say_so(vibe: Any, tones: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        model, extractor = cards(tmp_path, server.url)
        results = vibe.json(
            "--model", model, "--extractor", extractor, "--tasks", "advisory", "--corpus", tones, "--tau", 1,
            "--permutations", 20, "--no-hearing-check",
        )  # fmt: skip
        assert results["hearing_check"] == "left out"
        assert all(clip["rms"] > 0 for clip in server.seen()["heard"].values())


def test_a_budget_of_requests_stops_the_run_and_keeps_what_was_answered(vibe: Any, tones: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        model, extractor = cards(tmp_path, server.url)
        command = (
            "--model", model, "--extractor", extractor, "--tasks", "advisory", "--corpus", tones, "--tau", 1,
            "--permutations", 20, "--output-path", "run", "--max-requests", 10,
        )  # fmt: skip
        done = vibe(*command)
        assert done.returncode == 3 and "--max-requests" in done.stderr and "Traceback" not in done.stderr
        assert len(lines(tmp_path / "run" / "responses.jsonl")) == 10
