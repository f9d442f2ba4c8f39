"""Do the tests hold their level, and the intervals their coverage, in the designs of the three corpora?

    python benchmarks/calibration.py                 2,000 simulations a cell
    python benchmarks/calibration.py --quick         20 a cell, under a minute: only gross faults show
    python benchmarks/calibration.py --part interval one of: level, designs, strata, balance, interval, comparison
    python benchmarks/calibration.py --only "L2-ARCTIC accent, habit 0.1"   the cells whose name holds these words

Prints a line for each cell, and at the end whether every cell meets its aim; exit status 1 where one does not. The aims
are those of the full form; with fewer simulations each is widened by the sampling error of a proportion.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from figures import missed, status, tell
from level_designs import FURTHER, TABLE

from vibe_harness.metrics.balance import ALPHA, LIMIT
from vibe_harness.stats.bracket import bracket
from vibe_harness.stats.comparison import compare
from vibe_harness.stats.ntvd import kept_values, ntvd, shift
from vibe_harness.stats.permutation import permutation_tests
from vibe_harness.stats.simulation import Pattern, answers, largest_shift, shifted, zipf

TAU = 10
PERMUTATIONS = 999
BATCH = 50
"""Simulations that share their draws; many batches, so that what the draws have in common averages out."""
HABITS = (0.0, 0.01, 0.1, 0.3)


@dataclass(frozen=True)
class Corpus:
    name: str
    sizes: tuple[int, ...]  # speakers a group
    answers: int  # answers a speaker
    values: int

    @property
    def groups(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def habits(self) -> tuple[float, ...]:
        return HABITS if self.answers > 1 else HABITS[:1]  # one answer a speaker shows no habit


CORPORA = (
    Corpus("CREMA-D gender", (48, 43), 82, 20),
    Corpus("L2-ARCTIC accent", (4,) * 6, 400, 20),
    Corpus("archive accent", (150, 80, 60, 50, 40, 26), 1, 20),
    Corpus("archive gender", (203, 203), 1, 20),
)
YES_OR_NO = Corpus("CREMA-D yes or no", (48, 43), 82, 2)
"""One attribute of two values, as that of refusing: the fewest differences to go by."""


def tables(corpus: Corpus, shares: np.ndarray, habit: float, report: Report, part: int) -> Iterator[np.ndarray]:
    """Tables (S, V) of simulated runs, whole: not yet filtered."""
    rng = np.random.default_rng([part, report.runs, report.seed])
    for _ in range(report.runs):
        yield answers(rng, shares, corpus.groups, corpus.answers, habit)


def rejected(
    runs: Sequence[np.ndarray | list[np.ndarray]], groups: np.ndarray, strata: np.ndarray | None = None
) -> np.ndarray:
    """Whether each simulated run's test gives p <= 0.05."""
    p_values: list[float | None] = []
    for start in range(0, len(runs), BATCH):
        batch = [run if isinstance(run, list) else [run] for run in runs[start : start + BATCH]]
        tests = permutation_tests(batch, groups, strata, permutations=PERMUTATIONS, seed=start)
        p_values += [test.mean.p_value for test in tests]
    return np.array([p_value is not None and p_value <= 0.05 for p_value in p_values])


class Report:
    """How much is simulated, and how far a proportion may miss its aim: by 3 of its standard errors, with few runs."""

    def __init__(self, runs: int, only: str = "", seed: int = 0) -> None:
        self.runs = runs
        self.seed = seed
        self.only = only

    def slack(self, share: float) -> float:
        return 0.0 if self.runs >= 2_000 else 3 * float(np.sqrt(share * (1 - share) / self.runs)) + 1 / self.runs

    def wants(self, name: str) -> bool:
        return self.only in f"{name},"  # a comma at the end tells habit 0.0 from 0.01


def level(report: Report) -> None:
    """Type-I error of the default test at 0.05, and of the utterance-level test for comparison."""
    for corpus in CORPORA:
        for habit in corpus.habits:
            name = f"level, {corpus.name}, habit {habit}"
            if not report.wants(name):
                continue
            null = np.tile(zipf(corpus.values), (len(corpus.sizes), 1))
            runs = [filtered(table) for table in tables(corpus, null, habit, report, 1)]
            share = rejected(runs, corpus.groups).mean()
            slack = report.slack(0.05)
            tell(name, share, "of true nulls rejected", "0.04 to 0.06", 0.04 - slack <= share <= 0.06 + slack)


def designs(report: Report) -> None:
    """Type-I error of the default test where clips, habits, groups and lists are unlike."""
    for place, design in enumerate([*TABLE, *FURTHER]):
        name = f"designs, {design.name}"
        if not report.wants(name):
            continue
        rng = np.random.default_rng([6, place, report.seed])
        runs = [[filtered(table) for table in run] for run in design.runs(rng, report.runs)]
        share = rejected(runs, design.groups).mean()
        slack = report.slack(0.05)
        least = 0.035 if min(design.sizes) >= 10 else 0.0
        held = least - slack <= share <= 0.06 + slack
        tell(name, share, "of true nulls rejected", f"{least:g} to 0.06", held)


