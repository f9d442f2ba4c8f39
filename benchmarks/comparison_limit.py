"""How often could any test find a change of two runs from 0 to 20, and hold 0.05 under every equal truth?

    python benchmarks/comparison_limit.py            4,000 simulations a cell
    python benchmarks/comparison_limit.py --quick    1,000

No test that rejects at most a share alpha of runs of equal truth finds a mixture of changes more often than the
likelihood-ratio test of that mixture against any mixture of equal truths (Neyman and Pearson; Cai and Low 2011 bound
the estimation of sums of absolute values in this way). This program works out that test for pairs of mixtures, and
prints the smallest power that it found: an upper limit of what can be had, which other mixtures might lower. The test
is told the noise, the habits and both mixtures, which no real test is.

The model: shares of G groups and 20 values (1/rank) with independent normal errors, of the variance that speakers with
habits give; the shifts of a group need not sum to 0. Changes: no shift before; after, every value belongs to a group
drawn at random that turns to it. Equal truths: before, every value goes up in half of the groups and down in the others
by a share of itself, drawn at random (the shift of its size that shows least); after, as for the changes, but more of
it on one half of the values than on the other.
"""

from __future__ import annotations

import argparse
import itertools
import sys

import numpy as np
from figures import status, tell

from vibe_harness.stats.simulation import zipf

VALUES = 20
HALVES = (([0], [1, 2, 3]), ([4, 5], [6, 7, 8]), ([9, 10], [11, 12, 13]), ([14, 15, 16], [17, 18, 19]))
"""Values in blocks of two sides of nearly equal shares, so that either side may carry the shift."""
CHANGE = 20
DESIGNS = (
    ("12 v 12, 4 answers", (12, 12), 4, 0.1, 0.1),
    ("12 v 12, 82 answers", (12, 12), 82, 0.1, 0.1),
    ("CREMA-D gender", (48, 43), 82, 0.1, 0.1),
    ("CREMA-D gender", (48, 43), 82, 0.1, 0.3),
    ("L2-ARCTIC accent", (4,) * 6, 400, 0.1, 0.1),
    ("L2-ARCTIC accent", (4,) * 6, 400, 0.1, 0.3),
)


class Model:
    """Runs of one design. Arrays of shares and errors are (R, V, G)."""

    def __init__(self, sizes: tuple[int, ...], answers: int, habits: tuple[float, float], runs: int) -> None:
        self.rng = np.random.default_rng(0)
        self.runs, self.groups = runs, len(sizes)
        self.base = zipf(VALUES)
        variances = [(habit + (1 - habit) / answers) / np.array(sizes) for habit in habits]
        self.errors = [np.sqrt(self.base[:, None] * variance) for variance in variances]

    def turned(self, truth: float) -> np.ndarray:
        """Each value's shift (G, V, G) by the group that turns to it."""
        own = np.eye(self.groups) * self.groups - 1
        return truth / 100 * self.base[None, :, None] * own[:, None, :]

    def dense(self, truth: float) -> np.ndarray:
        """Each value's shift by the half of the groups in which it goes up."""
        signs = np.array([one for one in itertools.product((-1, 1), repeat=self.groups) if sum(one) == 0])
        size = truth * (self.groups - 1) / (50 * self.groups)
        return size * self.base[None, :, None] * signs[:, None, :]

    def drawn(self, shifts: np.ndarray, run: int, factors: np.ndarray | float = 1.0) -> np.ndarray:
        """Shares that are seen: one of the shifts (K, V, G) for each value, times factors (R, V), with errors."""
        chosen = shifts[self.rng.integers(len(shifts), size=(self.runs, VALUES)), np.arange(VALUES)]
        times = np.broadcast_to(factors, (self.runs, VALUES))[..., None]
        return chosen * times + self.errors[run] * self.rng.standard_normal((self.runs, VALUES, self.groups))

    def evidence(self, seen: np.ndarray, shifts: np.ndarray, run: int) -> np.ndarray:
        """Log likelihood ratio (R, V) of a value's shift being one of these at random, to there being none."""
        error = self.errors[run]
        parts = np.einsum("rvg,kvg->rvk", seen / error**2, shifts) - ((shifts / error) ** 2).sum(axis=2).T / 2
        return np.logaddexp.reduce(parts, axis=2) - np.log(len(shifts))

    def uneven(self, truth: float, least: float) -> np.ndarray:
        """Shares seen after under an equal truth, `least` times the shift on one half, the rest on the other."""
        factors = np.empty((self.runs, VALUES))
        for sides in HALVES:
            first = self.rng.random(self.runs) < 0.5
            for side, more in zip(sides, (first, ~first), strict=True):
                factors[:, side] = np.where(more, 2 - least, least)[:, None]
        return self.drawn(self.turned(truth), 1, factors)

    def uneven_evidence(self, seen: np.ndarray, truth: float, least: float) -> np.ndarray:
        high, low = (self.evidence(seen, self.turned(truth * factor), 1) for factor in (2 - least, least))
        total = np.zeros(len(seen))
        for one, other in HALVES:
            sides = [
                more.sum(axis=1) + less.sum(axis=1)
                for more, less in ((high[:, one], low[:, other]), (high[:, other], low[:, one]))
            ]
            total += np.logaddexp(*sides) - np.log(2)
        return total

    def powers(self, truth: float, least: float) -> tuple[float, float]:
        """Power of the likelihood-ratio test against one mixture of equal truths, at 0.025 and at 0.05."""

        def ratio(before: np.ndarray, after: np.ndarray) -> np.ndarray:
            changed = self.evidence(after, self.turned(CHANGE), 1).sum(axis=1)
            equal = self.uneven_evidence(after, truth, least) + self.evidence(before, self.dense(truth), 0).sum(axis=1)
            return changed - equal

        equal = ratio(self.drawn(self.dense(truth), 0), self.uneven(truth, least))
        changed = ratio(self.drawn(self.dense(0), 0), self.drawn(self.turned(CHANGE), 1))
        low, high = (float((changed > np.quantile(equal, 1 - alpha)).mean()) for alpha in (0.025, 0.05))
        return low, high


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    runs = 1_000 if parser.parse_args().quick else 4_000
    for name, sizes, answers, before, after in DESIGNS:
        model = Model(sizes, answers, (before, after), runs)
        found = [
            (model.powers(truth, least), truth, least)
            for truth in (8, 10, 12, 14, 16)
            for least in (1.0, 0.5, 0.2, 0.0)
        ]
        (low, high), truth, least = min(found)
        beside = f"at 0.05 in one direction {high:.2g}; equal truths of {truth}, {least:g} of it on one half"
        tell(f"limit, {name}, habits {before}, {after}", low, f"of changes of {CHANGE} found at most", beside=beside)
    return status()


if __name__ == "__main__":
    sys.exit(main())
