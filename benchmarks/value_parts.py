"""Parts of the calibration: single values, one-sided limits, sentences and questions. Run by `calibration.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from figures import tell

from vibe_harness.stats.bracket import bracket
from vibe_harness.stats.consistency import Agreement, entropy, pooled_kappa
from vibe_harness.stats.maximum import value_tests
from vibe_harness.stats.ntvd import kept_values, shift
from vibe_harness.stats.permutation import permutation_test
from vibe_harness.stats.question_intervals import kappa_interval, share_interval
from vibe_harness.stats.sentences import crossed_shift
from vibe_harness.stats.simulation import Pattern, answers, largest_shift, shifted, zipf
from vibe_harness.stats.values import contributions

TAU, VALUES, ALPHA = 10, 20, 0.05


class Report(Protocol):
    """How much is simulated; see `calibration.Report`."""

    runs: int
    seed: int

    def slack(self, share: float) -> float: ...
    def wants(self, name: str) -> bool: ...


@dataclass(frozen=True)
class Speakers:
    """One value for each group. clips: of a speaker; negative: their median, log-normal over speakers."""

    sizes: tuple[int, ...]
    clips: tuple[int, ...]
    habits: tuple[float, ...]
    attributes: int = 1

    @property
    def name(self) -> str:
        parts = [self.sizes, self.clips, tuple(dict.fromkeys(self.habits))]
        return "{} speakers, {} clips, habit {}".format(*(" v ".join(map(str, dict.fromkeys(one))) for one in parts))

    @property
    def groups(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def tables(self, rng: np.random.Generator, shares: np.ndarray) -> list[np.ndarray]:
        """A table (S, V) for each attribute, not filtered."""
        typical = np.repeat(self.clips, self.sizes)
        drawn = np.ceil(np.exp(rng.normal(np.log(np.abs(typical)), 1.2))).astype(np.int64)
        clips = np.where(typical < 0, drawn, typical)
        return [self._table(rng, shares, clips) for _ in range(self.attributes)]

    def _table(self, rng: np.random.Generator, shares: np.ndarray, clips: np.ndarray) -> np.ndarray:
        parts = []
        for group, habit in enumerate(self.habits):
            own = clips[self.groups == group]
            parts.append(answers(rng, shares[[group]], np.zeros(own.size, dtype=np.int64), own, habit))
        return np.concatenate(parts)


DESIGNS = (
    Speakers((48, 43), (82, 82), (0.1, 0.1)),
    Speakers((4,) * 6, (400,) * 6, (0.1,) * 6),
    Speakers((4,) * 6, (400,) * 6, (0.3,) * 6),
    Speakers((5, 40), (50, 50), (0.3, 0.05)),
    Speakers((40, 5), (50, 50), (0.3, 0.05)),
    Speakers((4, 20, 20), (50,) * 3, (0.1,) * 3),
    Speakers((2, 20, 20), (50,) * 3, (0.1,) * 3),
    Speakers((20, 20), (100, 5), (0.1, 0.1)),
    Speakers((20, 20), (60, 6), (0.0, 0.0)),
    Speakers((3, 5, 8, 12, 20, 30), (-12,) * 6, (0.1,) * 6),
    Speakers((10, 10), (-12, -12), (0.1, 0.1)),
    Speakers((150, 80, 60, 50, 40, 26), (1,) * 6, (0.0,) * 6),
)
TASKS = (Speakers((48, 43), (82, 82), (0.1, 0.1), 6), Speakers((4,) * 6, (400,) * 6, (0.1,) * 6, 6), *DESIGNS[2:])


def shifts(design: Speakers, scores: Sequence[int]) -> Iterator[tuple[int, Pattern, np.ndarray]]:
    count = len(design.sizes)
    for score in scores:
        for pattern in (Pattern.SPREAD, Pattern.TWO_VALUES):
            if (score or pattern is Pattern.SPREAD) and score <= largest_shift(zipf(VALUES), count, pattern):
                yield score, pattern, shifted(zipf(VALUES), count, score, pattern)


def values(report: Report) -> None:
    """Coverage of the intervals of single values, in the group where it is least."""
    for design in DESIGNS:
        for score, pattern, shares in shifts(design, (0, 20)):
            name = f"values, {design.name}, {pattern.value}, score {score}"
            if not report.wants(name):
                continue
            rng, covered, width = np.random.default_rng([7, report.seed]), [], []
            for _ in range(report.runs):
                [table] = design.tables(rng, shares)
                kept = kept_values(table, TAU)
                own = shares[:, kept] / shares[:, kept].sum(axis=1, keepdims=True)
                truth = 100 * (own - own.mean(axis=0))
                ends = contributions(table[:, kept], design.groups).interval()
                if ends is not None:
                    covered.append(((ends[0] <= truth + 1e-9) & (truth <= ends[1] + 1e-9)).mean(axis=1))
                    width.append((ends[1] - ends[0]).mean())
            share = float(np.mean(covered, axis=0).min())
            held = share >= 0.93 - report.slack(0.93)
            beside = f"over all groups {np.mean(covered):.3f}, mean width {np.mean(width):.1f}"
            tell(name, share, "of intervals cover, least of the groups", "at least 0.93", held, beside)


def named(report: Report) -> None:
    """Tasks without any shift in which a value is named; and how many are, where two values shift."""
    for design in TASKS:
        name = f"named, {design.name}, {design.attributes} attributes"
        if not report.wants(name):
            continue
        found = {score: [_named(report, design, run, score) for run in range(report.runs)] for score in (0, 30)}
        share = float(np.mean([gated > 0 for gated, _ in found[0]]))
        alone = float(np.mean([any_value for _, any_value in found[0]]))
        beside = f"by their own p alone {alone:.3f}; at nTVD 30 {np.mean([one for one, _ in found[30]]):.1f} are named"
        tell(
            name,
            share,
            "of tasks name a value without a shift",
            "at most 0.05",
            share <= ALPHA + report.slack(ALPHA),
            beside,
        )


def _named(report: Report, design: Speakers, run: int, score: int) -> tuple[int, bool]:
    """How many values are named, and whether any has a p of its own at ALPHA."""
    rng = np.random.default_rng([8, report.seed, run, score])
    shares = shifted(zipf(VALUES), len(design.sizes), score, Pattern.TWO_VALUES)
    tables = [table[:, kept_values(table, TAU)] for table in design.tables(rng, shares)]
    test = permutation_test(tables, design.groups, permutations=299, seed=run)
    tested = value_tests(tables, design.groups, permutations=299, seed=run)
    passing = [0 if one is None else int((one <= ALPHA).any(axis=0).sum()) for one in tested]
    gated = [
        count for count, one in zip(passing, test.attributes, strict=True)
        if one.adjusted is not None and one.adjusted <= ALPHA
    ]  # fmt: skip
    return sum(gated), any(passing)


def limits(report: Report) -> None:
    """Coverage of the one-sided limit, and of the interval, in designs with unlike groups."""
    for design in DESIGNS:
        for score, pattern, shares in shifts(design, (0, 5, 10, 20, 40)):
            name = f"limits, {design.name}, {pattern.value}, score {score}"
            if not report.wants(name):
                continue
            rng, rows = np.random.default_rng([9, report.seed]), []
            for run in range(report.runs):
                [table] = design.tables(rng, shares)
                kept = kept_values(table, TAU)
                truth = float(shift(shares[:, kept] / shares[:, kept].sum(axis=1, keepdims=True)))
                found = bracket([table[:, kept]], design.groups, seed=run).mean
                if found.interval is not None and found.no_more_than is not None:
                    low, high = found.interval
                    rows.append(
                        (
                            truth <= found.no_more_than + 1e-9,
                            low <= truth + 1e-9 and truth <= high + 1e-9,
                            found.no_more_than,
                        )
                    )
            if not rows:
                continue  # too few speakers for an interval, which the score says
            limit, interval, mean = np.mean(rows, axis=0)
            held = min(limit, interval) >= 0.93 - report.slack(0.93)
            beside = f"interval {interval:.3f}, mean limit {mean:.1f}, {len(rows)} runs with one"
            tell(
                name,
                float(limit),
                "of limits are over the truth",
                "at least 0.93, the interval too",
                bool(held),
                beside,
            )


def sentences(report: Report) -> None:
    """Lower ends over the truth, where groups have preferences that hang on the sentence."""
    for sizes, number, each in (((20, 20), 12, 4), ((4,) * 6, 50, 4)):
        for own in (0.0, 0.05, 0.3):
            for score in (0, 20):
                name = (
                    f"sentences, {len(sizes)} groups of {sizes[0]}, {number} sentences, own share {own}, score {score}"
                )
                if not report.wants(name):
                    continue
                rng, over, least = np.random.default_rng([10, report.seed]), [], []
                groups = np.repeat(np.arange(len(sizes)), sizes)
                for run in range(report.runs):
                    found = crossed_shift([_spoken(rng, groups, number, each, own, score)], groups, seed=run)
                    low = found.low()
                    over.append(low is not None and low > score)
                    least.append(found.at_least)
                share = float(np.mean(over))
                beside = f"mean at least {np.mean(least):.1f}"
                tell(
                    name,
                    share,
                    "of lower ends over the truth",
                    "at most 0.035",
                    share <= 0.035 + report.slack(0.035),
                    beside,
                )


def _spoken(rng: np.random.Generator, groups: np.ndarray, number: int, each: int, own: float, score: int) -> np.ndarray:
    """(S, M, V): habits of 0.1, and a share of the groups' variance that hangs on the sentence."""
    base = shifted(zipf(10), int(groups.max()) + 1, score, Pattern.SPREAD)[:, None].repeat(number, axis=1)
    if own:
        base = np.maximum(rng.standard_gamma(base * (1 - own) / own), 1e-12)
        base /= base.sum(axis=-1, keepdims=True)
    habits = np.maximum(rng.standard_gamma(zipf(10) * 9, (groups.size, 10)), 1e-12) / zipf(10)
    shares = base[groups] * habits[:, None]
    return np.asarray(rng.multinomial(each, shares / shares.sum(axis=-1, keepdims=True)))


