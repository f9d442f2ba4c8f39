"""Reading the letter of the option that an answer to a choice task chooses, as a person would read it.

Nothing is guessed. An answer that does not choose exactly one option is read as unknown (it says so: "both", "cannot
tell") or as unparsed (it names no option); neither ever becomes a letter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from vibe_harness.cards.spelling import fold
from vibe_harness.extraction.choice_clauses import Clauses, LetterClaim, Stance, letters, rules, words
from vibe_harness.records import Option, Reading

VERSION = 2
SHORTEST_QUOTE = 3  # shortest folded option text that is searched for inside an answer, in characters

_MARKUP = re.compile(
    r"~~[^~\n]{0,200}~~|\*+|__|`+|\\(?:text|mathrm|mathbf|textbf)(?=\{)|[{}$]|\\(?=\W)|^[^\S\n]{0,8}[#>]+|"
    r"</?(?:b|i|u|em|strong|p|br|span)\s?/?>",
    re.MULTILINE | re.IGNORECASE,
)
_BOXED = re.compile(r"\\?\bboxed\s?\{")
_QUOTES = str.maketrans("“”‘’「」『』【】《》＂", '""\'\'""""[]"""')
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_REPEATED = re.compile(r"([^\w\s.])\1{2,}")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_FOLDED_NOT = re.compile(r"\b(?:is|are|was|were|do|does|did|wo|would|ca|could|should)nt\b")  # "isn't", folded
_CANNOT = (
    r"\b(?:cannot|can't|can not|could not|couldn't|unable to|not able to|impossible to|hard to)\s+(?:\w+\s+)?"
    r"(?:answer|tell|determine|decide|choose|pick|select|say|know|judge|identify|be determined)\b"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """A reading. The label is set only with the reading `value`."""

    reading: Reading
    label: str | None = None


def read_choice(answer: str, options: Sequence[Option]) -> Choice:
    """Find the option that an answer chooses.

    answer: without the model's reasoning. options: as offered, in order; labels are single capital letters.

    In order of precedence: the last statement of a choice ("the answer is C", "I choose (b)", "[[B]]", a line of its
    own); the only option with a positive verdict ("B fits best"); a line that begins with a letter; the only option
    whose text is quoted. An option that the answer later rejects is not chosen.
    """
    text = _plain(answer, options)
    labels = "".join(option.label for option in options)
    clauses = Clauses(_without_option_letters(text, options), labels)
    claims = clauses.claims()
    settled = _settled(claims)
    if settled and settled.stance is not Stance.UNDECIDED:
        return Choice(Reading.VALUE, settled.label)
    if all(claim.stance is Stance.DENIED for claim in claims):
        label = _headed(clauses, labels, claims) or _quoted(text, options)
        if label and not any(claim.retracts and claim.label == label for claim in claims):
            return Choice(Reading.VALUE, label)
    several = any(named.several for named in clauses.named)
    undecided = settled is not None or several or _declines().search(text)
    return Choice(Reading.UNKNOWN if undecided else Reading.UNPARSED)


def _settled(claims: Sequence[LetterClaim]) -> LetterClaim | None:
    """The claim that decides the answer; an undecided one if none does, None if there are no claims."""
    last_of = {claim.stance: claim for claim in claims}
    undecided = last_of.get(Stance.UNDECIDED)
    last = last_of.get(Stance.TAKEN) or last_of.get(Stance.BEST) or last_of.get(Stance.GOOD)
    if last is None or (undecided and undecided.place > last.place):
        return undecided
    retracted = any(claim.retracts and claim.label == last.label and claim.place > last.place for claim in claims)
    good = {claim.label for claim in claims if claim.stance in (Stance.GOOD, Stance.ALSO)}
    if retracted or (last.stance is Stance.GOOD and len(good) > 1):
        return LetterClaim(last.place, last.label, Stance.UNDECIDED)
    return last


def _plain(answer: str, options: Sequence[Option]) -> str:
    """The answer without markup and extra spaces, with plain letters and quotation marks, and with letters for ordinals
    ("the second option")."""
    text = unicodedata.normalize("NFKC", answer).translate(_QUOTES)
    text = _MARKUP.sub("", _BOXED.sub("[[", text)).replace("_", " ")
    lines = (_REPEATED.sub(r"\1", " ".join(line.split())) for line in text.splitlines())
    text = "\n".join(line for line in lines if line.strip("!?.,;:-=#|/\\ "))
    text = _idioms().sub("", text)
    by_place = {word: option.label for word, option in zip(_ORDINALS, options, strict=False)}
    if options:
        by_place["last"] = options[-1].label
    return _ordinals().sub(lambda one: f"option {by_place[one['place'].lower()]}" if one["place"].lower() in by_place
                           else one[0], text)  # fmt: skip


def _without_option_letters(text: str, options: Sequence[Option]) -> str:
    """The text with option texts blanked that contain something like a letter ("Vitamin C")."""
    labels = "".join(option.label for option in options)
    for option in options:
        quote = option.text.strip()
        if len(quote) >= SHORTEST_QUOTE and letters(labels).search(quote):
            text = re.sub(re.escape(quote), lambda found: "·" * len(found[0]), text, flags=re.IGNORECASE)
    return text


def _headed(clauses: Clauses, labels: str, claims: Sequence[LetterClaim]) -> str | None:
    """The letter that lines begin with, if all such lines have the same one (a list has several). Rejected letters do
    not count."""
    found: set[str] = set()
    denied = {claim.place: claim.label for claim in claims}
    heading, listed = _heading(labels)
    start = 0
    for line in clauses.text.split("\n"):
        if (match := heading.match(line)) and start + match.start("label") not in denied:
            found |= {match["label"].upper(), *(set(listed.findall(line)) - set(denied.values()))}
        start += len(line) + 1
    return found.pop() if len(found) == 1 else None


def _quoted(text: str, options: Sequence[Option]) -> str | None:
    """The only option whose text is quoted: as the whole answer, in its statement of a choice, or as its last line."""
    by_text = {fold(option.text): option.label for option in options}
    whole = fold(text)
    if whole in by_text:
        return by_text[whole]
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence]
    cue = _quote_cue()
    for part in (sentences, [sentence for sentence in sentences if cue.search(sentence)][-1:]):
        named = _named(part, by_text)
        if len(named) == 1:
            return named.pop()
    return by_text.get(fold(text.splitlines()[-1])) if text else None


