"""Answers by likelihood: which tokens are a label, which label is the answer, and what is no answer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vibe_harness.backends.local.likelihood import Labels, answer
from vibe_harness.cards.loading import CardIndex
from vibe_harness.errors import UserError
from vibe_harness.records import Generation, Option, Outcome, Request

CARD = CardIndex().model("hf:org/name")


def request(labels: str = "ABC") -> Request:
    options = tuple(Option(label, label.lower(), f"thing {label}") for label in labels)
    return Request("r", "t", "v", "c", "?", Generation(1), options=options, answer_by="likelihood")


class Vocabulary:
    """A tokenizer of whole words: what it does not hold is several; `unknown` stands for all that, where given."""

    def __init__(self, *tokens: str, unknown: str | None = None, blank: bool = False) -> None:
        self.words = [*tokens] if unknown is None else [*tokens, unknown]
        self.unknown = unknown
        self.blank = blank  # writes a word with and without a space ahead as one token, as SentencePiece does

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens  # a token of the beginning would be taken for a piece
        word = f" {text.strip()}" if self.blank else text
        if word in self.words:
            return [self.words.index(word)]
        return [len(self.words) - 1] if self.unknown is not None else [900, *map(ord, text)]

    def decode(self, ids: list[int]) -> str:
        return "".join(self.words[one] for one in ids)


@pytest.mark.parametrize(
    ("vocabulary", "expected"),
    [
        (Vocabulary("A", "B", "C", " A", " B", " C"), {"A": (0, 3), "B": (1, 4), "C": (2, 5)}),
        (Vocabulary(" A", " B", " C", blank=True), {"A": (0,), "B": (1,), "C": (2,)}),
        # " C" is missing: were " A" and " B" to count, C would be the less likely for it.
        (Vocabulary(" A", " B", "A", "B", "C"), {"A": (2,), "B": (3,), "C": (4,)}),
    ],
)
def test_the_tokens_of_labels(vocabulary: Vocabulary, expected: dict[str, tuple[int, ...]]) -> None:
    assert Labels(CARD, vocabulary).tokens(request()) == expected


@pytest.mark.parametrize(
    "vocabulary", [Vocabulary("AB", "CD"), Vocabulary("A", "B"), Vocabulary("A", "B", unknown="<unk>")]
)
def test_labels_that_are_no_tokens_are_refused(vocabulary: Vocabulary) -> None:
    with pytest.raises(UserError, match="labels A, B, C are not single tokens of the model 'org--name'") as caught:
        Labels(CARD, vocabulary).tokens(request())
    assert "\n" not in str(caught.value)


def test_each_set_of_labels_has_tokens_of_its_own() -> None:
    labels = Labels(CARD, Vocabulary("A", "B", "C", "D"))
    assert set(labels.tokens(request("AB"))) == {"A", "B"} and set(labels.tokens(request("DCB"))) == {"D", "C", "B"}


TOKENS = {"A": (0, 3), "B": (1, 4), "C": (2, 5)}


def test_a_label_is_as_likely_as_its_tokens_together() -> None:
    # A 0.20 + 0.00, B 0.15 + 0.15, C 0.1 + 0.1: no token of B is the likeliest, and B is the likeliest label.
    shares = [0.20, 0.15, 0.1, 1e-12, 0.15, 0.1]
    found = answer(request(), TOKENS, dict(enumerate(map(math.log, shares))), input_tokens=7)
    assert (found.text, found.outcome, found.finish_reason) == ("B", Outcome.OK, "likelihood")
    assert found.likelihoods is not None and found.input_tokens == 7
    assert {a: math.exp(b) for a, b in found.likelihoods.items()} == pytest.approx({"A": 0.2, "B": 0.3, "C": 0.2})


@given(st.lists(st.floats(-60, 0), min_size=3, max_size=3, unique=True), st.permutations("ABC"))
def test_the_likeliest_label_answers_wherever_it_stands(logs: list[float], order: list[str]) -> None:
    tokens = {label: ("ABC".index(label),) for label in order}
    assert answer(request(), tokens, dict(enumerate(logs))).text == "ABC"[logs.index(max(logs))]


@pytest.mark.parametrize(
    ("logs", "said"),
    [
        ([-1.0, -1.0, -2.0], "a tie: A and B are equally likely"),
        ([-2.0, -1.0, -1.0], "a tie: B and C are equally likely"),
        ([-1.0, float("nan"), -2.0], "not finite: A -1.0, B nan, C -2.0"),
        ([float("nan")] * 3, "not finite"),
        ([-1.0, -2.0, float("-inf")], "not finite: A -1.0, B -2.0, C -inf"),
        ([float("inf"), -2.0, -3.0], "not finite"),
    ],
)
def test_what_settles_on_no_label_is_an_error(logs: list[float], said: str) -> None:
    found = answer(request(), {"A": (0,), "B": (1,), "C": (2,)}, dict(enumerate(logs)))
    assert (found.outcome, found.text) == (Outcome.ERROR, "") and said in str(found.error)


def test_a_tie_behind_the_likeliest_label_is_none() -> None:
    assert answer(request(), {"A": (0,), "B": (1,), "C": (2,)}, {0: -1.0, 1: -3.0, 2: -3.0}).text == "A"