def filtered(table: np.ndarray) -> np.ndarray:
    return table[..., kept_values(table, TAU)]


def strata(report: Report) -> None:
    """Type-I error where emotions are spread unevenly over the groups and answers follow the emotion."""
    for corpus in CORPORA[:2]:
        for habit in corpus.habits:
            name = f"unbalanced emotions, {corpus.name}, habit {habit}"
            if not report.wants(name):
                continue
            pooled, standardised = [], []
            rng = np.random.default_rng([2, report.seed])
            for _ in range(report.runs):
                table = with_emotions(rng, corpus, habit)
                standardised.append(filtered(table))
                pooled.append(filtered(table.sum(axis=1)))
            share, without = rejected(standardised, corpus.groups).mean(), rejected(pooled, corpus.groups).mean()
            slack = report.slack(0.05)
            held = 0.04 - slack <= share <= 0.06 + slack
            tell(name, share, "of true nulls rejected", "0.04 to 0.06", held, f"pooled instead: {without:.3f}")


def balance(report: Report) -> None:
    """Type-I error where emotions are evened out only if they are found unbalanced, as `metrics.balance` does."""
    for corpus in CORPORA[:2]:
        for habit in (0.0, 0.1):
            for odds in (1.0, 1.04, 1.1, 1.2):
                name = f"balance, {corpus.name}, habit {habit}, odds {odds}"
                if not report.wants(name):
                    continue
                rng = np.random.default_rng([4, report.seed])
                chosen, evened = [], 0
                for run in range(report.runs):
                    table = with_emotions(rng, corpus, habit, odds)
                    found = permutation_tests([[table.sum(axis=2)]], corpus.groups, permutations=199, seed=run)[0].mean
                    assert found.value is not None and found.p_value is not None
                    uneven = found.value > LIMIT and found.p_value <= ALPHA
                    evened += uneven
                    chosen.append(filtered(table if uneven else table.sum(axis=1, keepdims=True)))
                share = rejected(chosen, corpus.groups).mean()
                slack = report.slack(0.05)
                held, beside = 0.04 - slack <= share <= 0.06 + slack, f"evened out in {evened / report.runs:.2f}"
                tell(name, share, "of true nulls rejected", "0.04 to 0.06", held, beside)


DEMO = Corpus("12 v 12", (12, 12), 82, 20)
"""As few speakers a group as the demo corpus has, each with many answers."""
CHANGES = (
    (Pattern.SPREAD, Pattern.SPREAD),
    (Pattern.TWO_VALUES, Pattern.TWO_VALUES),
    (Pattern.SPREAD, Pattern.TWO_VALUES),
    (Pattern.TWO_VALUES, Pattern.ONE_GROUP),
)
"""What carries the shift before and after: the same values, or others."""


def comparison(report: Report) -> None:
    """Two runs of different or equal truth and noise: false alarms, and coverage of the difference's interval."""
    for corpus in (*CORPORA[:2], DEMO):
        for habits in ((0.1, 0.1), (0.1, 0.3), (0.01, 0.1)):
            for patterns in CHANGES:
                for truths in ((0, 0), (10, 10), (20, 20), (40, 40), (0, 20), (10, 20)):
                    if (truths == (0, 0) and patterns != CHANGES[0]) or not reachable(corpus, patterns, truths):
                        continue
                    told = " then ".join(dict.fromkeys(pattern.value for pattern in patterns))
                    name = f"comparison, {corpus.name}, habits {habits}, {told}, {truths[0]} to {truths[1]}"
                    if report.wants(name):
                        compared(report, name, corpus, habits, patterns, truths)


def reachable(corpus: Corpus, patterns: tuple[Pattern, Pattern], truths: tuple[int, int]) -> bool:
    most = [largest_shift(zipf(corpus.values), len(corpus.sizes), pattern) for pattern in patterns]
    return all(truth <= limit for truth, limit in zip(truths, most, strict=True))


def compared(
    report: Report,
    name: str,
    corpus: Corpus,
    habits: tuple[float, float],
    patterns: tuple[Pattern, Pattern],
    truths: tuple[int, int],
) -> None:
    rng = np.random.default_rng([5, report.runs, report.seed])
    shares = [
        shifted(zipf(corpus.values), len(corpus.sizes), truth, pattern)
        for truth, pattern in zip(truths, patterns, strict=True)
    ]
    rows = []
    for run in range(report.runs):
        pair = [
            answers(rng, one, corpus.groups, corpus.answers, habit) for one, habit in zip(shares, habits, strict=True)
        ]
        kept = kept_values(pair[0], TAU) | kept_values(pair[1], TAU)
        found = compare([pair[0][:, kept]], [pair[1][:, kept]], corpus.groups, seed=run)
        assert found.interval is not None and found.p_value is not None and found.difference is not None
        assert found.upper is not None
        rows.append((found.p_value <= 0.05, *found.interval, found.difference, found.upper))
    significant, low, high, difference, upper = np.array(rows).T
    truth = truths[1] - truths[0]
    covered = ((low <= truth) & (truth <= high)).mean()
    beside = f"difference {difference.mean():+.1f}, width {(high - low).mean():.1f}, upper bound {upper.mean():+.1f}"
    held = bool(covered >= 0.93 - report.slack(0.93))
    tell(name, covered, "of intervals cover the truth", "at least 0.93", held, beside)
    over = (truth <= upper).mean()
    tell(name, over, "of upper bounds are over the truth", "at least 0.93", over >= 0.93 - report.slack(0.93))
    share, aim = significant.mean(), "at most 0.06" if truth == 0 else ""
    tell(name, share, "significant", aim, bool(truth != 0 or share <= 0.06 + report.slack(0.06)))


