"""BiasInEar's published package and this project's metrics on the same 11,200 answers, side by side.

    pip install biasinear
    python benchmarks/choice.py [--quick]

400 questions in 28 configurations. Both find accuracy, question entropy, and for each variable APES and the averaged
kappa; the package takes language without accent, which lies within it. Prints the largest difference of
the figures, and the ratio of the times (the best of three; with --quick of one). Exit status 1 where an aim is missed.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from figures import status, tell
from numpy.typing import NDArray

from vibe_harness.stats.consistency import Answers, agreement, apes, averaged_kappa, question_entropies

ACCENTS = {"en": ("American", "British", "Indian"), "zh": ("Beijing", "Northeastern"), "ko": ("Seoul", "Jeolla")}
QUESTIONS = 400
NAMES = ("language", "accent", "gender", "order")
Codes = NDArray[np.int64]


def conditions() -> list[tuple[str, ...]]:
    """Question, language, accent, gender and order of each answer."""
    return [
        (f"q{number}", language, accent, gender, order)
        for number in range(QUESTIONS)
        for language, accents in ACCENTS.items()
        for accent in accents
        for gender, order in itertools.product(("Female", "Male"), ("original", "reversed"))
    ]


def answers(rows: list[tuple[str, ...]], seed: int) -> Codes:
    """A model that is sure of some questions more than of others, and less so in Korean and in reversed order."""
    generator = np.random.default_rng(seed)
    favourite, sure = generator.integers(0, 4, QUESTIONS), generator.uniform(0.2, 1, QUESTIONS)
    number = np.array([int(row[0][1:]) for row in rows])
    moved = np.array([0.3 * (row[1] == "ko") + 0.2 * (row[4] == "reversed") for row in rows])
    kept = generator.random(len(rows)) < sure[number] - moved
    return np.where(kept, favourite[number], generator.integers(0, 4, len(rows)))


def by_package(rows: list[tuple[str, ...]], chosen: Codes, right: Codes) -> dict[str, float]:
    import biasinear

    letters, keys = (["ABCD"[code] for code in codes] for codes in (chosen, right))
    groups = {name: [row[place] for row in rows] for place, name in enumerate(NAMES, 1)}
    ids = [row[0] for row in rows]
    full: dict[str, Any] = biasinear.Evaluator(letters, keys, ids, groups).run()
    flat = {name: levels for name, levels in groups.items() if name != "accent"}
    nested: dict[str, Any] = biasinear.Evaluator(letters, keys, ids, flat).run()
    found = {"accuracy": full["accuracy"], "entropy": full["entropy"]["mean"]}
    for name in NAMES:
        source = nested if name == "language" else full
        found[f"apes {name}"], found[f"kappa {name}"] = source["apes"][name], source["fleiss_kappa"][name]
    return found


def by_arrays(codes: Codes, chosen: Codes, right: Codes) -> dict[str, float]:
    """codes: (n, 5), question and conditions as numbers."""
    question = codes[:, 0]
    found = {"accuracy": float((chosen == right).mean())}
    for place, name in enumerate(NAMES, 1):
        crossed = [other for other in (1, 2, 3, 4) if other != place and (place, other) != (1, 2)]
        item = np.ravel_multi_index(codes[:, [0, *crossed]].T, codes[:, [0, *crossed]].max(axis=0) + 1)
        given = Answers(chosen, question, codes[:, place], item, 4)
        if place == 1:
            found["entropy"] = float(np.nanmean(question_entropies(given)))
        found[f"apes {name}"] = float(np.nanmean(apes(given)))
        found[f"kappa {name}"] = float(averaged_kappa(agreement(given, modal=True))[0])
    return found


def timed(function: Callable[[], dict[str, float]], rounds: int) -> tuple[dict[str, float], float]:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        found = function()
        times.append(time.perf_counter() - start)
    return found, min(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    rounds = 1 if parser.parse_args().quick else 3
    rows = conditions()
    chosen, right = answers(rows, 1), answers(rows, 2)
    codes = np.stack([np.unique(column, return_inverse=True)[1] for column in np.array(rows).T], axis=1)
    package, slow = timed(lambda: by_package(rows, chosen, right), rounds)
    ours, fast = timed(lambda: by_arrays(codes, chosen, right), rounds)
    for name, value in package.items():
        tell(name, ours[name], "here", beside=f"{value:.6f} by the package")
    apart = max(abs(package[name] - ours[name]) for name in package)
    tell("largest difference", apart, "between the two", "under 1e-12", apart < 1e-12, f"{len(rows):,} answers")
    beside = f"package {slow:.3f} s, here {fast:.4f} s"
    tell("speed", slow / fast, "times the package's", "at least 50", slow / fast >= 50, beside)
    return status()


if __name__ == "__main__":
    sys.exit(main())
