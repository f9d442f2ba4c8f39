"""Prepares a full-size CREMA-D whose audio is synthetic: how close to the speed of decoding and hashing alone?

    python benchmarks/corpora.py [--quick] [--folder FOLDER]

Builds 7,442 WAVs (16 kHz, 16 bit, 1.3 to 5 s, about 0.7 GB) below FOLDER, a temporary one by default, and prints:
preparing compared with decoding and hashing alone (both on all cores, libraries loaded before), the same with nothing
changed, and memory. Both are timed by turns, five times, or with --quick twice over 1,500 of the clips, and the
processor's time is printed beside, for machines that have other work. Exit status 1 where an aim is missed.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas  # noqa: F401  loaded by `prepare`, once, however large the corpus is
import pyarrow.parquet  # noqa: F401  likewise
import scipy.stats  # noqa: F401  likewise
import soundfile
from figures import status, tell

from vibe_harness.corpora.audio.check_files import CORES
from vibe_harness.corpora.card import load_corpus_card
from vibe_harness.corpora.importers.crema_d import EMOTIONS, SENTENCES
from vibe_harness.corpora.manifest import load_manifest
from vibe_harness.corpora.prepare.prepare import prepare

CLIPS = 7_442
RATE = 16_000


def names() -> list[str]:
    """As many names as the release has, of its form."""
    found = [f"{actor}_{s}_{e}_XX.wav" for actor in range(1001, 1092) for s in SENTENCES for e in EMOTIONS]
    found += [f"{actor}_IEO_{e}_{lv}.wav" for actor in range(1001, 1092) for e in EMOTIONS for lv in ("LO", "MD", "HI")]
    return found[:CLIPS]


def build(folder: Path, clips: int) -> None:
    """Write the corpus: syllables of noise, each clip of its own."""
    (folder / "AudioWAV").mkdir(parents=True, exist_ok=True)
    rows = [f"{actor},{20 + actor % 50},{'Male' if actor % 2 else 'Female'},Caucasian,Not Hispanic"
            for actor in range(1001, 1092)]  # fmt: skip
    table = "\n".join(["ActorID,Age,Sex,Race,Ethnicity", *rows, ""])
    (folder / "VideoDemographics.csv").write_text(table, encoding="utf-8")
    random = np.random.default_rng(0)
    noise = random.standard_normal(20 * RATE) * np.clip(np.sin(np.arange(20 * RATE) / 700), 0, None) * 3000
    for name in names()[:clips]:
        start, length = random.integers(0, 14 * RATE), int(random.uniform(1.3, 5.0) * RATE)
        soundfile.write(folder / "AudioWAV" / name, noise[start : start + length].astype(np.int16), RATE)


def decode_and_hash(path: Path) -> str:
    return hashlib.sha256(soundfile.read(path, dtype="float32")[0].data).hexdigest()


def decode_and_hash_all(paths: Sequence[Path]) -> None:
    with ThreadPoolExecutor(CORES) as pool:
        list(pool.map(decode_and_hash, paths))


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds that pass, and seconds of processor."""
    started, worked = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - worked


def memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(folder: Path, rounds: int, clips: int) -> int:
    """Exit status: 1 where an aim is missed."""
    if not (folder / "VideoDemographics.csv").is_file():
        build(folder, clips)
    paths = sorted((folder / "AudioWAV").iterdir())
    for path in paths:  # the files are read into the system's cache, for both alike
        path.read_bytes()
    card, card_path = load_corpus_card("crema-d")
    alone: list[tuple[float, float]] = []
    first: list[tuple[float, float]] = []
    again: list[tuple[float, float]] = []
    grown = 0.0
    for _ in range(rounds):  # by turns, so that other work on the machine meets both
        with tempfile.TemporaryDirectory() as output:
            alone.append(timed(lambda: decode_and_hash_all(paths)))
            before = memory_mb()
            first.append(timed(lambda out=output: prepare(card, card_path, str(folder), Path(out))))
            grown = grown or memory_mb() - before  # the peak only rises in the first round
            again.append(timed(lambda out=output: prepare(card, card_path, str(folder), Path(out))))
            loaded = timed(lambda out=output: load_manifest(Path(out) / "manifest.parquet"))
            kept = len(load_manifest(Path(output) / "manifest.parquet").clips)
    wall = [one[0] / other[0] for one, other in zip(alone, first, strict=True)]
    worked = [one[1] / other[1] for one, other in zip(alone, first, strict=True)]
    print(f"{len(paths):,} clips, {kept:,} kept, {CORES} workers, {rounds} rounds; the best of each:")
    tell("decoding and hashing alone", min(alone)[0], "s")
    share = min(alone)[0] / min(first)[0]
    each = ", ".join(f"{ratio:.0%}" for ratio in wall)
    beside = f"round by round {each}, by processor time {', '.join(f'{ratio:.0%}' for ratio in worked)}"
    tell("preparing", share, "of the speed of decoding and hashing alone", "at least 0.8", share >= 0.8, beside)
    tell("preparing, unchanged", min(again)[0], "s", "under 2", min(again)[0] < 2)
    tell("loading the manifest", loaded[0], "s")
    tell("memory over decoding and hashing alone", grown, "MB")
    return status()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the audio is built, and kept; a temporary folder by default")
    options = parser.parse_args()
    rounds, clips = (2, 1_500) if options.quick else (5, CLIPS)
    if options.folder:
        return run(options.folder, rounds, clips)
    with tempfile.TemporaryDirectory() as folder:
        return run(Path(folder), rounds, clips)


if __name__ == "__main__":
    sys.exit(main())