def with_emotions(rng: np.random.Generator, corpus: Corpus, habit: float, odds: float = 1.5) -> np.ndarray:
    """Counts (S, 6, V): answers follow the emotion, and the first half of the groups has more of some emotions."""
    emotions, groups = 6, corpus.groups
    tendencies = shifted(zipf(corpus.values), emotions, 30, Pattern.SPREAD)
    more = [odds] * 3 + [1.0] * 3
    given = np.where(groups[:, None] < len(corpus.sizes) / 2, more, more[::-1])
    number = rng.multinomial(corpus.answers, given / given.sum(axis=1, keepdims=True))
    own = np.ones((groups.size, corpus.values))
    if habit > 0:
        base = zipf(corpus.values)
        own = np.maximum(rng.standard_gamma(base * (1 - habit) / habit, (groups.size, corpus.values)), 1e-12)
        own = own / own.sum(axis=1, keepdims=True) / base
    shares = tendencies[None] * own[:, None]
    return np.asarray(rng.multinomial(number, shares / shares.sum(axis=-1, keepdims=True)))


def interval(report: Report) -> None:
    """Coverage and width of the bracket's interval, and whether the mean bracket lies around the truth."""
    for corpus in (*CORPORA, YES_OR_NO):
        for habit in corpus.habits:
            for pattern in Pattern:
                for score in (0, 5, 10, 20, 40):
                    if (score == 0 or corpus is YES_OR_NO) and pattern is not Pattern.SPREAD:
                        continue  # without a shift, and with two values, the patterns are one
                    if score > largest_shift(zipf(corpus.values), len(corpus.sizes), pattern):
                        continue  # beyond what the pattern can reach
                    cell(report, corpus, habit, pattern, score)


def cell(report: Report, corpus: Corpus, habit: float, pattern: Pattern, score: int) -> None:
    name = f"interval, {corpus.name}, habit {habit}, {pattern.value}, score {score}"
    if not report.wants(name):
        return
    shares = shifted(zipf(corpus.values), len(corpus.sizes), score, pattern)
    rows = []
    for run, table in enumerate(tables(corpus, shares, habit, report, 3)):
        kept = kept_values(table, TAU)
        truth = float(shift(shares[:, kept] / shares[:, kept].sum(axis=1, keepdims=True)))
        found = bracket([table[:, kept]], corpus.groups, seed=run).mean
        assert found.interval is not None, found.reason
        raw = float(ntvd(np.stack([table[corpus.groups == g][:, kept].sum(axis=0) for g in range(len(corpus.sizes))])))
        rows.append((truth, raw, found.at_least, found.at_most, *found.interval))
    truth, raw, least, most, low, high = np.array(rows).T
    covered = ((low <= truth + 1e-9) & (truth <= high + 1e-9)).mean()
    # Held around the truth to within three standard errors of the two means.
    error = 3 / np.sqrt(len(rows))
    around = least.mean() <= truth.mean() + error * least.std() and truth.mean() <= most.mean() + error * most.std()
    beside = (
        f"true {truth.mean():.1f}, raw {raw.mean():.1f}, at least {least.mean():.1f}, at most {most.mean():.1f}"
        f"{'' if around else ', which is not around it'}, interval {low.mean():.1f} to {high.mean():.1f}, "
        f"width {(high - low).mean():.1f}"
    )
    held = bool(covered >= 0.93 - report.slack(0.93) and around)
    tell(name, covered, "of intervals cover the truth", "at least 0.93, the bracket around it", held, beside)


PARTS = {
    "level": level,
    "designs": designs,
    "strata": strata,
    "balance": balance,
    "interval": interval,
    "comparison": comparison,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--runs", type=int, help="simulations a cell")
    parser.add_argument("--only", default="", help="words in the names of the cells to run")
    parser.add_argument("--seed", type=int, default=0, help="other simulations")
    arguments = parser.parse_args()
    report = Report(arguments.runs or (20 if arguments.quick else 2_000), arguments.only, arguments.seed)
    for name, part in PARTS.items():
        if arguments.part in (None, name):
            part(report)
    print(f"{len(missed)} cells missed their aim" if missed else "every cell meets its aim")
    return status()


if __name__ == "__main__":
    sys.exit(main())
