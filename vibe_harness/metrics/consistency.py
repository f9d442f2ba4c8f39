"""BiasInEar (arXiv 2602.01030): how right the answers are, and how alike over the levels of a variable.

The variable is the dimension under test: language, accent, gender or order. An interval is about other questions
(`stats.question_intervals`).
A floor (null_mean, null_p95) is what shuffled answers come to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.metrics.metric import Compute, Metric, Settings
from vibe_harness.metrics.presentation import Presentation, percentage
from vibe_harness.records import GROUP_PREFIX, Outcome, Score
from vibe_harness.stats.consistency import (
    Agreement,
    Answers,
    Floats,
    agreement,
    apes,
    averaged_kappa,
    level_entropies,
    one_by_one,
    pooled_kappa,
    question_entropies,
    shuffled,
)
from vibe_harness.stats.question_intervals import kappa_interval, share_interval

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 10
"""Questions under which there is no interval: so few are too much alike to say how sure a figure is."""
KAPPA_SHUFFLES = 400
"""Where kappa lies without agreement is near 0, and that there is some is no finding: few draws will do. APES is what a
model's bias is tested by, in one family with all else, so it takes as many draws as all else."""


def accuracy(frame: pd.DataFrame, settings: Settings) -> list[Score]:
    """Share of right answers in percent, of all requests less errors: an answer that cannot be read is not right."""
    base = frame[frame["outcome"] != Outcome.ERROR]
    if not len(base):
        return [Score(metric="accuracy", undefined="every request failed")]
    readable = base["choice"].notna().to_numpy()
    right = (base["choice"].fillna("") == base["right"]).to_numpy(dtype=np.float64)  # compared, NA would stay NA
    question = _codes(base["item"])
    total, hits = np.bincount(question), np.bincount(question, right)
    groups = {str(name): 100 * float(right[places].mean()) for name, places in base.groupby("group").indices.items()}
    detail = {
        "by_group": groups,
        "answers": len(base),
        "of_the_readable": 100 * float(right[readable].mean()) if readable.any() else None,
        "chance": 100 / len(frame.attrs["options"]),
    }
    value = 100 * float(right.mean())
    return [
        Score(
            metric="accuracy",
            value=value,
            interval=_interval(hits / total, total.astype(np.float64), 100),
            detail=detail,
        )
    ]


def question_entropy(frame: pd.DataFrame, settings: Settings) -> list[Score]:
    """Mean over questions of the entropy of its answers, 0 to 1; by group, over the answers of that group alone."""
    answers, _ = _answers(frame, settings)
    found = question_entropies(answers)
    if not np.isfinite(found).any():
        return [Score(metric="question_entropy", undefined="no answer could be read")]
    levels = np.unique(frame["group"].astype(str))
    by_level = level_entropies(answers)
    means = {
        str(level): float(np.nanmean(column))
        for level, column in zip(levels, by_level.T, strict=False)
        if np.isfinite(column).any()
    }
    counts = np.bincount(answers.question, minlength=len(found))
    detail = {"by_group": means, "questions": len(found), "answers_a_question": [int(counts.min()), int(counts.max())]}
    return [Score(metric="question_entropy", value=float(np.nanmean(found)), interval=_interval(found), detail=detail)]


def apes_metric(frame: pd.DataFrame, settings: Settings) -> list[Score]:
    """Average pairwise entropy shift between the levels of the variable, averaged over questions.

    It is above 0 without any effect of the variable, the more so the fewer the answers a level: the floor is that of
    answers shuffled between levels, within question and other conditions.
    """
    answers, items = _answers(frame, settings)
    found = apes(answers)
    if not np.isfinite(found).any():
        return [Score(metric="apes", undefined="no question has readable answers at two levels")]
    value = float(np.nanmean(found))
    floor = shuffled(answers, answers.item, _mean_apes, settings.permutations, settings.seed)
    within = f"answers within {items}"
    return [_with_floor(Score(metric="apes", value=value, interval=_interval(found)), floor, value, within)]


def _mean_apes(answers: Answers) -> Floats:
    return np.asarray(np.nanmean(apes(answers), axis=-1))


def fleiss_kappa(frame: pd.DataFrame, settings: Settings) -> list[Score]:
    """Agreement of the levels of the variable beyond chance, pooled over questions (the paper's appendix C.4).

    The floor is that of answers shuffled over all questions.
    """

    answers, items = _answers(frame, settings)
    within, words = np.zeros(len(answers.answer), dtype=np.int64), "answers over all questions"
    return [_kappa("fleiss_kappa", answers, agreement, pooled_kappa, within, words, items, settings)]


