"""A corpus of one's own from the command line: emotions within speakers, sites, and a start that fails."""

from __future__ import annotations

import pytest

from tests.command_line import QuickCommand, tone

RUN = ("--model", "simulated", "--tasks", "advisory", "--tau", "1", "--permutations", "99")


@pytest.fixture
def emotions(quick: QuickCommand) -> QuickCommand:
    """Four speakers with two clips of each emotion; the site goes with the emotion."""
    rows = ["file,speaker,emotion,site,accent"]
    for speaker in range(4):
        for take in range(4):
            name = f"s{speaker}/{take}.wav"
            tone(quick.folder / name, 110 + 20 * speaker + 3 * take)
            emotion, site = (("joy", "north"), ("anger", "south"))[take % 2]
            rows.append(f"{name},s{speaker},{emotion},{site},{('us', 'uk', 'fr', 'de')[speaker]}")
    (quick.folder / "mine.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return quick


def test_emotions_are_compared_within_speakers_and_a_site_that_goes_with_them_is_named(emotions):
    done = emotions(*RUN, "--corpus", "mine.csv", "--dimension", "emotion", "--output-path", "run")
    assert done.returncode in (0, 1), done.stderr
    assert "emotion groups differ in site (anger south 100%; joy north 100%; TVD 1.00" in done.stdout
    [task] = emotions.json("score", "run", "--tau", "1")["tasks"]
    score = next(one for one in task["scores"] if one["metric"] == "ntvd" and one["attribute"] is None)
    assert score["permuted"] == "groups within speakers"
    assert task["groups"]["joy"]["speakers"] == task["groups"]["anger"]["speakers"] == 4
    emotions("report", "run", check=0)
    emotions("run-check", "run", check=0)
    assert "every speaker has clips in several groups" in emotions.refuses("compare", "run", "run")


def test_a_site_that_is_declared_and_goes_with_the_groups_is_refused_before_decoding(emotions):
    card = "corpus: mine\nversion: 1\ndescription: x\nstrata: [site]\n"
    (emotions.folder / "mine.yaml").write_text(card, encoding="utf-8")
    for sound in emotions.folder.rglob("*.wav"):
        sound.unlink()
    said = emotions.refuses(*RUN, "--corpus", "mine.csv", "--dimension", ["emotion", "accent"][0])
    assert "the stratum 'site' goes with 'emotion'" in said and "no such file" not in said
    said = emotions.refuses(*RUN, "--corpus", "mine.csv", "--dimension", "accent")
    assert "4 groups of 'accent' have one speaker only" in said and "no such file" not in said


def test_a_missing_key_or_server_is_told_before_decoding_and_leaves_no_folder(emotions, monkeypatch):
    for sound in emotions.folder.rglob("*.wav"):
        sound.unlink()
    card = (
        "model: served\nbackend: openai\nid: a\nextractor: rules\nconnection: {{base_url: 'http://127.0.0.1:9/v1'{}}}\n"
    )
    options = ("--model", "served.yaml", "--tasks", "advisory", "--corpus", "mine.csv", "--dimension", "emotion")
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    (emotions.folder / "served.yaml").write_text(card.format(", api_key_env: NO_SUCH_KEY"), encoding="utf-8")
    said = emotions.refuses(*options)
    assert "NO_SUCH_KEY" in said and "no such file" not in said
    (emotions.folder / "served.yaml").write_text(card.format(""), encoding="utf-8")
    done = emotions(*options, check=3)
    assert "127.0.0.1:9" in done.stderr and "no such file" not in done.stderr
    assert not (emotions.folder / "runs").exists()
    assert "no such file" in emotions.refuses(*options, "--dry-run")  # which asks nobody


def test_a_start_that_fails_leaves_no_folder(emotions, monkeypatch):
    from vibe_harness.backends import protocol
    from vibe_harness.errors import EngineError
    from vibe_harness.planning import prepare

    def fail(*_: object) -> None:
        raise EngineError("it does not start")

    monkeypatch.setattr(protocol, "open_backend", fail)
    monkeypatch.setattr(prepare, "opener_of", lambda *_: fail)
    done = emotions(*RUN, "--corpus", "mine.csv", "--dimension", "emotion", check=3)
    assert "it does not start" in done.stderr
    assert not any((emotions.folder / "runs").glob("*"))


def test_a_group_that_is_not_known_is_refused_when_a_run_is_scored_by_another_column(emotions):
    path = emotions.folder / "mine.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(",de", ",us").replace(",fr", ",unknown"), encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace(",uk", ",unknown"), encoding="utf-8")
    options = (*RUN, "--corpus", "mine.csv", "--dimension", "emotion")
    assert emotions(*options, "--output-path", "run").returncode in (0, 1)
    assert "'unknown'" in emotions.refuses("score", "run", "--dimension", "accent", "--tau", "1")
    card = "corpus: mine\nversion: 1\ndescription: x\ngroups: {accent: [unknown]}\n"
    (emotions.folder / "mine.yaml").write_text(card, encoding="utf-8")
    assert emotions(*options, "--output-path", "other").returncode in (0, 1)
    assert emotions("score", "other", "--dimension", "accent", "--tau", "1").returncode in (0, 1)
