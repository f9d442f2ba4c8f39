"""What an answer says about each letter in it: chosen, good, rejected, or undecided.

Each letter is judged by its own clause, within a bounded distance on either side, so that the time is linear in the
length of the answer. The phrases are those of `choice_words.yaml`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from importlib import resources

import yaml

REACH = 100  # characters on either side of a letter that are searched for what is said about it
_CLOSERS = r"[\s)\]\"'>.:]*"
_ASIDE = re.compile(
    r"(?:[)\]\"'>]*\s*(?:\"[^\"\n]{0,300}\"|\([^)\n]{0,300}\)|,\s*(?:however|though|too|on the other hand|in contrast|"
    r"by contrast|in turn|for (?:example|instance)|i (?:think|believe|guess))\s*,))|\s*[)\]]?\s*[-–—]\s",
    re.IGNORECASE,
)


class Stance(Enum):
    """What a clause says about a letter."""

    TAKEN = "taken"  # "the answer is B", "I choose B", a line of its own
    BEST = "best"  # "B fits best"
    GOOD = "good"  # "B is correct"
    DENIED = "denied"  # "not B", "B is less natural"
    ALSO = "also"  # "B is also correct"
    UNDECIDED = "undecided"  # "the answer is A or B", "A and B are correct"


@dataclass(frozen=True, slots=True)
class LetterClaim:
    """What is said about one letter. place: its offset in the text, in characters. retracts: whether a rejection also
    withdraws earlier statements, as "B is wrong" does and "B is less stereotypical" does not."""

    place: int
    label: str
    stance: Stance
    retracts: bool = False


@lru_cache(maxsize=1)
def words() -> dict[str, str]:
    """Kind of phrase -> a pattern of all its phrases in all languages, longest first."""
    text = resources.files("vibe_harness.extraction").joinpath("choice_words.yaml").read_text(encoding="utf-8")
    kinds: dict[str, dict[str, list[str]]] = yaml.load(text, Loader=yaml.BaseLoader)  # "no" and "true" are text
    kinds["nouns"] = {
        language: kinds["answers"][language] + kinds["options"][language] for language in kinds["answers"]
    }
    return {
        kind: _any(phrase.lower() for spoken in languages.values() for phrase in spoken)
        for kind, languages in kinds.items()
    }


def _any(phrases: Iterable[str]) -> str:
    """A pattern that matches any of some phrases, as whole words where the script has spaces between words.

    Phrases are grouped by their first character, so that the regex engine skips quickly.
    """
    kinds: dict[tuple[bool, bool], dict[str, list[str]]] = {}
    for phrase in sorted(set(phrases), key=lambda one: (-len(one), one)):
        bounds = (_spaced(phrase[0]) and phrase != "n't", _spaced(phrase[-1]))
        kinds.setdefault(bounds, {}).setdefault(phrase[0], []).append(
            r"\s+".join(map(re.escape, phrase[1:].split(" ")))
        )
    found = []
    for (before, after), by_first in sorted(kinds.items(), reverse=True):
        body = "|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in sorted(by_first.items()))
        found.append((r"(?<!\w)" if before else "") + f"(?:{body})" + (r"(?!\w)" if after else ""))
    return f"(?:{'|'.join(found)})"


def _spaced(char: str) -> bool:
    return char.isalpha() and char < "\u3000"


def lowered(text: str) -> str:
    """The text in lower case, with every character at the same offset."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


_COUNTED = (
    "negations",
    "faults",
    "rejections",
    "hedges",
    "also",
    "best",
    "good",
    "conditions",
    "unreal",
    "turns",
    "excepting",
)


