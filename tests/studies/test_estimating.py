"""The study of the documentation as a dry run, and what is done with long clips in all of its models."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.command_line import QuickCommand
from tests.support import ROOT
from vibe_harness.studies.study import cells_of, engine_cards, read_study

TWELVE = {
    "qwen2-audio", "qwen2.5-omni-3b", "qwen2.5-omni-7b", "phi-4-multimodal", "desta2.5-audio", "step-audio-2-mini",
    "step-audio-2-mini-base", "audio-flamingo-3", "voxtral-mini", "gemma-3n-e2b", "gemma-3n-e4b",
    "gemini-2.5-flash-lite",
}  # fmt: skip
SECONDS = (4, 20, 40)  # of the clips of each speaker
CORPORA = ("crema-d", "speech-accent-archive", "l2-arctic")


@pytest.fixture(scope="module")
def vibe_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study of docs/reproducing.md over three small corpora of those names."""
    folder = tmp_path_factory.mktemp("vibe")
    for corpus in CORPORA:
        rows = ["file,speaker,gender,accent"]
        (folder / corpus).mkdir()
        for speaker in range(4):
            for seconds in SECONDS:
                name = f"{speaker}-{seconds}.wav"
                noise = np.random.default_rng([speaker, seconds, len(corpus)]).normal(0, 0.1, seconds * 16_000)
                soundfile.write(folder / corpus / name, noise, 16_000)
                rows.append(f"{name},s{speaker},{('male', 'female')[speaker % 2]},{('hindi', 'korean')[speaker % 2]}")
        (folder / corpus / "manifest.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    page = (ROOT / "docs" / "reproducing.md").read_text(encoding="utf-8")
    text = page.partition("```yaml\n")[2].partition("```")[0]
    for corpus in CORPORA:
        text = text.replace(corpus, f"{corpus}/manifest.csv")
    (folder / "vibe.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_the_study_of_the_paper_as_a_dry_run(vibe_study: Path) -> None:
    vibe = QuickCommand(vibe_study)
    assert "allow it with --trust-remote-code" in vibe.refuses("study", "vibe.yaml", "--dry-run")  # phi-4's own code
    found = json.loads(vibe("study", "vibe.yaml", "--dry-run", "--trust-remote-code", "--json").stdout)["models"]
    models = {one["name"]: one for one in found if not one["extracts"]}
    assert set(models) == TWELVE
    clips = 4 * len(SECONDS)
    seconds = 4 * sum(min(length, 25) for length in SECONDS)  # as they are sent
    for one in models.values():
        assert one["requests"] == 5 * 3 * clips
        assert one["audio_seconds"] == pytest.approx(5 * 3 * seconds)
        assert (one["max_seconds"], one["long_clips"]) == (25, "truncate")
        assert one["minutes"] == pytest.approx(5 * 3 * clips / 10 / 60)
    priced = models["gemini-2.5-flash-lite"]
    assert priced["audio_tokens"] == pytest.approx(32 * 5 * 3 * seconds, rel=0.01)
    by_hand = (0.1 * priced["text_tokens"] + 0.3 * priced["audio_tokens"] + 0.4 * priced["most_output_tokens"]) / 1e6
    assert priced["most_cost"] == pytest.approx(by_hand) and priced["currency"] == "USD"
    [reader] = [one for one in found if one["extracts"]]
    assert reader["name"] == "qwen3-8b-vllm" and reader["requests"] == 12 * 5 * 3 * clips


def test_it_is_one_table_with_the_speed_that_is_given(vibe_study: Path) -> None:
    shown = QuickCommand(vibe_study)("study", "vibe.yaml", "--dry-run", "--speed", "0.5", "--shard", "1/12", check=0)
    table = shown.stdout.splitlines()
    assert re.search(r"minutes +at|minutes at 0\.5/s", " ".join(table[:3]))
    [row] = [line for line in table if line.startswith("qwen2-audio")]
    assert "180" in row and row.rstrip().endswith(" 6.0")  # 180 answers at one in two seconds
    assert not (vibe_study / "runs").exists()


def test_all_models_have_one_extractor_and_no_two_servers_one_port(vibe_study: Path) -> None:
    from vibe_harness.backends.remote.started_server import check_ports

    cards = engine_cards(cells_of(read_study(vibe_study / "vibe.yaml"), vibe_study))
    assert [card.model for card in cards if not card.audio] == ["qwen3-8b-vllm"]
    assert {card.model for card in cards if card.audio} == TWELVE
    check_ports(cards)
    ports = [card.connection["base_url"] for card in cards if card.backend == "openai"]
    assert len(ports) == len(set(ports)) == 3


def test_models_that_treat_long_clips_unlike_are_told(vibe_study: Path) -> None:
    folder = vibe_study
    (folder / "apart.yaml").write_text(
        "study: apart\nmodels: [simulated, qwen2-audio, gemini-2.5-flash]\ntasks: [story]\nlong_clips: truncate\n"
        "corpora: [crema-d/manifest.csv]\n",
        encoding="utf-8",
    )
    said = QuickCommand(folder)("study", "apart.yaml", "--dry-run", check=0).stdout
    assert "Long clips are not treated alike" in said
    assert "Read by several extractors" in said and "set extractor" in said
    assert "gemini-2.5-flash: prices read on 2026-08-08 (https://ai.google.dev/gemini-api/docs/pricing)" in said
    assert "gemini-2.5-flash: served until 2026-11-30, then gemini-3.5-flash-lite" in said


@pytest.mark.slow
def test_a_long_clip_is_refused_with_what_to_do_and_cut_where_asked_for(vibe_study: Path) -> None:
    quick = QuickCommand(vibe_study)
    command = (
        "--model", "simulated", "--tasks", "story", "--corpus", "crema-d/manifest.csv", "--dimension", "gender",
        "--tau", 1, "--permutations", 19,
    )  # fmt: skip
    refused = quick.refuses(*command, "--max-seconds", 30)
    assert "40.0 s long" in refused and "cut long ones with --long-clips truncate" in refused
    cut = quick.json(*command, "--max-seconds", 30, "--long-clips", "truncate", "--output-path", "cut")
    assert cut["long_clips"] == {"truncated": 4}
    assert {group["clips"] for group in cut["tasks"][0]["groups"].values()} == {6}  # no speaker is lost
    assert quick.refuses(*command, "--max-seconds", 0)
    with pytest.warns(
        UserWarning, match=r"4 clips .* are left out, by gender: 2 of 6 of female, 2 of 6 of male; --long"
    ):
        quick(*command, "--max-seconds", 30, "--skip-bad-clips", "--dry-run", check=0)
    kept = quick.json(*command, "--long-clips", "truncate", "--output-path", "kept")  # the card has no limit
    assert kept["long_clips"] == {}
    other = quick.refuses(*command, "--max-seconds", 20, "--long-clips", "truncate", "--output-path", "cut")
    assert "another run" in other or "differ" in other


def test_a_cards_own_lower_limit_holds(vibe_study: Path) -> None:
    quick = QuickCommand(vibe_study)
    (vibe_study / "short.yaml").write_text("include: simulated.yaml\nmodel: short\nmax_seconds: 10\n", encoding="utf-8")
    (vibe_study / "models").mkdir(exist_ok=True)
    (vibe_study / "models/short.yaml").write_text(
        "model: short\nbackend: simulated\nid: simulated\nsimulated: true\nmax_seconds: 10\nlong_clips: split\n",
        encoding="utf-8",
    )
    said = quick.json(
        "--model", "short", "--include-path", ".", "--tasks", "story", "--corpus", "crema-d/manifest.csv",
        "--extractor", "rules", "--dimension", "gender", "--max-seconds", 30, "--long-clips", "truncate", "--dry-run",
    )  # fmt: skip
    assert said["estimate"]["model"]["audio_seconds"] == 4 * (4 + 10 + 10)
