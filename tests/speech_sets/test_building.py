"""The whole way from a table of questions to a corpus, stopped and gone on, with a model that rewrites on a server."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.loopback import Loopback
from tests.pipeline.faults import Starter
from tests.speech_sets.conftest import QUESTIONS, WriteSet
from tests.speech_sets.stand_in import speech_server
from vibe_harness.cards.loading import CardIndex
from vibe_harness.cli.terminal import TerminalProgress
from vibe_harness.corpora.manifest import load_manifest
from vibe_harness.errors import EngineError, UserError
from vibe_harness.speech_sets import synthesis, texts
from vibe_harness.speech_sets.building import BuiltSpeechSet, build
from vibe_harness.speech_sets.card import load_speech_set


def built(card: Path, output: Path, *include: Path) -> BuiltSpeechSet:
    return build(load_speech_set(card), output, CardIndex(include), TerminalProgress().stage)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def rewrite_table(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def written(folder: Path) -> dict[Path, tuple[int, int]]:
    """Which file lies under each name of a sound, and its time: a new one is another file, however coarse the clock."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*.wav")}


def rewriting(folder: Path, url: str) -> dict[str, Any]:
    """The `rewrite` part of a card, its model card and template beside it."""
    (folder / "set").mkdir(exist_ok=True)
    (folder / "set" / "aloud.j2").write_text("Write for the ear ({{ part }}): {{ text }}", encoding="utf-8")
    model = folder / "set" / "writer.yaml"
    card = {"model": "writer", "backend": "openai", "id": "loopback", "audio": False,
            "connection": {"base_url": url, "max_retries": 0}}  # fmt: skip
    model.write_text(yaml.safe_dump(card), encoding="utf-8")
    return {"model": str(model), "template": "aloud.j2"}


def test_the_speech_becomes_a_corpus(write_set: WriteSet, tmp_path: Path) -> None:
    done = built(write_set(), tmp_path / "out")
    assert (done.texts, done.flagged, done.clips, done.bins) == (9, None, 18, None)
    corpus = load_manifest(tmp_path / "out" / "manifest.csv")
    assert len(corpus.clips) == 6 and corpus.synthetic and corpus.licence == "CC0-1.0"
    clip = corpus.clips[0]
    assert clip.speaker == "amy" and clip.text == "What is the capital of France?" and clip.sentence_id == "1"
    assert (
        clip.groups["option_b_text"] == "Rome" and clip.groups["answer"] == "A" and clip.groups["accent"] == "british"
    )
    said = records(tmp_path / "out" / "spoken.jsonl")
    assert {record["file"] for record in said} == {
        str(path.relative_to(tmp_path / "out").as_posix()) for path in (tmp_path / "out" / "audio").rglob("*.wav")
    }
    assert all(record["text"] and record["made_by"].startswith("espeakng-loader ") for record in said)


def test_a_second_build_speaks_nothing_and_a_changed_text_alone(write_set: WriteSet, tmp_path: Path) -> None:
    out = tmp_path / "out"
    built(write_set(), out)
    before = written(out)
    built(write_set(), out)
    assert written(out) == before
    built(write_set(QUESTIONS.replace("Paris", "Lyon")), out)
    changed = {path.name for path, stamp in written(out).items() if stamp != before[path]}
    assert changed == {"1_option_a.wav"}
    changed_to = (out / "audio" / "amy" / "1_option_a.wav").read_bytes()
    built(write_set(), out)  # and back again: the file holds what it held first
    assert (out / "audio" / "amy" / "1_option_a.wav").read_bytes() != changed_to
    (out / "audio" / "bob" / "2_question.wav").unlink()
    built(write_set(), out)
    assert (out / "audio" / "bob" / "2_question.wav").is_file()


def test_what_a_killed_build_left_half_written_is_cleared_away(write_set: WriteSet, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "audio" / "amy").mkdir(parents=True)
    left = [out / "audio" / "amy" / ".1_option_a.wav.12345.part", out / ".manifest.csv.12345.part"]
    not_ours = out / ".film.mp4.12345.part"
    for path in (*left, not_ours):
        path.write_bytes(b"RIFF")
    built(write_set(), out)
    assert not any(path.exists() for path in left) and not_ours.exists()


