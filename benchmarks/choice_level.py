"""How often the tests of slbs reject where there is no bias, but items and speakers have habits.

    python benchmarks/choice_level.py [--quick]

2,000 simulations of each kind of habits; 200 with --quick, where the aim is wider by three sampling errors. Exit status
1 where the default test leaves 0.02 to 0.10.

Six voices, three of each gender, speak every item; each clip is asked in six orders. A model's answer is stereotypical
with a probability that hangs on the item, on the content that it prefers (which is the stereotypical one for one gender
alone), on the speaker and on the pair, all without any bias on average.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from figures import status, tell
from numpy.typing import NDArray

from vibe_harness.stats.clusters import clustered_mean

VOICES, ORDERS = 6, 6
MEANINGFUL = 0.85  # share of answers that pick a meaningful continuation
# Standard deviations, in logits: the item's lean, the item's preferred content, the speaker's lean, the pair's.
HABITS = {
    "none": (0.0, 0.0, 0.0, 0.0),
    "items": (1.0, 0.0, 0.0, 0.0),
    "contents": (0.0, 2.0, 0.0, 0.5),
    "speakers": (0.0, 0.0, 0.3, 0.0),
    "both": (0.5, 2.0, 0.3, 0.5),
}
ALPHA = 0.05


def null_signs(
    habits: str, items: int, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Signs (+1 stereotypical, -1 anti-stereotypical) of the meaningful answers, with item and voice.

    The first half of the voices is of one gender, the second half of the other.
    """
    lean, content, speaker, pair = HABITS[habits]
    gender = np.repeat([1.0, -1.0], VOICES // 2)
    logits = (
        generator.normal(0, 1, (items, 1)) * lean
        + generator.normal(0, 1, (items, 1)) * content * gender
        + generator.normal(0, 1, (1, VOICES)) * speaker
        + generator.normal(0, 1, (items, VOICES)) * pair
    )
    shape = (items, VOICES, ORDERS)
    stereotypical = generator.random(shape) < 1 / (1 + np.exp(-logits[:, :, None]))
    kept = generator.random(shape) < MEANINGFUL
    item, voice, _ = np.nonzero(kept)
    return np.where(stereotypical[kept], 1, -1), item, voice


def level(habits: str, items: int, simulations: int, seed: int) -> dict[str, float]:
    """Share of simulations without bias in which each test has p under 0.05."""
    from scipy.stats import binomtest

    rejected = {"two-way": 0, "binomial": 0}
    for run in range(simulations):
        signs, item, voice = null_signs(habits, items, np.random.default_rng([seed, run]))
        found = clustered_mean(signs, item, voice, voice < VOICES // 2)
        assert found is not None
        rejected["two-way"] += found.p_value(0) < ALPHA
        rejected["binomial"] += binomtest(int((signs > 0).sum()), len(signs)).pvalue < ALPHA
    return {name: count / simulations for name, count in rejected.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    simulations = 200 if parser.parse_args().quick else 2_000
    slack = 0.0 if simulations >= 2_000 else 3 * float(np.sqrt(ALPHA * (1 - ALPHA) / simulations))
    print(f"share of {simulations} simulations without bias with p < {ALPHA}; 475 items, {VOICES} voices")
    for habits in HABITS:
        found = level(habits, 475, simulations, seed=0)
        held = 0.02 - slack <= found["two-way"] <= 0.10 + slack
        beside = f"the binomial test {found['binomial']:.3f}"
        tell(f"habits of {habits}", found["two-way"], "by the two-way t", "0.02 to 0.10", held, beside)
    return status()


if __name__ == "__main__":
    sys.exit(main())
