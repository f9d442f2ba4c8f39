"""A real network with a planted shift, measured through real engines: is what the harness reads what is true?

    python -m benchmarks.planted                          # needs torch and transformers: see .ci/engines
    python -m benchmarks.planted --quick                  # the demo corpus alone, two strengths: under a minute
    python -m benchmarks.planted --engine planted-vllm    # with vLLM; both engines' greedy answers too
    python -m benchmarks.planted --corpora FOLDER         # RAVDESS and the archive's recordings too, where they are

For each corpus, task and strength: the true nTVD by gender from the model's own probabilities, what the harness
measures, its 95 % interval, and how often the test rejects where speakers are relabelled at random (stored answers, no
new ones). Then the same for the model whose voice directions are removed. Exit status 1 where an aim is missed.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import vibe_harness
from benchmarks.figures import status, tell
from models.planted.ablate import ablate
from models.planted.network import BEFORE, TURN
from models.planted.truth import Checkpoint, true_ntvd
from vibe_harness.cards.loading import CardIndex
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.library import library_root
from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.ntvd import ntvd
from vibe_harness.records import Waveform
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.store.run_tables import read_frame

TASKS = ("story", "advisory")
STRENGTHS = (0, 10, 20, 40)
CHECKPOINT = library_root() / "models" / "planted" / "checkpoint"
TAU, WINDOW_S, RATE = 10, 30, 16_000
RELABELLINGS, PERMUTATIONS = 200, 499
LEFT = 4  # of a planted 40, where the voice is removed
LEVEL = (0.0, 0.09)  # of 200 relabellings at 0.05: three standard errors


@dataclass(frozen=True, eq=False)
class Corpus:
    """A manifest, and the clips in it as the network is given them."""

    name: str
    manifest: Path
    groups: tuple[str, ...]  # of each clip
    texts: tuple[str, ...]
    waves: tuple[Waveform, ...]


def corpora(shared: Path | None, folder: Path) -> list[Corpus]:
    """The demo corpus; RAVDESS and the archive's recordings where they are below `shared`."""
    demo = library_root() / "corpora" / "demo" / "manifest.csv"
    found = [_corpus("demo", demo)]
    if shared is None:
        return found
    if (shared / "ravdess" / "manifest.csv").is_file():
        found.append(_corpus("RAVDESS", shared / "ravdess" / "manifest.csv"))
    recordings = shared / "saa" / "recordings" / "recordings"
    if recordings.is_dir():
        found.append(_corpus("archive", _archive_manifest(shared / "saa", recordings, folder)))
    return found


def _archive_manifest(archive: Path, recordings: Path, folder: Path) -> Path:
    """A manifest of the recordings that are there, one a speaker."""
    with (archive / "speakers_all.csv").open(encoding="utf-8", newline="") as file:
        sexes = {row["filename"]: row["sex"] for row in csv.DictReader(file)}
    copies = shutil.copytree(recordings, folder / "recordings")  # a manifest's files lie below its folder
    rows = [(f"recordings/{path.name}", path.stem, sexes[path.stem]) for path in sorted(copies.glob("*.mp3"))]
    manifest = folder / "archive.csv"
    with manifest.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("file", "speaker", "gender"), *rows])
    return manifest


def _corpus(name: str, manifest: Path) -> Corpus:
    with manifest.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    waves = []
    for row in rows:
        wave = read_audio(manifest.parent / row["file"], RATE)
        waves.append(Waveform(wave.samples[: WINDOW_S * RATE], wave.rate))
    return Corpus(
        name, manifest, tuple(row["gender"] for row in rows), tuple(row.get("text", "") for row in rows), tuple(waves)
    )


def layout(strength: int) -> Mapping[str, Any]:
    """The card's layout, with another strength."""
    return {"before": BEFORE.format(strength=strength) + "<|AUDIO|><|audio_eos|>", "after": "\n", "end": TURN}


def measured(model: str, corpus: Corpus, args: Mapping[str, Any], folder: Path) -> Any:
    """The results of a run of the harness. Words of people, whom it was not trained on, it names too poorly to pass the
    hearing check."""
    [results] = vibe_harness.evaluate(
        model, TASKS, corpus.manifest, dimensions=["gender"], extractor="rules", model_args=args, output_path=folder,
        hearing_check=corpus.name == "demo",
    )  # fmt: skip
    return results


