"""What a run takes over from an earlier start is said, can be refused, and is never of two models."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import Loopback
from tests.server_runs import cards, lines
from vibe_harness.store.run_folder import RunFolder

SHORT = ("--tasks", "advisory", "--tau", 1, "--permutations", 20, "--no-hearing-check")


def said(done: Any, code: int | tuple[int, ...] = (0, 1)) -> str:
    """The standard error of a command that ended so, without a traceback."""
    assert done.returncode in (code if isinstance(code, tuple) else (code,)), done.stderr
    assert "Traceback" not in done.stderr
    return str(done.stderr)


@pytest.fixture
def asked(quick: Any, tones: Path, tmp_path: Path) -> Any:
    """Runs the command against a server, given its address."""

    def run(url: str, *more: object, output: str = "run", card: str = "") -> Any:
        model, extractor = cards(tmp_path, url, card)
        given = ("--model", model, "--extractor", extractor, "--corpus", tones, "--output-path", output)
        return quick(*given, *SHORT, *more)

    return run


def test_a_new_checkpoint_behind_the_same_name_is_not_shown_the_old_score_without_a_word(
    asked: Any, tmp_path: Path
) -> None:
    with Loopback(seed=1) as server:
        first = said(asked(server.url))
        assert f"run: asking hears (loopback at {server.url}) 24 requests; no answer is reused" in first
        port = server.script.port
    today = time.strftime("%Y-%m-%d", time.gmtime())
    with Loopback(seed=2, port=port) as server:
        told = said(asked(server.url))
        assert f"asking nothing: all 24 answers of {today}" in told
        assert f"given by 'loopback' at {server.url}, are reused (--fresh asks all anew beside this run)" in told
        assert "what it read before is reused" in told and not server.seen()["asked"]
        told = said(asked(server.url, "--fresh"))
        assert "run-2: asking hears" in told and "no answer is reused" in told
        assert len(server.seen()["asked"]) > 24
        old, new = (lines(tmp_path / name / "responses.jsonl") for name in ("run", "run-2"))
        assert {one["text"] for one in old}.isdisjoint(one["text"] for one in new)
        assert "run-2: asking nothing: all 24 answers" in said(asked(server.url))  # goes on with the newest
        assert "run-3: asking hears" in said(asked(server.url, "--fresh"))
        assert "run-3: asking nothing" in said(asked(server.url, "--dry-run")) or (tmp_path / "run-3").is_dir()
        shutil.move(tmp_path / "run-3", tmp_path / "mine")  # renamed by hand
        assert "run-2: asking nothing" in said(asked(server.url))
        assert "mine: asking nothing" in said(asked(server.url, output="mine"))
        results = json.loads((tmp_path / "mine" / "results.json").read_text(encoding="utf-8"))
        assert (results["served_model"], results["served_as_asked"]) == ("loopback", True)
        assert results["extractor_served_model"] == "loopback"


def test_a_fresh_run_that_was_stopped_is_gone_on_with_and_not_paid_for_twice(asked: Any, tmp_path: Path) -> None:
    with Loopback() as server:
        said(asked(server.url))
        assert "--max-requests" in said(asked(server.url, "--fresh", "--max-requests", 5), 3)
        told = said(asked(server.url, "--fresh"), 2)
        assert "run-2: this run was started with --fresh and is not finished: leave --fresh out" in told
        before = sum(server.seen()["asked"].values())
        told = said(asked(server.url))
        assert f"run-2: asking hears (loopback at {server.url}) 19 of 24 requests; 5 answers of" in told
        assert sum(server.seen()["asked"].values()) - before == 19 + 24 + 1  # with the proof of the schema
        with RunFolder(tmp_path / "run-2").locked():  # another process
            assert "another process is working in this run folder" in said(asked(server.url), 2)
        assert not (tmp_path / "run-3").exists()


def test_another_address_under_an_unpinned_revision_stops_with_both_ways_named(asked: Any, tmp_path: Path) -> None:
    with Loopback() as old, Loopback() as new:
        said(asked(old.url))
        told = said(asked(new.url), 2)
        assert f"its answers come from {old.url}" in told and f"'hears' is now at {new.url}" in told
        assert "--fresh asks all anew beside this run" in told and "--same-model goes on with the answers" in told
        assert not new.seen()["asked"]
        assert f"given by 'loopback' at {old.url}, are reused" in said(asked(new.url, "--same-model"))
        assert "run-2: asking hears" in said(asked(new.url, "--fresh"))
        (tmp_path / "reads.yaml").write_text((tmp_path / "reads.yaml").read_text(encoding="utf-8").replace(
            new.url, old.url), encoding="utf-8")  # fmt: skip
    pinned = "revision: '1'\n"
    with Loopback() as old, Loopback() as new:
        said(asked(old.url, output="pinned", card=pinned))
        told = said(asked(new.url, output="pinned", card=pinned), 2)
        assert f"its readings come from {old.url}" in told and "'reads' is now at" in told  # the reader pins none


def test_failures_at_the_old_address_are_no_answers(asked: Any) -> None:
    with Loopback(rates={"bad_request": 1.0}) as ill, Loopback() as well:
        assert "every request to 'hears' failed" in said(asked(ill.url), 3)
        assert "no answer is reused" in said(asked(well.url))


def test_a_server_that_names_another_checkpoint_than_before_stops(asked: Any) -> None:
    with Loopback(root="step-1000") as server:
        assert "--max-requests" in said(asked(server.url, "--max-requests", 5), 3)
        port = server.script.port
    with Loopback(root="step-2000", port=port) as server:
        told = said(asked(server.url), 3)
        assert "come from the checkpoint 'step-1000', and the server now has 'step-2000'" in told
        assert not server.seen()["asked"]
        said(asked(server.url, "--same-model"))


@pytest.mark.parametrize("at_once", [1, 8])
def test_a_model_of_another_name_costs_one_request_and_is_accepted_by_name_alone(
    asked: Any, at_once: int, tmp_path: Path
) -> None:
    limit = ("--model-args", f"concurrency={at_once}")
    with Loopback(served_model="other-7b", latency_s=0.05) as server:
        told = said(asked(server.url, *limit), 3)
        assert "was asked for 'loopback' and answers as 'other-7b'" in told and "--accept-served-model other-7b" in told
        assert sum(server.seen()["asked"].values()) == 1
        assert "whole name" in said(asked(server.url, "--accept-served-model", "other*"), 2)
        assert "answers as 'other-7b'" in said(asked(server.url, *limit, "--accept-served-model", "other-8b"), 3)
        said(asked(server.url, *limit, "--accept-served-model", "other-7b"))
        results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
        assert (results["served_model"], results["served_as_asked"]) == ("other-7b", False)
        told = said(asked(server.url, *limit, output="named", card="served_as: other-*\n"), 3)  # the reader has none
        assert "was asked for 'loopback' and answers as 'other-7b'" in told and "the card 'reads'" in told


def test_an_extractor_whose_name_changes_between_starts_stops(asked: Any, tmp_path: Path) -> None:
    with Loopback() as server:
        said(asked(server.url))
        port = server.script.port
    path = tmp_path / "run" / "extractions.jsonl"
    kept = path.read_text(encoding="utf-8").splitlines(keepends=True)[:10]
    path.write_text("".join(kept), encoding="utf-8")
    with Loopback(served_model="loopback-2026-11-01", port=port) as server:
        told = said(asked(server.url), 3)
        assert "gave its model the name 'loopback' before and gives it the name 'loopback-2026-11-01' now" in told
        assert path.read_text(encoding="utf-8").splitlines(keepends=True) == kept