def fleiss_kappa_averaged(frame: pd.DataFrame, settings: Settings) -> list[Score]:
    """The published package's kappa: one a question, averaged. Nearly the same small negative number at any agreement.

    The floor is that of answers shuffled within each question.
    """

    answers, items = _answers(frame, settings)
    parts, words = partial(agreement, modal=True), "answers within questions"
    return [_kappa("fleiss_kappa_averaged", answers, parts, averaged_kappa, answers.question, words, items, settings)]


def _kappa(
    metric: str,
    answers: Answers,
    parts: Callable[[Answers], Agreement],
    kappa: Callable[..., Floats],
    within: NDArray[np.int64],
    words: str,
    items: str,
    settings: Settings,
) -> Score:
    value = float(kappa(parts(answers))[0]) if len(answers.answer) else float("nan")
    if not np.isfinite(value):
        return Score(metric=metric, undefined="all answers are the same option, or no item has two levels to compare")
    rated = parts(answers)
    kept = rated.ratings.sum(axis=1) > 0  # questions with an item that two levels answer
    rated = Agreement(rated.ratings[kept], rated.agreeing[kept])
    interval = kappa_interval(rated, kappa) if kept.sum() >= FEWEST else None
    times = min(KAPPA_SHUFFLES, settings.permutations)
    floor = shuffled(answers, within, one_by_one(lambda one: float(kappa(parts(one))[0])), times, settings.seed)
    detail = {"items": f"{items} (levels of the variable are the raters)"}
    return _with_floor(Score(metric=metric, value=value, interval=interval, detail=detail), floor, value, words)


def _answers(frame: pd.DataFrame, settings: Settings) -> tuple[Answers, str]:
    """The readable answers as arrays, and in words what an item is.

    An item is a question under one combination of the other conditions. A condition whose levels lie within one level
    of the variable, as accents within a language, is none: its answers are several at that level.
    """
    crossed = [name for name in settings.conditions if not _nested(frame, GROUP_PREFIX + name)]
    columns = ["item", *(GROUP_PREFIX + name for name in crossed)]
    item = frame.groupby(columns, observed=True, dropna=False).ngroup().to_numpy()
    code = {name: place for place, name in enumerate(frame.attrs["options"])}
    chosen = frame["choice"].map(code).fillna(-1).to_numpy(dtype=np.int64)
    answers = Answers(chosen, _codes(frame["item"]), _codes(frame["group"]), item.astype(np.int64), len(code))
    return answers.readable(), " x ".join(["question", *crossed])


def _nested(frame: pd.DataFrame, column: str) -> bool:
    pairs = frame[[column, "group"]].drop_duplicates()
    return bool(pairs[column].is_unique)


def _codes(names: pd.Series[Any]) -> NDArray[np.int64]:
    return np.unique(names.astype(str).to_numpy(), return_inverse=True)[1].astype(np.int64)


def _interval(values: Floats, weights: Floats | None = None, scale: float = 1.0) -> tuple[float, float] | None:
    """Of the mean of values (Q,) from 0 to 1, those that are NaN left out; None over too few questions."""
    there = np.isfinite(values)
    if there.sum() < FEWEST:
        return None
    counted = np.ones(len(values)) if weights is None else weights
    low, high = share_interval(values[there], counted[there])
    return scale * low, scale * high


def _with_floor(score: Score, floor: Floats, value: float, words: str) -> Score:
    from dataclasses import replace

    there = floor[np.isfinite(floor)]
    if not len(there):
        return score
    return replace(
        score,
        null_mean=float(there.mean()),
        null_p95=float(np.quantile(there, 0.95)),
        p_value=float((1 + (there >= value - 1e-12).sum()) / (1 + len(there))),
        permuted=words,
        permutations=len(there),
        exact=False,
    )


def _metric(compute: Compute, summary: str, title: str, low: float = 0) -> Metric:
    return Metric(compute, summary, ("choice",), presentation=Presentation(title, digits=3, scale=(low, 1)))


ACCURACY = Metric(
    accuracy, "share of right answers, %", kinds=("choice",), key=True, presentation=percentage("accuracy")
)
QUESTION_ENTROPY = _metric(question_entropy, "entropy of the answers to a question, 0 to 1", "entropy of a question")
APES = _metric(apes_metric, "average pairwise entropy shift between levels of a variable", "APES")
FLEISS_KAPPA = _metric(
    fleiss_kappa, "agreement between levels of a variable, pooled over questions", "Fleiss' kappa", -1
)
FLEISS_KAPPA_AVERAGED = _metric(
    fleiss_kappa_averaged,
    "the published package's kappa, averaged over questions",
    "Fleiss' kappa, averaged over questions",
    -1,
)