def compare(model: str, checkpoint: Checkpoint, corpus: Corpus, strength: int, args: Mapping[str, Any], what: str,
            folder: Path) -> None:  # fmt: skip
    """Print what is true and what is measured, for both tasks."""
    results = measured(model, corpus, {**args, "layout": layout(strength)}, folder)
    prompts = {task.name: task.prompt("default", None) for task in CardIndex().tasks(TASKS)}
    vectors = [checkpoint.vectors(wave) for wave in corpus.waves]
    for result in results.tasks:
        expected = checkpoint.expected(vectors, result.task, prompts[result.task], strength)
        scores = {score.attribute: score for score in result.scores if score.metric == "ntvd"}
        score = scores.pop(None)
        kept = {str(name): set().union(*one.detail["distribution"].values())
                for name, one in scores.items() if one.value is not None}  # fmt: skip
        truth = true_ntvd(expected, corpus.groups, kept)
        low, high = score.interval or (np.nan, np.nan)
        tell(
            f"{what}{corpus.name}, {result.task}, strength {strength}: nTVD", score.value, f"({low:.1f} to {high:.1f})",
            f"the interval holds the true {truth.mean:.1f}", low <= truth.mean <= high,
            f"drawing leaves {truth.error:.2f} of the truth open; bracket {score.at_least:.1f} to {score.at_most:.1f}; "
            f"p {score.p_value:.4f}; refused {expected.refused.mean():.3f}; outside {expected.outside:.4f}; "
            f"hearing check {results.hearing_check}",
        )  # fmt: skip
        if what:
            tell(
                f"{what}{corpus.name}, {result.task}: true nTVD",
                truth.mean,
                "of 100",
                f"at most {LEFT}",
                truth.mean <= LEFT,
            )


def level(corpus: Corpus, folder: Path, relabellings: int) -> None:
    """How often the test rejects once speakers are given to the groups at random: stored answers, true null."""
    for task in TASKS:
        frame = read_frame(RunFolder(folder).observations, task, "default", "gender")
        speakers = frame["speaker"].astype(str)
        groups = frame.assign(speaker=speakers).groupby("speaker")["group"].first().astype(str)
        rng = np.random.default_rng(0)
        rejected = 0
        for number in range(relabellings):
            dealt = dict(zip(groups.index, rng.permutation(groups.to_numpy()), strict=True))
            changed = frame.assign(group=speakers.map(dealt), group_gender=speakers.map(dealt))
            settings = Settings(TAU, PERMUTATIONS, seed=number)
            [mean] = [score for score in ntvd(changed, settings) if score.attribute is None]
            rejected += mean.p_value is not None and mean.p_value <= 0.05
        share = rejected / relabellings
        tell(f"{corpus.name}, {task}: relabelled at random", share, "rejected", f"{LEVEL[0]} to {LEVEL[1]}",
             LEVEL[0] <= share <= LEVEL[1], f"{relabellings} relabellings")  # fmt: skip


def words(checkpoint: Checkpoint, corpus: Corpus, what: str) -> None:
    """How many of the words that are said it names."""
    said = checkpoint.words([checkpoint.vectors(wave) for wave in corpus.waves])
    known = [(word, text) for word, text in zip(said, corpus.texts, strict=True) if text]
    if known:
        right = sum(word.casefold() in text.casefold() for word, text in known)
        tell(
            f"{what}{corpus.name}: words named",
            100 * right / len(known),
            "% of clips",
            beside=f"{right} of {len(known)}",
        )


def heard(checkpoint: Checkpoint, corpus: Corpus) -> None:
    """How many voices of each group it takes for high."""
    means = np.array([checkpoint.vectors(wave).mean(dim=0).numpy() for wave in corpus.waves])
    for group in sorted(set(corpus.groups)):
        of = means[[one == group for one in corpus.groups]]
        tell(f"{corpus.name}, {group}: pitch heard as high", int((of[:, 0] > 0).sum()), f"of {len(of)} clips",
             beside=f"timbre as bright: {int((of[:, 1] > 0).sum())}")  # fmt: skip


def engines_agree(corpus: Corpus, folder: Path) -> None:
    """Greedy answers of transformers and vLLM, one by one."""
    answers: list[dict[tuple[str, str], str]] = []
    for model in ("planted", "planted-vllm"):
        measured(model, corpus, {"temperature": 0}, folder / model)
        requests = {}
        lines = (folder / model / "responses.jsonl").read_text(encoding="utf-8").splitlines()
        for row in map(json.loads, lines):
            requests[row["task"], row["clip"]] = row["text"]
        answers.append(requests)
    same = sum(answers[0][key] == answers[1][key] for key in answers[0])
    tell(f"{corpus.name}: greedy answers alike", same, f"of {len(answers[0])}", "all", same == len(answers[0]))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--engine", choices=["planted", "planted-vllm"], default="planted")
    parser.add_argument("--corpora", type=Path)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkpoint = Checkpoint(CHECKPOINT)
        found = corpora(options.corpora, folder)
        for corpus in found:
            heard(checkpoint, corpus)
            words(checkpoint, corpus, "")
            for strength in (40,) if options.quick else STRENGTHS:
                run = folder / f"{corpus.name}-{strength}"
                compare(options.engine, checkpoint, corpus, strength, {}, "", run)
            if not options.quick:
                level(corpus, run, RELABELLINGS)
        if options.engine == "planted-vllm":
            engines_agree(found[0], folder)
        ablate(checkpoint, folder / "ablated")
        checkpoint = Checkpoint(folder / "ablated")
        without = {"id": str(folder / "ablated"), "revision": None}
        for corpus in found:
            words(checkpoint, corpus, "voice removed, ")
            run = folder / f"{corpus.name}-ablated"
            compare(options.engine, checkpoint, corpus, 40, without, "voice removed, ", run)
    return status()


if __name__ == "__main__":
    sys.exit(main())
