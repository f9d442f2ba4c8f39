"""How groups were recorded, and what they say, stands in every run: in its results, on the terminal and on its page."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile
import soxr

from tests.corpora.sounds import speechlike
from vibe_harness.store.results import read_results

RUN = ("--model", "simulated", "--extractor", "rules", "--tasks", "advisory", "--tau", 1, "--permutations", 99,
       "--dimension", "gender", "--output-path", "run")  # fmt: skip


def corpus(folder: Path, one: dict[str, Any], other: dict[str, Any], speakers: int = 3, clips: int = 2) -> Path:
    """A manifest of as many women as men. one, other: how women and men are recorded, and further cells of the row."""
    rows = ["file,speaker,gender,sentence_id,text,site"]
    for gender, told in (("female", one), ("male", other)):
        how = {
            "seconds": 0.6,
            "rate": 16_000,
            "gain": 1.0,
            "through": None,
            "sentences": ("s1", "s2"),
            "site": "",
            **told,
        }
        for speaker in range(speakers):
            for take in range(clips):
                name = f"{gender}{speaker}-{take}.wav"
                pitch = (200 if gender == "female" else 110) + 7 * speaker
                wave = how["gain"] * speechlike(how["seconds"], 48_000, pitch, seed=len(rows))
                wave *= 1 + 0.1 * np.random.default_rng(len(rows)).standard_normal(
                    len(wave)
                )  # sound at all frequencies
                if how["through"]:
                    wave = soxr.resample(wave, 48_000, how["through"])
                wave = soxr.resample(wave, how["through"] or 48_000, how["rate"])
                soundfile.write(folder / name, np.clip(wave, -1, 1), how["rate"])
                sentence = how["sentences"][take % len(how["sentences"])]
                rows.append(f"{name},{gender}{speaker},{gender},{sentence},words of {sentence},{how['site']}")
    path = folder / "mine.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("one", "other", "feature"),
    [
        ({"gain": 0.03}, {"gain": 0.9}, "loudness, dBFS"),
        ({"seconds": 1.0}, {"seconds": 4.0}, "duration, s"),
        ({"rate": 8_000}, {"rate": 44_100}, "sample rate"),
        ({"rate": 16_000, "through": 8_000}, {"rate": 16_000}, "bandwidth, kHz"),
        ({"sentences": ("s1", "s2")}, {"sentences": ("s3", "s4")}, "sentence_id"),
        ({"site": "north"}, {"site": "south"}, "site"),
    ],
)
def test_each_difference_stands_in_the_results(
    quick: Any, tmp_path: Path, one: dict[str, Any], other: dict[str, Any], feature: str
) -> None:
    corpus(tmp_path, one, other)
    done = quick(*RUN, "--corpus", "mine.csv")
    assert done.returncode in (0, 1), done.stderr
    results = read_results(tmp_path / "run" / "results.json")
    found = {one.feature: one.sentence for one in results.confounds or () if one.sentence}
    assert feature in found, found
    for sentence in found.values():
        assert sentence in " ".join(done.stdout.split())
        assert sentence in results.tasks[0].warnings
    assert found[feature].startswith(f"gender groups differ in {feature.partition(',')[0]} (female ")


def test_the_same_sentences_after_a_resumed_run_and_a_rescored_one_and_none_where_all_is_alike(
    quick: Any, tmp_path: Path
) -> None:
    corpus(tmp_path, {"gain": 0.03}, {"gain": 0.9})
    quick(*RUN, "--corpus", "mine.csv")
    [task] = quick.json("score", "run", "--tau", 1)["tasks"]
    sentence = next(line for line in task["warnings"] if "groups differ in loudness" in line)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert sentence in page
    again = quick.json(*RUN, "--corpus", "mine.csv")  # nothing is decoded: the checks are kept
    assert sentence in again["tasks"][0]["warnings"]
    assert sentence.removeprefix("gender") in quick("corpus", "check", "mine.csv").stdout.replace("warning: gender", "")
    shutil.rmtree(tmp_path / "run")
    corpus(tmp_path, {}, {})
    again = quick.json(*RUN, "--corpus", "mine.csv")
    assert again["confounds"] and not any(one["sentence"] for one in again["confounds"])


def test_a_run_without_measurements_compares_what_is_said_alone(quick: Any, tmp_path: Path) -> None:
    """As one of version 0.1, whose table of clips lacks them."""
    corpus(tmp_path, {"gain": 0.03, "site": "north"}, {"gain": 0.9, "site": "south"})
    quick(*RUN, "--corpus", "mine.csv")
    table = pq.read_table(tmp_path / "run" / "clips.parquet")
    pq.write_table(table.drop_columns(["level_db", "noise_db", "bandwidth_hz"]), tmp_path / "run" / "clips.parquet")
    told = {one["feature"] for one in quick.json("score", "run", "--tau", 1)["confounds"]}
    assert "site" in told and "loudness, dBFS" not in told
