"""Answering by likelihood: the option whose label is the most likely first token of an answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError
from vibe_harness.records import Outcome, Request, Response

FORMS = ("{}", " {}")  # forms of a label at the beginning of an answer
FINISHED = "likelihood"  # the finish reason, since no text is generated


class Tokenizer(Protocol):
    """The methods that are used of tokenizers of transformers and vLLM."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...

    def decode(self, ids: list[int]) -> str: ...


class Labels:
    """The tokens of option labels in one model's vocabulary."""

    def __init__(self, card: ModelCard, tokenizer: Tokenizer) -> None:
        self._card = card
        self._tokenizer = tokenizer
        self._known: dict[tuple[str, ...], dict[str, tuple[int, ...]]] = {}

    def tokens(self, request: Request) -> Mapping[str, Sequence[int]]:
        """Label -> its tokens, with and without a leading space, for the options of a request.

        A form is used only if it is a single token for every label, so that all labels have equally many tokens. Raises
        UserError if no form is, since the likelihood of a part is not that of a label.
        """
        labels = tuple(option.label for option in request.options)
        if labels not in self._known:
            forms = [found for form in FORMS if (found := self._single(form, labels))]
            if not forms:
                raise UserError(
                    f"--answer-by likelihood: the labels {', '.join(labels)} are not single tokens of the model "
                    f"'{self._card.model}': use --answer-by generate"
                )
            # In some tokenizers both forms are the same token, which counts once.
            self._known[labels] = {label: tuple(dict.fromkeys(form[label] for form in forms)) for label in labels}
        return self._known[labels]

    def _single(self, form: str, labels: Sequence[str]) -> dict[str, int] | None:
        """Label -> its token in this form; None if a label is not exactly one token."""
        found = {}
        for label in labels:
            ids = self._tokenizer.encode(form.format(label), add_special_tokens=False)
            if len(ids) != 1 or self._tokenizer.decode(ids).strip() != label:
                return None
            found[label] = ids[0]
        return found


def answer(
    request: Request, tokens: Mapping[str, Sequence[int]], logged: Mapping[int, float], **measured: Any
) -> Response:
    """The response with the most likely label as its text.

    tokens: label -> its tokens. logged: token -> natural log-probability as the first token of the answer, over the
    whole vocabulary; the probability of a label is the sum over its tokens. measured: the response's counts and times.
    A tie, or a log-probability that is not finite, gives an error, since no label is chosen.
    """
    likelihoods = {label: _together([logged[token] for token in forms]) for label, forms in tokens.items()}
    if not all(map(math.isfinite, likelihoods.values())):
        found = ", ".join(f"{label} {value}" for label, value in likelihoods.items())
        return Response(request.id, Outcome.ERROR, error=f"log-probabilities that are not finite: {found}", **measured)
    first, second = sorted(likelihoods, key=likelihoods.__getitem__, reverse=True)[:2]
    if likelihoods[first] == likelihoods[second]:
        said = f"a tie: {first} and {second} are equally likely"
        return Response(request.id, Outcome.ERROR, error=said, likelihoods=likelihoods, **measured)
    return Response(request.id, Outcome.OK, text=first, finish_reason=FINISHED, likelihoods=likelihoods, **measured)


def _together(logs: Sequence[float]) -> float:
    """log(sum(exp(logs)))."""
    top = max(logs)
    if not math.isfinite(top):
        return top
    return top + math.log(sum(math.exp(one - top) for one in logs))