def questions(report: Report) -> None:
    """Coverage of accuracy, entropy and kappa over few questions, each asked at two levels in six conditions."""
    for alike in (0.3, 1, 4):
        for right in (0.35, 0.7, 0.92):
            rng = np.random.default_rng([11, report.seed])
            hits, counts, parts = _asked(rng, 40_000, alike, right)
            truths = (hits.mean(), entropy(counts).mean(), float(pooled_kappa(parts)[0]))
            for number in (10, 20, 30):
                name = f"questions, {number}, accuracy {right}, alike {alike}"
                if not report.wants(name):
                    continue
                covered = [_covered(_asked(rng, number, alike, right), truths) for _ in range(report.runs)]
                for what, share in zip(("accuracy", "entropy", "kappa"), np.mean(covered, axis=0), strict=True):
                    held = bool(share >= 0.93 - report.slack(0.93))
                    tell(f"{name}: {what}", float(share), "of intervals cover the truth", "at least 0.93", held)


def _covered(drawn: tuple[np.ndarray, np.ndarray, Agreement], truths: Sequence[float]) -> list[bool]:
    hits, counts, parts = drawn
    each = np.ones(len(hits))
    ends = [share_interval(hits, each), share_interval(entropy(counts), each), kappa_interval(parts, pooled_kappa)]
    return [end is not None and end[0] <= truth <= end[1] for end, truth in zip(ends, truths, strict=True)]


def _asked(
    rng: np.random.Generator, number: int, alike: float, right: float
) -> tuple[np.ndarray, np.ndarray, Agreement]:
    """Shares of right answers (Q,), counts of options (Q, 4), and what kappa is made of."""
    keys = rng.integers(4, size=number)
    shares = np.full((number, 4), (1 - right) / 3)
    shares[np.arange(number), keys] = right
    own = np.maximum(rng.standard_gamma(shares * alike), 1e-9)
    items = rng.multinomial(2, (own / own.sum(axis=1, keepdims=True))[:, None].repeat(6, axis=1))
    counts = items.sum(axis=1).astype(float)
    agreeing = ((items**2).sum(axis=2) - 2.0).sum(axis=1)
    return counts[np.arange(number), keys] / 12, counts, Agreement(counts, agreeing)