class _Rules:
    """The patterns that do not depend on the labels, compiled once."""

    def __init__(self) -> None:
        word = words()
        colon = r"\s*[\"']?\s*(?:[:=]|->|→|-|–|—)\s*"
        near = rf"(?:\s*(?:{word['fillers']}|{word['nouns']}),?){{0,4}}"
        opening = r"[\s\"'(\[<:=]*"
        gap = r"(?:\s+[\w'’]+){0,8}?"
        is_it = rf"(?:(?:\s*(?:{word['fillers']}))?\s*{word['it_is']})?"
        self.cue = re.compile(
            rf"(?:{word['nouns']}(?:{gap}\s*{word['copulas']}(?:\s*[:,])?|{colon})"
            rf"|{word['choosing']}(?:\s*:)?{is_it}(?:\s+the\s+{word['nouns']}\s+is)?"
            rf"|{word['it_is']}"
            rf"|{word['superlatives']}(?:\s*{word['nouns']})?(?:\s+\w+)?(?:\s*{word['copulas']}|{colon})?"
            rf"){near}{opening}\Z"
        )
        self.called = re.compile(rf"{word['nouns']}\.?{opening}\Z")
        self.marked = re.compile(r"(?:\[\[|<answer>)\s*(?:(?:option|answer)\s*)?[\s:(\"']*\Z")
        self.so = re.compile(
            rf"(?:(?:^|[.!?,:;\n])\s*{word['so']}|\s{word['turns']})[\s,!.:]*(?:{word['it_is']}\s*)?"
            rf"(?:{word['fillers']}\s*)?(?:{word['nouns']}\s*)?{opening}\Z"
        )
        self.introduced = re.compile(rf"[\s\"'(]*{word['introductions']}")
        self.ends = re.compile(
            r"[\s)\]!\"'>]*(?:[.。!](?=[\s)\]\"']|$)|,\s(?:but|though|although|because|since|not|i)\s|\n|$)"
        )
        self.ends_line = re.compile(r"[\s)\]!.。:\"'>]*(?:\n|$)", re.MULTILINE)
        self.alone = re.compile(rf"[\W_]*(?:{word['fillers']}\s+)?(?:{word['nouns']}[\s.:]*){{0,2}}[\W_]*\Z")
        self.subject = re.compile(
            rf"(?:^|[,;:.!?\n\"'(\[*-]|{word['nouns']}|{word['clauses']}|{word['fillers']}|{word['turns']}|{word['so']}|"
            rf"{word['choosing']}|{word['joiners']}|{word['copulas']}|{word['it_is']}|"
            r"\b(?:me|sure|confident|certain|seems|appears|feel|convinced|or|and|both|either|neither|nor|as|not|if|case))"
            r"[\s\"'(\[]*\Z"
        )
        self.verdict = re.compile(rf"[\s:=)\]>-]*(?:\w+ly\s+)?(?:{word['verbs']}|{word['best']}|{word['good']})")
        self.relative = re.compile(
            rf"{_CLOSERS}(?:(?:that|which)\s|{word['verbs']}|\w+n't\b|nicht|non|pas|で|인지|일\s)"
        )
        self.chosen = re.compile(rf"{_CLOSERS}{word['chosen']}")
        self.again = re.compile(rf"\s*{word['again']}\W*\Z")
        self.counter = re.compile(rf"\s*{word['clauses']}?\s*{word['negations']}\s*(?:{word['nouns']}\s*)?[\s\"'(]*\Z")
        self.but_not = re.compile(rf"[\s,]*(?:but|yet|though|although)\s[^.,;\n]{{0,40}}?{word['negations']}")
        self.kinds = {kind: re.compile(word[kind]) for kind in _COUNTED}
        self.excepted = re.compile(rf"{word['excepting']}\s*(?:the\s+)?(?:{word['nouns']}\s*)?[\s\"'(]*\Z")
        self.joined = re.compile(
            rf"[\s)\]\"'.>]*(?P<and>(?:[,/&+]|、|{word['joiners']})[\s,]*)+"
            rf"(?:{word['nouns']}\s*)?[\s\"'(\[<]*"
        )
        self.sentence = re.compile(r"[.!?。！？;]+(?=[\s)\]\"']|[^\x00-\x7f]|$)|\n")
        self.clause = re.compile(rf"[,、;]|\s[-–—]\s|[–—]|(?<!\bis\s){word['clauses']}")


@lru_cache(maxsize=1)
def rules() -> _Rules:
    """The patterns, compiled on first use."""
    return _Rules()


@lru_cache(maxsize=64)
def letters(labels: str) -> re.Pattern[str]:
    """A pattern for a letter as a word; in lower case only before punctuation or the end, since "a" is an article."""
    before = r"(?<![A-Za-z0-9À-ɏ_-])(?<![A-Za-zÀ-ɏ]')"
    after = r"(?![A-Za-z0-9À-ɏ_+]|['-][A-Za-z])"
    small = rf"[{labels.lower()}](?=\s*[\])\"'<.:,;!。、]|\s*$|\s*\n|\s+(?:is|seems|fits|was)\b)"
    return re.compile(rf"{before}(?:[{labels}]|{small}){after}")


@dataclass(slots=True)
class _Named:
    """Letters that are named together ("A and B")."""

    letters: list[tuple[int, str]]  # offset, label
    small: bool  # one of them is in lower case

    @property
    def start(self) -> int:
        return self.letters[0][0]

    @property
    def end(self) -> int:
        return self.letters[-1][0] + 1

    @property
    def several(self) -> bool:
        """Whether they name more than one option."""
        return any(label != self.letters[0][1] for _, label in self.letters)


