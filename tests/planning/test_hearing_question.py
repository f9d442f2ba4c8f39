"""The question of a hearing check is about what is said, and never about what is tested."""

from __future__ import annotations

import pytest

from vibe_harness.cards.schema import HearingQuestion, ModelCard
from vibe_harness.errors import UserError
from vibe_harness.planning.preflight_checks import check_hearing_question
from vibe_harness.records import Clip

TEXTS = ("Kids are talking by the door", "Dogs are sitting by the door")


def card(*answers: str) -> ModelCard:
    question = HearingQuestion(prompt="Which is it?", answers=list(answers))
    return ModelCard(model="m", backend="hf", id="x", hearing_check=question)


def clips(texts: tuple[str | None, ...] = TEXTS) -> list[Clip]:
    groups = ({"gender": "female", "emotion": "joy"}, {"gender": "male", "emotion": "fear"})
    return [
        Clip(f"c/{n}", f"{n}.wav", f"s{n}", own, text) for n, (own, text) in enumerate(zip(groups, texts, strict=True))
    ]


@pytest.mark.parametrize(
    ("answers", "dimensions", "message"),
    [
        (("Female", "male", "kids"), ["gender"], "'Female' is a group of 'gender', which is what is tested"),
        (("kids", "joy"), ["gender:emotion"], "'joy' is a group of 'emotion'"),
        (("gender", "kids"), ["gender"], "'gender' is the dimension 'gender'"),
        (("a man", "a woman", "nobody"), ["emotion"], "a man, a woman speak of the speaker and not of what is said"),
        (("bakery", "folder"), ["gender"], r"none of them \(bakery, folder\) is spoken in the texts of this corpus"),
        (("loud", "soft"), ["gender"], "none of them"),
    ],
)
def test_questions_that_are_refused_in_one_line(answers: tuple[str, ...], dimensions: list[str], message: str) -> None:
    with pytest.raises(UserError, match=f"hearing_check.answers: .*{message}.*--no-hearing-check") as told:
        check_hearing_question(card(*answers), dimensions, clips())
    assert "\n" not in str(told.value)


def test_questions_of_what_is_said() -> None:
    check_hearing_question(card("kids", "dogs", "none"), ["gender"], clips())
    check_hearing_question(card("talking by the door", "joy"), ["gender"], clips())  # joy is not compared
    check_hearing_question(card("bakery", "folder"), ["gender"], clips((None, None)))  # it is not known what is said
    check_hearing_question(ModelCard(model="m", backend="hf", id="x"), ["gender"], clips())
