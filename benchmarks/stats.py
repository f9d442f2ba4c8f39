"""The permutation engine beside a plain NumPy loop and scipy.stats.permutation_test, in one process.

    python benchmarks/stats.py            10,000 permutations, and the large leaderboard
    python benchmarks/stats.py --quick    fewer permutations, smaller leaderboard, under a minute

One thread and CPU seconds, so that other work on the machine does not count. Loop and scipy are timed on some of their
permutations and scaled up, which is exact for a loop. Prints `name: value unit, aim ...` lines; exit status 1 where an
aim is missed. Not called statistics.py: the benchmarks beside it could then no longer import Python's own module of
that name, as overhead.py does.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"  # read when numpy is imported

import numpy as np  # noqa: E402
from figures import status, tell  # noqa: E402
from scipy import stats  # noqa: E402

from vibe_harness.stats.assignments import Design  # noqa: E402
from vibe_harness.stats.batched_ntvd import BatchedNtvd  # noqa: E402
from vibe_harness.stats.bracket import bracket  # noqa: E402
from vibe_harness.stats.maximum import value_tests  # noqa: E402
from vibe_harness.stats.permutation import permutation_test, permutation_tests  # noqa: E402
from vibe_harness.stats.simulation import zipf  # noqa: E402
from vibe_harness.stats.tables import Table  # noqa: E402
from vibe_harness.stats.values import contributions  # noqa: E402

ATTRIBUTES, VALUES = 19, 20


@dataclass(frozen=True)
class Corpus:
    name: str
    sizes: tuple[int, ...]
    utterances: int


CORPORA = (
    Corpus("CREMA-D", (48, 43), 7_442),
    Corpus("L2-ARCTIC", (4,) * 6, 9_600),
    Corpus("archive", (150, 80, 60, 50, 40, 26), 406),
)


def seconds(function: Callable[[], object], repeats: int = 1) -> float:
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return float(best)


class Data:
    """Single-valued answers of every utterance to every attribute, and their tables by speaker."""

    def __init__(self, corpus: Corpus) -> None:
        rng = np.random.default_rng(0)
        speakers = sum(corpus.sizes)
        self.groups = np.repeat(np.arange(len(corpus.sizes)), corpus.sizes)
        self.speaker = np.arange(corpus.utterances) % speakers
        self.answers = rng.choice(VALUES, p=zipf(VALUES), size=(ATTRIBUTES, corpus.utterances))
        self.rows = [np.eye(VALUES, dtype=np.int64)[answers] for answers in self.answers]
        self.tables = [np.zeros((speakers, VALUES), dtype=np.int64) for _ in self.rows]
        for table, rows in zip(self.tables, self.rows, strict=True):
            np.add.at(table, self.speaker, rows)

    def squares(self) -> list[np.ndarray]:
        """For each attribute the squared residuals (S,) of the speakers from the pooled shares."""
        shares = [table.sum(axis=0) / table.sum() for table in self.tables]
        return [
            ((table - table.sum(axis=1, keepdims=True) * share) ** 2).sum(axis=1)
            for table, share in zip(self.tables, shares, strict=True)
        ]

    def studentised(self, groups: np.ndarray, squares: list[np.ndarray]) -> float:
        """Mean of the attributes' nTVD, each over its noise, with a group (S,) for each speaker."""
        count, total = int(self.groups.max()) + 1, 0.0
        utterances = groups[self.speaker]
        for answers, squared in zip(self.answers, squares, strict=True):
            counts = np.bincount(utterances * VALUES + answers, minlength=count * VALUES).reshape(count, VALUES)
            sizes = counts.sum(axis=1)
            shares = counts / sizes[:, None]
            noise = np.sqrt((np.bincount(groups, squared, count) / sizes**2).sum())
            total += np.abs(shares - shares.mean(axis=0)).sum() * 50 / (count - 1) / noise
        return total / ATTRIBUTES

    def score(self, groups: np.ndarray) -> float:
        """Mean nTVD with a group (N,) for each utterance, as one would write it down."""
        count, total = int(self.groups.max()) + 1, 0.0
        for answers in self.answers:
            counts = np.bincount(groups * VALUES + answers, minlength=count * VALUES).reshape(count, VALUES)
            shares = counts / counts.sum(axis=1, keepdims=True)
            total += np.abs(shares - shares.mean(axis=0)).sum() * 50 / (count - 1)
        return total / ATTRIBUTES

    def loop(self, permutations: int, speakers: bool) -> None:
        """The default test of speakers, or the published one of utterances."""
        rng = np.random.default_rng(1)
        groups = self.groups if speakers else self.groups[self.speaker]
        squares = self.squares()
        for _ in range(permutations):
            drawn = rng.permutation(groups)
            self.studentised(drawn, squares) if speakers else self.score(drawn)

    def scipy(self, permutations: int) -> None:
        squares = self.squares()
        units = [np.flatnonzero(self.groups == group) for group in range(int(self.groups.max()) + 1)]

        def statistic(*members: np.ndarray) -> float:
            groups = np.empty(self.groups.size, dtype=np.int64)
            for group, chosen in enumerate(members):
                groups[chosen.astype(np.int64)] = group
            return self.studentised(groups, squares)

        stats.permutation_test(
            units, statistic, n_resamples=permutations, alternative="greater", rng=2, vectorized=False
        )