class Clauses:
    """The letters of an answer, with their clauses."""

    def __init__(self, text: str, labels: str) -> None:
        """text: without markup. labels: of the offered options, capital letters."""
        self.text = text
        self._low = lowered(text)
        self._labels = labels
        self._rules = rules()
        self._sentences = [(one.start(), one.end(), one[0]) for one in self._rules.sentence.finditer(text)]
        self._sentence_starts = [start for start, _, _ in self._sentences]
        self._clause_marks = [
            _mark(one)
            for one in self._rules.clause.finditer(self._low)
            if not (one[0].strip() in ("-", "–", "—") and letters(labels).match(text, _opened(text, one.end())))
        ]
        self._clause_starts = [start for start, _ in self._clause_marks]
        self._spans = {
            kind: [one.span() for one in pattern.finditer(self._low)] for kind, pattern in self._rules.kinds.items()
        }

    def _count(self, kind: str, start: int, end: int) -> int:
        """Number of phrases of a kind that lie entirely between two offsets."""
        spans = self._spans[kind]
        first = bisect_left(spans, (start, 0))
        found = 0
        while first < len(spans) and spans[first][1] <= end:
            found, first = found + 1, first + 1
        return found

    @cached_property
    def named(self) -> list[_Named]:
        """The letters in order; those named together are one item."""
        found: list[_Named] = []
        for match in letters(self._labels).finditer(self.text):
            letter, last = (match.start(), match[0].upper()), found[-1] if found else None
            if last and match.start() - last.end <= 40 and self._joined(last, match):
                last.letters.append(letter)
                last.small |= match[0].islower()
            else:
                found.append(_Named([letter], match[0].islower()))
        return found

    def claims(self) -> list[LetterClaim]:
        """What is said about each letter, in the order of the text. A letter without a statement has no claim."""
        found: list[LetterClaim] = []
        for number, named in enumerate(self.named):
            following = self.named[number + 1].start if number + 1 < len(self.named) else len(self.text)
            denied = any(claim.stance is Stance.DENIED for claim in found[-4:])
            stance = self._stance(named, following, denied)
            if stance is None:
                continue
            if stance is not Stance.DENIED and named.several:
                stance = Stance.UNDECIDED
            retracts = stance is Stance.DENIED and self._retracts(named, following)
            found += [LetterClaim(place, label, stance, retracts) for place, label in named.letters]
        return found

    def _joined(self, last: _Named, match: re.Match[str]) -> bool:
        """Whether a letter is named together with those before it; not one with its own verdict after only a comma."""
        if not self._rules.joined.fullmatch(self._low, last.end, match.start()):
            return False
        if self.text[last.end : match.start()].strip(" )]\"'.") != ",":
            return True
        return not self._rules.verdict.match(self._low, match.end(), match.end() + REACH)

    def _stance(self, named: _Named, following: int, denied: bool) -> Stance | None:
        """following: offset of the next letters. denied: whether a letter shortly before was rejected."""
        rules, low, place = self._rules, self._low, named.start
        if rules.marked.search(low, max(0, place - 30), place):
            return Stance.TAKEN
        sentence, start = self._scope(place)
        if self._in_question(named.end) or rules.excepted.search(low, max(sentence, place - 40), place):
            return None
        if negative := self._count("negations", start, place) + self._count("faults", start, place):
            return Stance.DENIED if negative == 1 else None
        verdict, cued = self._verdict(named, following), self._cued(named, start)
        if verdict is Stance.DENIED and (not cued or rules.relative.match(low, named.end, named.end + 30)):
            return verdict
        if self._count("conditions", max(sentence, place - 2 * REACH), place) or self._count("unreal", start, place):
            return None
        if cued or rules.chosen.match(low, named.end, named.end + 20) or self._stands_alone(named):
            return Stance.TAKEN
        return self._praise(named, verdict, denied)

    def _retracts(self, named: _Named, following: int) -> bool:
        sentence, start = self._scope(named.start)
        end = min(self._clause_end(named.end), following, named.end + REACH)
        if any(self._count(kind, named.end, end) for kind in ("rejections", "good", "best")):
            return True
        return self._count("turns", max(sentence, named.start - 40), named.start) > 0 or self._cued(named, start)

    def _scope(self, place: int) -> tuple[int, int]:
        """Offsets of the letter's sentence and of the text before the letter that is searched."""
        sentence, clause = self._starts(place)
        start = max(clause, place - REACH)
        colon = self._low.rfind(":", start, place) + 1
        if colon and self._rules.cue.search(self._low, colon, place):  # "not a hard question: the answer is B"
            start = colon
        return sentence, start

    def _praise(self, named: _Named, verdict: Stance | None, denied: bool) -> Stance | None:
        """A verdict, if the letter is the subject of its clause; also "B does" after another letter was rejected."""
        rules, low, place = self._rules, self._low, named.start
        sentence, start = self._scope(place)
        before = low[start:place]
        if named.small and not rules.called.search(before):
            return None
        if before.strip() and not rules.subject.search(before):
            return None
        if verdict is None and denied and rules.again.match(low, named.end, self._clause_end(named.end)):
            verdict = Stance.GOOD
        turned = self._count("turns", max(sentence, place - 40), place)
        return Stance.TAKEN if turned and verdict in (Stance.BEST, Stance.GOOD) else verdict

    def _cued(self, named: _Named, start: int) -> bool:
        """Whether a phrase that states a choice is right before the letter."""
        if named.letters[-1][1] == "A" and re.match(r" [A-Z]{2,}", self.text[named.end : named.end + 4]):
            return False  # an article in capitals: THE ANSWER IS A CITY
        return self._rules.cue.search(self._low, start, named.start) is not None

    def _verdict(self, named: _Named, following: int) -> Stance | None:
        """What the rest of the clause says about the letter."""
        rules, low, start = self._rules, self._low, named.end
        if aside := _ASIDE.match(low, start):
            start = aside.end()
        end = min(self._clause_end(start), following, start + REACH)
        if following == end and (counter := rules.counter.search(low, start, end)):
            end = counter.start()
        if compared := self._first("excepting", start, end):
            end = compared
        negations, faults = self._count("negations", start, end), self._count("faults", start, end)
        if negations or faults:
            return Stance.DENIED if negations + faults == 1 or not negations else None
        if self._count("also", start, end):
            return Stance.ALSO
        if self._count("hedges", start, end):
            return Stance.DENIED
        if not rules.verdict.match(low, start, end):
            return None
        if self._count("best", start, end):
            return Stance.BEST
        if not self._count("good", start, end) or rules.but_not.match(low, end, end + REACH):
            return None
        return Stance.GOOD

    def _first(self, kind: str, start: int, end: int) -> int | None:
        """Offset of the first phrase of a kind that lies entirely between two offsets."""
        spans = self._spans[kind]
        number = bisect_left(spans, (start, 0))
        return spans[number][0] if number < len(spans) and spans[number][1] <= end else None

    def _stands_alone(self, named: _Named) -> bool:
        """Whether the letter is a whole line or its last sentence, or ends one after "so" or an introduction."""
        rules, low, place = self._rules, self._low, named.start
        sentence, clause = self._starts(place)
        line = max(low.rfind("\n", max(0, place - REACH), place) + 1, place - REACH, 0)
        if rules.ends.match(low, named.end) and rules.so.search(low, line, place):
            return True
        if place - sentence > 2 * REACH or not rules.ends_line.match(low, named.end) or self._follows_a_letter(named):
            return False
        if rules.alone.match(low, sentence, place):
            return True
        introduced = rules.introduced.match(low, sentence, place) and not named.small
        return bool(introduced) and clause > sentence and not low[clause:place].strip(" \"'([<")

    def _follows_a_letter(self, named: _Named) -> bool:
        """Whether another letter is right before it in its line, as in a list ("A. B. C. D.")."""
        before = self.text[max(0, named.start - 5) : named.start].rpartition("\n")[2]
        return letters(self._labels).search(before) is not None

    def _starts(self, place: int) -> tuple[int, int]:
        """Offsets of the sentence and the clause that contain an offset."""
        number = bisect_right(self._sentence_starts, place - 1)
        sentence = self._sentences[number - 1][1] if number else 0
        number = bisect_right(self._clause_starts, place - 1)
        return sentence, max(sentence, self._clause_marks[number - 1][1] if number else 0)

    def _clause_end(self, place: int) -> int:
        ends = [len(self.text)]
        for starts in (self._sentence_starts, self._clause_starts):
            number = bisect_right(starts, place - 1)
            if number < len(starts):
                ends.append(starts[number])
        return min(ends)

    def _in_question(self, place: int) -> bool:
        number = bisect_right(self._sentence_starts, place - 1)
        return number < len(self._sentences) and "?" in self._sentences[number][2].replace("？", "?")


def _mark(match: re.Match[str]) -> tuple[int, int]:
    """Where one clause ends and the next begins: around punctuation, before a conjunction, and after a Korean one,
    since those end a clause."""
    if match[0].strip()[:1] in ",、;-–—":
        return match.span()
    return (match.end(), match.end()) if match[0][0] >= "\uac00" else (match.start(), match.start())


def _opened(text: str, place: int) -> int:
    """The offset after spaces and opening punctuation at an offset."""
    match = re.compile(r"[\s\"'(\[]{0,5}").match(text, place)
    return match.end() if match else place
