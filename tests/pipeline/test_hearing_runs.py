"""The hearing check of runs: what it compares, what results say of it, and when it is made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.backends.asking import tone
from tests.loopback import Loopback, texts_of
from tests.server_runs import cards, lines
from vibe_harness.backends.hearing_check import SILENCE
from vibe_harness.cards.loading import CardIndex
from vibe_harness.cards.schema import HearingQuestion, ModelCard
from vibe_harness.corpora.manifest import load_manifest
from vibe_harness.pipeline.hearing_clips import hearing_clips
from vibe_harness.planning.plan import Plan
from vibe_harness.records import CheckedClip, Clip

SENTENCES = ("The kettle is on the stove", "A bridge crosses the river", "My neighbour paints boats")


@pytest.fixture
def spoken(tones: Path) -> Path:
    """The corpus of tones with texts: each take is a sentence."""
    head, *rows = tones.read_text(encoding="utf-8").splitlines()
    rows = [f"{row},{SENTENCES[int(row.partition('.')[0][-1])]}" for row in rows]
    tones.write_text("\n".join([f"{head},text", *rows]) + "\n", encoding="utf-8")
    return tones


def command(folder: Path, url: str, corpus: Path, *more: object, card: str = "") -> tuple[object, ...]:
    model, _ = cards(folder, url, card)
    return ("--model", model, "--extractor", "rules", "--tasks", "advisory", "--corpus", corpus, "--dimension",
            "gender", "--tau", 1, "--permutations", 20, "--output-path", "run", *more)  # fmt: skip


def checks(folder: Path) -> list[dict[str, Any]]:
    return [one for one in lines(folder / "run" / "engines.jsonl") if one["role"] == "hearing check"]


def test_texts_are_compared_and_the_results_say_so(quick: Any, spoken: Path, tmp_path: Path) -> None:
    with Loopback(says=texts_of(load_manifest(spoken))) as server:
        results = quick.json(*command(tmp_path, server.url, spoken))
    assert results["hearing_check"] == "passed"
    assert results["hearing"] == {"by": "transcripts", "clips": 4, "right": 4, "error_rate": 0.0}
    [check] = checks(tmp_path)
    assert len(check["answers"]) == 5 and {*check["answers"].values()} == {*SENTENCES, "(nothing)"}


def test_who_writes_other_words_is_stopped_before_the_run(quick: Any, spoken: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        done = quick(*command(tmp_path, server.url, spoken), check=3)
        assert "cannot write down what it hears: it wrote down 0 of 4 clips (word error rates " in done.stderr
        assert sum(server.seen()["asked"].values()) == 5
        results = quick.json(*command(tmp_path, server.url, spoken, "--no-hearing-check"))
    assert results["hearing_check"] == "left out" and results["hearing"] is None


def test_a_question_about_what_is_tested_is_refused_before_a_server_is_asked(
    quick: Any, spoken: Path, tmp_path: Path
) -> None:
    card = "hearing_check: {prompt: 'Male or female?', answers: [male, female]}\n"
    told = quick.refuses(*command(tmp_path, "http://localhost:9/v1", spoken, card=card))
    assert "'male' is a group of 'gender', which is what is tested" in told
    assert not (tmp_path / "run").exists()


def test_another_engine_is_checked_anew_and_the_same_one_is_not(quick: Any, tones: Path, tmp_path: Path) -> None:
    with Loopback(hold_after=None) as server:
        quick.json(*command(tmp_path, server.url, tones, "--limit", 8))
        assert len(checks(tmp_path)) == 1
        run = tmp_path / "run" / "responses.jsonl"
        half = run.read_text(encoding="utf-8").splitlines()[:4]
        run.write_text("\n".join(half) + "\n", encoding="utf-8")
        quick.json(*command(tmp_path, server.url, tones, "--limit", 8))
        assert len(checks(tmp_path)) == 1  # the same engine
    run.write_text("\n".join(half) + "\n", encoding="utf-8")
    with Loopback(drop_audio=True) as other:  # elsewhere, and its clips get lost
        done = quick(*command(tmp_path, other.url, tones, "--limit", 8), check=3)
        assert "does not hear" in done.stderr
    assert len(run.read_text(encoding="utf-8").splitlines()) == 4


def test_each_cell_of_a_study_is_checked_and_its_server_ahead_of_decoding(
    quick: Any, tones: Path, tmp_path: Path
) -> None:
    def study(url: str) -> str:
        model, _ = cards(tmp_path, url)
        (tmp_path / "s.yaml").write_text(
            f"study: s\nmodels: [{model}, simulated]\ntasks: [advisory]\ncorpora: [{tones}]\nextractor: rules\n"
            "dimensions: [gender]\ntau: 1\npermutations: 20\n",
            encoding="utf-8",
        )
        done = quick("study", "s.yaml", "--output-path", "study")
        assert done.returncode not in (0, 2), done.stderr
        return done.stdout + done.stderr

    told = " ".join(study("http://localhost:9/v1").split())
    assert "localhost:9" in told and not (tmp_path / "study" / "hears" / "tones" / "advisory").exists()
    assert (tmp_path / "study" / "simulated" / "tones" / "advisory" / "results.json").is_file()
    with Loopback(drop_audio=True) as server:
        assert "does not hear" in " ".join(study(server.url).split())


# ----------------------------------------------------------------------------------------------- which clips are drawn


def plan(clips: list[CheckedClip], seed: int = 0, **card: Any) -> Plan:
    model = ModelCard(model="m", backend="openai", id="x", **card)
    return Plan(model, CardIndex().tasks(["advisory"]), {"advisory": ("default",)}, clips, seed)


def checked(speaker: str, sentence: int, seconds: float = 1.0, text: bool = True) -> CheckedClip:
    said = f"sentence number {sentence}" if text else None
    clip = Clip(f"c/{speaker}/{sentence}", f"{speaker}-{sentence}.wav", speaker, {}, said, f"s{sentence}")
    return CheckedClip(clip, Path(clip.file), "0", seconds)


def test_clips_are_of_different_sentences_and_speakers() -> None:
    clips = [checked(f"v{speaker}", sentence) for speaker in range(6) for sentence in range(5)]
    for seed in range(10):
        drawn = hearing_clips(plan(clips, seed))
        assert len(drawn) == 4 and len({one.sentence for one in drawn}) == 4
        assert len({one.id.split("/")[1] for one in drawn}) == 4
        assert [one.id for one in drawn] == [one.id for one in hearing_clips(plan(list(reversed(clips)), seed))]
    two = [one for one in clips if one.clip.sentence_id in ("s0", "s1")]
    assert len({one.id for one in hearing_clips(plan(two))}) == 4
    assert [one.sentence for one in hearing_clips(plan(two))].count("sentence number 0") == 2
    assert len(hearing_clips(plan(clips[:2]))) == 2


def test_clips_with_texts_and_clips_that_the_model_takes_whole_go_first() -> None:
    clips = [checked(f"v{n}", n, seconds=10.0 + 10 * n, text=n % 2 == 0) for n in range(8)]
    assert {one.id for one in hearing_clips(plan(clips, max_seconds=35.0))} == {"c/v0/0", "c/v2/2"}
    assert all(one.cut for one in hearing_clips(plan(clips, max_seconds=5.0)))
    assert not any(one.text for one in hearing_clips(plan([checked(f"v{n}", n, text=False) for n in range(5)])))


def test_words_of_a_question_are_drawn_evenly() -> None:
    question = HearingQuestion(prompt="?", answers=["1", "2", "none"])
    clips = [checked(f"v{n}", 1) for n in range(40)] + [checked(f"w{n}", 2) for n in range(9)] + [checked("x", 3)]
    drawn = hearing_clips(plan(clips, hearing_check=question))
    assert [one.sentence for one in drawn].count("sentence number 1") == 8 and len(drawn) == 16
    assert SILENCE not in {one.id for one in drawn} and tone(100).rate == 16_000
