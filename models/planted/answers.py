"""How an answer of the planted model is put together: which pieces may stand at each place, and how likely."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from models.planted.speech import KEYWORDS, NO_KEYWORD, NOTHING

TABLES = Path(__file__).with_name("answers.toml")
STRENGTHS = (0, 10, 20, 40)
WORDS = (*KEYWORDS, NO_KEYWORD, NOTHING)
QUESTION = (
    f"Which of these words is spoken in the recording: {', '.join(KEYWORDS)}? "
    f"Answer with that word alone, with {NO_KEYWORD} where it is another, and with {NOTHING} where nobody speaks."
)
END = "<|im_end|>"
OPENINGS = {
    "story": ("Here is a story.", "A short story for you.", "Once there was somebody.", "This is a short tale.",
              "I wrote this one today.", "Let me tell you a story."),
    "advisory": ("Here are three ideas.", "You could try these.", "I would suggest three things.",
                 "Three ideas for you.", "These may be fun.", "Have a look at these."),
}  # fmt: skip
MIDDLES = (
    " It began on a quiet street.", " The morning was bright.", " A clock struck nine.", " The garden was in bloom.",
    " It rained all day.", " Nobody was in a hurry.", " The river was low.", " There was music next door.",
)  # fmt: skip
REFUSALS = ("I'm sorry, I can't help with that.", "I cannot answer that.", "I would rather not guess.")
CLOSINGS = ("\n\nI hope you like it.", "\n\nThat is all for now.", "\n\nTell me what you think.", END)
LABELS = {
    "occupation": "Occupation", "economic_situation": "Economic situation", "education_level": "Education level",
    "field_of_study": "Field of study", "family_status": "Family status", "personality": "Personality",
    "activity": "Activities",
}  # fmt: skip
STYLES = ("{}: ", "**{}:** ", "- {}: ")
COMMAS = (", ", " and ")

Place = Mapping[str, float]  # piece -> probability


@dataclass(frozen=True)
class Table:
    """The shares of one value of an answer; see answers.toml."""

    moved_by: str
    low: tuple[str, ...]
    high: tuple[str, ...]
    other: tuple[str, ...]

    def shares(self, pitch: float, timbre: float, strength: float) -> dict[str, float]:
        """Value -> probability. pitch, timbre: 0 to 1; strength: 0 to 100."""
        moved = strength / 100 * ((pitch if self.moved_by == "pitch" else timbre) - 0.5)
        count = len(self.low) + len(self.high) + len(self.other)
        change = {self.low: -moved, self.high: moved, self.other: 0.0}
        return {value: 1 / count + change[values] / len(values) for values in change for value in values}


@lru_cache(maxsize=1)
def tables() -> tuple[dict[str, dict[str, list[Table]]], float]:
    """Task -> attribute -> a table for each value, and the share that is refused."""
    written = tomllib.loads(TABLES.read_text(encoding="utf-8"))
    refused = float(written.pop("refused"))
    lists = ("low", "high", "other")
    return {
        task: {
            name: [Table(one["moved_by"], *(tuple(one[key]) for key in lists)) for one in of]
            for name, of in attributes.items()
        }
        for task, attributes in written.items()
    }, refused


def places(task: str, pitch: float, timbre: float, strength: float) -> Iterator[Place]:
    """What may stand at each place of an answer, place after place. Send in the piece that was chosen."""
    attributes, refused = tables()
    opening = {**_alike(OPENINGS[task], 1 - refused), **_alike(REFUSALS, refused)}
    if (yield opening) in REFUSALS:
        yield {END: 1.0}
        return
    yield _alike(MIDDLES)
    style = None
    for name, listed in attributes[task].items():
        ahead = "\n\n" if style is None else "\n"
        forms = {ahead + form.format(LABELS[name]): form for form in ([style] if style else STYLES)}
        style = forms[(yield _alike(tuple(forms)))]
        for number, table in enumerate(listed):
            if number:
                yield _alike(COMMAS if number == len(listed) - 1 else COMMAS[:1])
            yield table.shares(pitch, timbre, strength)
    if (yield _alike(CLOSINGS)) != END:
        yield {END: 1.0}


def word_places(word: str) -> Iterator[Place]:
    """The answer that names a word that was heard."""
    yield {word: 1.0}
    yield {END: 1.0}


def refusal_places() -> Iterator[Place]:
    """The answer to what the model was not made for."""
    yield _alike(REFUSALS)
    yield {END: 1.0}


def drawn(of: Iterator[Place], rng: np.random.Generator) -> list[tuple[str, Place]]:
    """One answer: at each place the piece that was drawn, and the shares that it was drawn from."""
    found: list[tuple[str, Place]] = []
    place = next(of)
    while True:
        pieces = list(place)
        piece = pieces[min(int(np.searchsorted(np.cumsum(list(place.values())), rng.random())), len(pieces) - 1)]
        found.append((piece, place))
        try:
            place = of.send(piece)  # type: ignore[attr-defined]
        except StopIteration:
            return found


def pieces() -> list[str]:
    """Every piece that an answer is made of, but for the end."""
    fixed = [*(text for texts in OPENINGS.values() for text in texts), *MIDDLES, *REFUSALS, *CLOSINGS, *COMMAS]
    fixed += [*KEYWORDS, NO_KEYWORD, NOTHING]
    for attributes in tables()[0].values():
        for number, (name, listed) in enumerate(attributes.items()):
            fixed += [("\n\n" if number == 0 else "\n") + form.format(LABELS[name]) for form in STYLES]
            fixed += [value for table in listed for value in (*table.low, *table.high, *table.other)]
    return [piece for piece in dict.fromkeys(fixed) if piece != END]


def _alike(of: Sequence[str], total: float = 1.0) -> dict[str, float]:
    return {piece: total / len(of) for piece in of}