def _named(sentences: Sequence[str], by_text: dict[str, str]) -> set[str]:
    """Labels of the options whose text is in some sentences and is not rejected there. A text that is part of a longer
    option's text does not count."""
    said = [f" {fold(sentence)} " for sentence in sentences]
    whole = f" {' '.join(' '.join(said).split())} "
    held = [text for text in by_text if len(text) >= SHORTEST_QUOTE and f" {text} " in whole]
    longest = [text for text in held if not any(text != other and text in other for other in held)]
    return {by_text[text] for text in longest if not any(_denied(sentence, text) for sentence in said)}


def _denied(said: str, text: str) -> bool:
    """Whether a folded sentence rejects the option whose text it contains."""
    at = said.find(f" {text} ")
    if at < 0:
        return False
    before, after = said[max(0, at - 30) : at + 1], said[at + len(text) + 1 : at + len(text) + 30]
    if cut := _clause_words().search(after):
        after = after[: cut.start()]
    return any(
        pattern.search(near)
        for pattern in (*(rules().kinds[kind] for kind in ("negations", "faults")), _FOLDED_NOT)
        for near in (before, after)
    )


@lru_cache(maxsize=1)
def _clause_words() -> re.Pattern[str]:
    return re.compile(words()["clauses"], re.IGNORECASE)


@lru_cache(maxsize=1)
def _quote_cue() -> re.Pattern[str]:
    return re.compile(f"{words()['answers']}|{words()['choosing']}", re.IGNORECASE)


@lru_cache(maxsize=1)
def _idioms() -> re.Pattern[str]:
    return re.compile(words()["idioms"], re.IGNORECASE)


@lru_cache(maxsize=1)
def _declines() -> re.Pattern[str]:
    return re.compile(f"{words()['declines']}|{_CANNOT}", re.IGNORECASE)


@lru_cache(maxsize=1)
def _ordinals() -> re.Pattern[str]:
    """Matches "the second option", also without "the" at the beginning of a line."""
    nouns = r"option|answer|choice|letter|continuation|sentence|ending|completion|statement|one"
    place = "|".join([*_ORDINALS, "last"])
    return re.compile(rf"(?:\bthe |^)(?P<place>{place}) (?:{nouns})\b", re.IGNORECASE | re.MULTILINE)


@lru_cache(maxsize=64)
def _heading(labels: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a line that begins with a letter, and of a letter in a list."""
    either = f"(?P<label>[{labels}{labels.lower()}])"
    heading = re.compile(
        rf"(?:[-•]\s?)?(?:(?i:{words()['nouns']})\.?\s)?[(\[\"'<]{{0,3}}{either}"
        r"(?:[)\]>.:,!\"'。、]{1,4}(?=\s|$|[^\x00-\x7f]|[A-Z])|\s?[-–—]\s|"
        r"\s(?i:because|since|as\s+the|as\s+it|for\s+sure)\b|$|(?=\s(?:\(|(?:and\s)?not\b)))"
    )
    return heading, re.compile(rf"(?<![A-Za-z0-9-])[{labels}](?=[).:]\s|,|$)")
