"""Entropy, APES and Fleiss' kappa: worked by hand, beside statsmodels, and beside BiasInEar's published package."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vibe_harness.stats.consistency import (
    Answers,
    agreement,
    apes,
    averaged_kappa,
    entropy,
    level_entropies,
    one_by_one,
    pooled_kappa,
    question_entropies,
    shuffled,
)

ACCENTS = {"en": ("american", "british", "indian"), "zh": ("beijing", "northeastern"), "ko": ("seoul", "jeolla")}
Row = tuple[str, str, str, str, str]  # question, language, accent, gender, order


def design(questions: int) -> list[Row]:
    """The 28 configurations of each question."""
    return [
        (f"q{number}", language, accent, gender, order)
        for number in range(questions)
        for language, accents in ACCENTS.items()
        for accent in accents
        for gender, order in itertools.product(("female", "male"), ("original", "reversed"))
    ]


def coded(columns: list[tuple[str, ...]] | list[str]) -> np.ndarray:
    names = {name: code for code, name in enumerate(dict.fromkeys(columns))}
    return np.array([names[name] for name in columns])


def answers_to(rows: list[Row], answer: np.ndarray, level: int, others: tuple[int, ...]) -> Answers:
    """level: index of the variable in a row; others: those that make the item, with the question."""
    return Answers(
        np.asarray(answer), coded([row[0] for row in rows]), coded([row[level] for row in rows]),
        coded([(row[0], *(row[other] for other in others)) for row in rows]), 4,
    )  # fmt: skip


def table(*ratings: str) -> Answers:
    """One question an item; a letter a rater, "-" where the answer cannot be read."""
    cells = [(item, rater, letter) for item, row in enumerate(ratings) for rater, letter in enumerate(row)]
    item, rater, letter = zip(*cells, strict=True)
    answer = np.array(["ABCD".find(one) for one in letter])
    return Answers(answer, np.array(item), np.array(rater), np.array(item), 4).readable()


def test_entropy_by_hand() -> None:
    assert entropy(np.array([1.0, 1, 1, 1])) == pytest.approx(1)
    assert entropy(np.array([5.0, 0, 0, 0])) == 0
    assert entropy(np.array([2.0, 2, 0, 0])) == pytest.approx(0.5)  # log_4 2
    assert entropy(np.array([2.0, 1, 1, 0])) == pytest.approx(0.75)  # 1/2 log_4 2 + 2 (1/4) log_4 4
    assert math.isnan(entropy(np.zeros(4)))


def test_apes_by_hand() -> None:
    # level 1: AABB (0.5), level 2: AAAA (0), level 3: ABCD (1): pairs 0.5, 0.5, 1
    answer = np.array([0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 2, 3])
    level = np.repeat([0, 1, 2], 4)
    found = apes(Answers(answer, np.zeros(12, dtype=int), level, np.arange(12), 4))
    assert found == pytest.approx([2 / 3])
    assert level_entropies(Answers(answer, np.zeros(12, dtype=int), level, np.arange(12), 4)) == pytest.approx(
        np.array([[0.5, 0, 1]])
    )


def test_apes_leaves_out_what_could_not_be_read() -> None:
    # level 1: AA--, level 2: AB, level 3: nothing that can be read
    answer = np.array([0, 0, -1, -1, 0, 1, -1])
    level = np.array([0, 0, 0, 0, 1, 1, 2])
    both = Answers(answer, np.zeros(7, dtype=int), level, np.arange(7), 4).readable()
    assert apes(both) == pytest.approx([0.5])
    alone = Answers(np.array([0, 0]), np.zeros(2, dtype=int), np.zeros(2, dtype=int), np.arange(2), 4)
    assert np.isnan(apes(alone)).all()


def test_total_agreement() -> None:
    parts = agreement(table("AAA", "BBB", "CCC"))
    assert pooled_kappa(parts) == pytest.approx([1])
    assert np.isnan(averaged_kappa(parts)).all()  # each question by itself has one category: no kappa at all


def test_total_agreement_on_one_option_has_no_kappa() -> None:
    assert np.isnan(pooled_kappa(agreement(table("AAA", "AAA")))).all()


def test_chance_agreement() -> None:
    # shares A 1/2, B 1/2, so P_e = 1/2; two raters agree on half of the items: P = 1/2
    assert pooled_kappa(agreement(table("AA", "AB", "BA", "BB"))) == pytest.approx([0])


def test_kappa_by_hand() -> None:
    # items AAB, BBB, ABC: P = 1/3, 1, 0, mean 4/9; shares A 3/9, B 5/9, C 1/9: P_e = 35/81
    assert pooled_kappa(agreement(table("AAB", "BBB", "ABC"))) == pytest.approx([(4 / 9 - 35 / 81) / (1 - 35 / 81)])


def test_kappa_weighs_items_by_their_raters_and_leaves_out_what_could_not_be_read() -> None:
    # AA-: n 2, P 1. AAB: n 3, P 1/3. B--: one rater, left out. P = (2 + 1) / 5; shares A 4/5, B 1/5: P_e = 17/25
    assert pooled_kappa(agreement(table("AA-", "AAB", "B--"))) == pytest.approx([(3 / 5 - 17 / 25) / (1 - 17 / 25)])


def test_nested_accents_count_in_part_for_their_language() -> None:
    """One item, two languages: English says A, A and B by accent, Korean A. Of the pairs between them 2/3 agree."""
    answers = Answers(np.array([0, 0, 1, 0]), np.zeros(4, int), np.array([0, 0, 0, 1]), np.zeros(4, int), 4)
    parts = agreement(answers)
    assert parts.ratings == pytest.approx(np.array([[2 / 3 + 1, 1 / 3, 0, 0]]))
    assert parts.agreeing == pytest.approx([2 * 2 / 3])  # n P
    assert agreement(answers, modal=True).agreeing == pytest.approx([2])  # A and A


@given(st.lists(st.text("ABCD", min_size=3, max_size=3), min_size=2, max_size=12))
def test_kappa_is_that_of_statsmodels(ratings: list[str]) -> None:
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater", reason="statsmodels is a second implementation")
    counts = np.array([[row.count(letter) for letter in "ABCD"] for row in ratings])
    if (counts.sum(axis=0) > 0).sum() < 2:
        return  # chance agrees wholly: not defined
    assert pooled_kappa(agreement(table(*ratings))) == pytest.approx([inter_rater.fleiss_kappa(counts)])


@given(st.lists(st.text("ABCD", min_size=4, max_size=4), min_size=1, max_size=8), st.permutations(range(4)))
def test_neither_raters_nor_names_of_options_matter(ratings: list[str], order: list[int]) -> None:
    parts = agreement(table(*ratings))
    turned = agreement(table(*("".join(row[place] for place in order) for row in ratings)))
    renamed = agreement(table(*(row.translate(str.maketrans("ABCD", "CADB")) for row in ratings)))
    for other in (turned, renamed):
        assert pooled_kappa(other) == pytest.approx(pooled_kappa(parts), nan_ok=True)
        assert averaged_kappa(other) == pytest.approx(averaged_kappa(parts), nan_ok=True)


def some_answers(rows: list[Row], seed: int = 1) -> np.ndarray:
    """Answers of a model that is sure of some questions more than of others and is moved by language and order."""
    generator = np.random.default_rng(seed)
    questions = len({row[0] for row in rows})
    favourite, sure = generator.integers(0, 4, questions), generator.uniform(0.2, 1, questions)
    number = coded([row[0] for row in rows])
    moved = np.array([0.3 * (row[1] == "ko") + 0.2 * (row[4] == "reversed") for row in rows])
    kept = generator.random(len(rows)) < sure[number] - moved
    return np.where(kept, favourite[number], generator.integers(0, 4, len(rows)))


@pytest.mark.parametrize("questions", [60])
def test_the_published_package_finds_the_same(questions: int) -> None:
    package = pytest.importorskip("biasinear", reason="the published package is the other implementation")
    rows = design(questions)
    answer = some_answers(rows)
    letters = ["ABCD"[code] for code in answer]
    right = ["ABCD"[code] for code in some_answers(rows, seed=2)]
    names = ("language", "accent", "gender", "order")
    chosen = {name: [row[index] for row in rows] for index, name in enumerate(names, 1)}
    ids = [row[0] for row in rows]
    # language without accent, which lies within it: with both, the package has no item with two languages
    flat = package.Evaluator(letters, right, ids, {name: chosen[name] for name in names if name != "accent"}).run()
    full = package.Evaluator(letters, right, ids, chosen).run()
    expected = {
        "language": (flat["apes"]["language"], flat["fleiss_kappa"]["language"]),
        **{name: (full["apes"][name], full["fleiss_kappa"][name]) for name in names if name != "language"},
    }
    others = {1: (3, 4), 2: (1, 3, 4), 3: (1, 2, 4), 4: (1, 2, 3)}
    assert np.nanmean(question_entropies(answers_to(rows, answer, 1, (3, 4)))) == pytest.approx(full["entropy"]["mean"])
    for level, name in enumerate(names, 1):
        answers = answers_to(rows, answer, level, others[level])
        assert np.nanmean(apes(answers)) == pytest.approx(expected[name][0])
        assert averaged_kappa(agreement(answers, modal=True)) == pytest.approx([expected[name][1]])


def test_a_steady_model_has_a_high_pooled_kappa_and_no_averaged_one() -> None:
    """Why the averaged kappa is not the default: it is a small negative number for a model that hardly ever wavers."""
    rows = design(100)
    generator = np.random.default_rng(0)
    favourite = generator.integers(0, 4, 100)[coded([row[0] for row in rows])]
    answer = np.where(generator.random(len(rows)) < 0.97, favourite, generator.integers(0, 4, len(rows)))
    answers = answers_to(rows, answer, 3, (1, 2, 4))
    assert pooled_kappa(agreement(answers))[0] > 0.9
    assert -0.1 < averaged_kappa(agreement(answers, modal=True))[0] < 0.1


def test_the_floor_of_apes_is_where_a_model_without_effect_lies() -> None:
    """Random answers: APES by gender is as high as shuffling makes it, though nothing hangs on gender."""
    rows = design(50)
    generator = np.random.default_rng(3)
    answers = answers_to(rows, generator.integers(0, 4, len(rows)), 3, (1, 2, 4))
    floor = shuffled(answers, answers.item, lambda many: np.nanmean(apes(many), axis=-1), 200, seed=0)
    seen = float(np.nanmean(apes(answers)))
    assert seen > 0.05 and floor.min() <= seen <= floor.max()


def test_shuffling_keeps_what_stands_within() -> None:
    rows = design(5)
    answers = answers_to(rows, some_answers(rows), 3, (1, 2, 4))
    shuffled(answers, answers.question, one_by_one(lambda one: _same_counts(one, answers)), 5, seed=0)
    again = [shuffled(answers, answers.item, lambda many: many.answer @ many.level, 5, seed=4) for _ in range(2)]
    assert (again[0] == again[1]).all() and len(set(again[0])) > 1


def _same_counts(one: Answers, other: Answers) -> float:
    assert (one.question == other.question).all()
    for question in range(5):
        mine, theirs = (np.sort(each.answer[each.question == question]) for each in (one, other))
        assert (mine == theirs).all()
    return 0.0


def test_many_answers_at_once_have_the_entropies_of_each() -> None:
    rows = design(4)
    sets = np.stack([some_answers(rows), some_answers(rows)[::-1]])
    both = answers_to(rows, sets, 2, (1, 3, 4))
    for shown, one in zip(apes(both), sets, strict=True):
        assert (shown == apes(answers_to(rows, one, 2, (1, 3, 4)))).all()


@pytest.mark.parametrize("size", [2, 3, 5, 6, 7])
def test_every_order_of_a_small_group_is_as_likely(size: int) -> None:
    """The first entry's answer is each of the group's equally often, in groups of all sizes at once; chi-square."""
    within = np.repeat(np.arange(300), size)
    answer = np.tile(np.arange(size), 300)
    answers = Answers(answer, within, answer, within, size)
    first: list[np.ndarray] = []

    def kept(many: Answers) -> np.ndarray:
        first.append(many.answer.reshape(-1, size)[:, 0])
        return np.zeros(len(many.answer))

    shuffled(answers, within, kept, 20, seed=1)
    counts = np.bincount(np.concatenate(first), minlength=size)
    assert stats.chisquare(counts).pvalue > 0.001


def test_groups_of_several_sizes_and_of_equal_answers_keep_their_answers() -> None:
    sizes = [1, 2, 2, 3, 6, 7, 7, 1, 9]
    within = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    answer = np.where(np.isin(within, [2, 6]), 1, np.arange(within.size) % 4)
    answers = Answers(answer, within, within, within, 4)

    def same(many: Answers) -> np.ndarray:
        for row in many.answer:
            for group in range(len(sizes)):
                assert sorted(row[within == group]) == sorted(answer[within == group])
        return np.array([float((row != answer).sum()) for row in many.answer])

    moved = shuffled(answers, within, same, 7, seed=3)
    assert (moved > 0).all()


def test_without_an_answer_there_is_no_question() -> None:
    none = np.zeros(0, dtype=np.int64)
    empty = Answers(none, none, none, none, 4)
    assert apes(empty).shape == (0,) and level_entropies(empty).shape == (0, 0)
    assert question_entropies(empty).shape == (0,)