def machine_limit(groups: int, units: int, columns: int, permutations: int) -> float:
    """Seconds the machine needs for the matrix product and for one pass of writing and reading its result."""
    block = 256
    left = np.ones((block * (groups - 1), units), dtype=np.float32)
    right = np.ones((units, columns), dtype=np.float32)
    product = np.empty((block * groups, columns))
    multiply = seconds(lambda: left @ right, 20)
    memory = seconds(lambda: np.abs(product, out=product).sum(), 20)
    return (multiply + memory) * permutations / block


def product_time(rows: list[np.ndarray], groups: np.ndarray, permutations: int) -> float:
    """Seconds that the products of the published test alone take, with several counts to a number as it has them."""
    design = Design.of(groups)
    tables = [Table.of(table, groups.size) for table in rows]
    portions = [portion for _, portion in BatchedNtvd(tables, design.group_count, design.block)._portions]
    taken = 0.0
    for portion in portions:
        members = np.ones((groups.size, (design.group_count - 1) * design.block), dtype=portion.matrix.dtype)
        taken += seconds(lambda matrix=portion.matrix, right=members: matrix @ right, 3)
    return taken * permutations / design.block


def corpus_rows(corpus: Corpus, permutations: int, timed: int) -> None:
    data = Data(corpus)
    value = permutation_test(data.tables, data.groups, permutations=1).mean.value
    assert value is not None
    assert abs(value - data.score(data.groups[data.speaker])) < 1e-9
    ours = seconds(lambda: permutation_test(data.tables, data.groups, permutations=permutations), 3)
    loop = seconds(lambda: data.loop(timed, speakers=True)) * permutations / timed
    scipy = seconds(lambda: data.scipy(timed)) * permutations / timed
    limit = machine_limit(len(corpus.sizes), data.groups.size, ATTRIBUTES * (VALUES + 1), permutations)
    name, aim = f"{corpus.name} speakers", 50 if corpus.utterances > data.groups.size else 10
    tell(f"{name}, {permutations:,} permutations", ours, "s")
    tell(f"{name}, times faster than a NumPy loop", loop / ours, "x", f"at least {aim}", loop / ours >= aim)
    tell(f"{name}, times faster than scipy", scipy / ours, "x")
    tell(f"{name}, times the machine's limit", ours / limit, "x")
    groups = data.groups[data.speaker]
    utterances = seconds(lambda: permutation_test(data.rows, groups, permutations=permutations, studentised=False))
    product = product_time(data.rows, groups, permutations)
    loop = seconds(lambda: data.loop(timed, speakers=False)) * permutations / timed
    name = f"{corpus.name} utterances"
    tell(f"{name}, {permutations:,} permutations", utterances, "s")
    tell(f"{name}, times faster than a NumPy loop", loop / utterances, "x")
    tell(f"{name}, times its product", utterances / product, "x", "at most 2", utterances <= 2 * product)
    halves(data, f"{corpus.name} speakers of unlike clips", permutations)


def halves(data: Data, name: str, permutations: int) -> None:
    """The residual test: every other speaker has a third of its answers."""
    tables = [np.where(np.arange(len(table))[:, None] % 2, table, table // 3) for table in data.tables]
    taken = seconds(lambda: permutation_test(tables, data.groups, permutations=permutations))
    tell(f"{name}, {permutations:,} permutations", taken, "s")


def memory() -> float:
    """Largest resident memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def leaderboard(models: int, permutations: int) -> None:
    """models x 1,200 speakers x 100,000 utterances, 19 attributes each."""
    rng = np.random.default_rng(3)
    groups = np.arange(1_200) % 2
    tasks = [
        [rng.multinomial(83, zipf(VALUES), size=groups.size).astype(np.int16) for _ in range(ATTRIBUTES)]
        for _ in range(models)
    ]
    taken = seconds(lambda: permutation_tests(tasks, groups, permutations=permutations))
    tell(
        f"{models} models x 1,200 speakers, {permutations:,} permutations", taken / 60, "min", "at most 5", taken <= 300
    )
    tell("memory at the end", memory(), "GB", "under 2", memory() < 2)


def many_groups(permutations: int, aim: bool) -> None:
    """What a score takes of 20,000 clips of 10,000 speakers in 200 groups, one attribute."""
    groups = np.arange(10_000) % 200
    tables = [np.random.default_rng(4).multinomial(2, zipf(VALUES), size=groups.size)]

    def scored() -> None:
        permutation_test(tables, groups, permutations=permutations)
        value_tests(tables, groups, permutations=permutations)
        bracket(tables, groups)
        contributions(tables[0], groups)

    taken = seconds(scored)
    name = f"10,000 speakers in 200 groups, {permutations:,} permutations"
    tell(name, taken, "s", *(("at most 60", taken <= 60) if aim else ()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    for corpus in CORPORA:
        corpus_rows(corpus, 2_000 if quick else 10_000, 20 if quick else 200)
    tell("memory after the corpora", memory(), "GB", "under 1", memory() < 1)
    many_groups(500 if quick else 10_000, aim=not quick)
    leaderboard(10 if quick else 100, 1_000 if quick else 10_000)
    return status()


if __name__ == "__main__":
    sys.exit(main())