def made(folder: Path) -> dict[str, bytes | list[dict[str, Any]]]:
    """What a build left."""
    return {
        str(path.relative_to(folder)): records(path) if path.suffix == ".jsonl" else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_killed_ahead_of_any_change_to_its_folder_a_build_goes_on_to_the_same_files(
    write_set: WriteSet, tmp_path: Path
) -> None:
    card = write_set("".join(QUESTIONS.splitlines(keepends=True)[:2]), texts=["question", "option_a"])
    starter = Starter(tmp_path, ("speech-set", str(card), "--output"))
    starter.whole("whole")
    whole = made(tmp_path / "whole")
    killed = [made(folder) for folder in starter.killed_ahead_of_each_change()]
    assert len(killed) > 15 and all(left == whole for left in killed)


def test_a_model_rewrites_and_a_person_mends(write_set: WriteSet, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Loopback() as server:
        card = write_set(rewrite=rewriting(tmp_path, server.url))
        done = built(card, out)
        asked = sum(server.seen()["asked"].values())
        assert asked == 9 and done.flagged == 9  # the stand-in writes words of its own
        review = table(out / "review.csv")
        assert [row["original"] for row in review][:2] == ["What is the capital of France?", "Paris"]
        review[1] |= {"verdict": "mended", "mended": "Paris, the city"}
        rewrite_table(out / "review.csv", review)
        done = built(card, out)
        assert done.mended == 1
        assert sum(server.seen()["asked"].values()) == asked
    spoken = {(r["item"], r["part"], r["voice"]): r["text"] for r in records(out / "spoken.jsonl")}
    assert spoken["1", "option_a", "amy"] == "Paris, the city"
    assert spoken["1", "question", "amy"] == review[0]["rewritten"]
    assert table(out / "review.csv")[1]["verdict"] == "mended"


def test_a_verdict_outlives_a_spreadsheet(write_set: WriteSet, tmp_path: Path) -> None:
    """It makes a date of 1/2 and a number of 007; and runs a cell that begins with =, so none does."""
    out = tmp_path / "out"
    with Loopback() as server:
        questions = QUESTIONS.replace("\n1,", "\n007,").replace("Paris", "=1/2")
        card = write_set(questions, rewrite=rewriting(tmp_path, server.url))
        built(card, out)
        review = table(out / "review.csv")
        assert review[1]["original"] == "'=1/2" and (out / "review.csv").read_bytes().startswith(b"\xef\xbb\xbf")
        review[1] |= {"item": "7", "original": "02-Jan", "verdict": "mended", "mended": "one half"}
        rewrite_table(out / "review.csv", review)
        assert built(card, out).mended == 1
    spoken = {(r["item"], r["part"], r["voice"]): r["text"] for r in records(out / "spoken.jsonl")}
    assert spoken["007", "option_a", "amy"] == "one half"
    assert table(out / "review.csv")[1]["item"] == "007"


def test_a_verdict_is_on_the_original_too(write_set: WriteSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the mended text would not be spoken in this build, and would be in the next."""
    out = tmp_path / "out"
    monkeypatch.setattr(texts, "_read", lambda response: ("always the same", ""))
    with Loopback() as server:
        rewrite = rewriting(tmp_path, server.url)
        built(write_set(rewrite=rewrite), out)
        review = table(out / "review.csv")
        review[1] |= {"verdict": "mended", "mended": "Paris, the city"}
        rewrite_table(out / "review.csv", review)
        with pytest.raises(UserError, match=r"1 verdicts are on texts .* \(one is 1, option_a\)"):
            built(write_set(QUESTIONS.replace("Paris", "Lyon"), rewrite=rewrite), out)


def test_texts_that_are_not_rewritten_stop_the_build_and_are_asked_again(write_set: WriteSet, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Loopback(rates={"refused": 0.4}, seed=1) as server:
        card = write_set(rewrite=rewriting(tmp_path, server.url))
        with pytest.raises(EngineError, match=r"of 9 texts were not rewritten by 'writer'; the first: .*refused"):
            built(card, out)
        kept = len(records(out / "rewritten.jsonl"))
        assert 0 < kept < 9 and not (out / "spoken.jsonl").exists()
    with Loopback() as server:
        built(write_set(rewrite=rewriting(tmp_path, server.url)), out)
        assert sum(server.seen()["asked"].values()) == 9 - kept


@pytest.mark.slow
def test_two_recognisers_screen_the_speech(write_set: WriteSet, tmp_path: Path) -> None:
    pytest.importorskip("pocketsphinx")
    out = tmp_path / "out"
    with speech_server() as server:
        server.heard = "How many legs does a spider have?"
        recognisers = [
            {"name": "sphinx", "recogniser": "pocketsphinx"},
            {"name": "whisper", "recogniser": "openai", "settings": {"base_url": f"{server.url}/v1", "model": "w"}},
        ]
        card = write_set(QUESTIONS, texts=["question"], recognisers=recognisers)
        done = built(card, out)
        assert len(server.asked) == 6
        assert done.bins is not None and done.bins["en"]["0"] >= 2 / 6  # the server is right on that question
        built(card, out)
        assert len(server.asked) == 6  # nothing is heard twice
    rows = {(row["item"], row["voice"]): row for row in table(out / "screening.csv")}
    assert rows["2", "amy"]["bin"] == "0" and rows["2", "amy"]["whisper_errors"] == "0.0000"
    assert rows["1", "amy"]["sphinx"].startswith("what is the capital of")
    assert done.sample == len(table(out / "rating.csv")) == sum(row["bin"] != "0" for row in rows.values())


def test_silence_is_no_speech(write_set: WriteSet, tmp_path: Path) -> None:
    with speech_server() as server:
        server.silent = True
        settings = {"base_url": f"{server.url}/v1", "model": "tts", "voice": "v"}
        voice = {"voice": "v", "synthesizer": "openai", "settings": settings, "groups": {"gender": "female"}}
        with pytest.raises(EngineError, match="item '1', question: the synthesizer gave silence"):
            built(write_set(voices=[voice]), tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.wav"))


def test_what_is_missing_is_said_before_anything_is_asked(write_set: WriteSet, tmp_path: Path) -> None:
    with Loopback() as server:
        rewrite = rewriting(tmp_path, server.url)
        settings = {"base_url": "http://127.0.0.1:9/v1", "model": "w", "api_key_env": "NOT_SET_ANYWHERE"}
        recognisers = [{"name": "w", "recogniser": "openai", "settings": settings}]
        with pytest.raises(UserError, match="NOT_SET_ANYWHERE"):
            built(write_set(rewrite=rewrite, recognisers=recognisers), tmp_path / "out")
        assert sum(server.seen()["asked"].values()) == 0


def test_a_voice_with_nothing_to_say_is_refused(write_set: WriteSet, tmp_path: Path) -> None:
    voice = {"voice": "v", "settings": {"voice": "en"}, "groups": {"gender": "f"}, "where": {"subject": "astrology"}}
    with pytest.raises(UserError, match="speaks no row"):
        built(write_set(voices=[voice]), tmp_path / "out")


def test_two_items_with_one_file_name_are_refused(write_set: WriteSet, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="would share a file name"):
        built(write_set(QUESTIONS.replace("\n1,", "\na/b,").replace("\n2,", "\na?b,")), tmp_path / "out")


def test_two_texts_with_one_file_name_are_refused(write_set: WriteSet, tmp_path: Path) -> None:
    """Item 1, part a_b and item 1_a, part b are both 1_a_b.wav: the later would be heard for both."""
    questions = "sample_id,a_b,b\n1,one,two\n1_a,three,four\n"
    with pytest.raises(UserError, match=r"'1' \(a_b\) and '1_a' \(b\) would share a file name"):
        built(write_set(questions, texts=["a_b", "b"], keep=[]), tmp_path / "out")


def test_killed_between_the_speech_and_its_record(
    write_set: WriteSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is changed, spoken, the process killed; then it is changed back: the first speech is gone."""
    out = tmp_path / "out"
    built(write_set(), out)
    path = out / "audio" / "amy" / "1_option_a.wav"
    first = path.read_bytes()

    def killed(*given: Any) -> tuple[str, float]:
        speak(*given)
        raise KeyboardInterrupt

    speak = synthesis._speak
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(synthesis, "_speak", killed)
        built(write_set(QUESTIONS.replace("Paris", "Lyon")), out)
    assert path.read_bytes() != first
    built(write_set(), out)
    assert path.read_bytes() == first


def test_two_builds_in_one_folder_are_refused(write_set: WriteSet, tmp_path: Path) -> None:
    from filelock import FileLock

    (tmp_path / "out").mkdir()
    with FileLock(tmp_path / "out" / ".lock"), pytest.raises(UserError, match="another process is building"):
        built(write_set(), tmp_path / "out")


def test_the_command_says_what_it_made(write_set: WriteSet, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from vibe_harness.cli.main import main

    with pytest.raises(SystemExit) as end:
        main(["speech-set", str(write_set()), "--output", str(tmp_path / "out")])
    told = capsys.readouterr().out
    assert end.value.code == 0
    assert "9 texts, spoken as they are written" in told and "18 clips" in told and "not screened" in told
