"""What an answer says of the letters in it: which it takes, praises, denies, or cannot decide between.

Every letter is judged in its own clause, by a bounded stretch of text on either side of it, so that the time taken
grows with the length of an answer and no faster. The words are those of `choice_words.yaml`.
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

REACH = 100  # characters on either side of a letter that can tell what is said of it
_CLOSERS = r"[\s)\]\"'>.:]*"
_ASIDE = re.compile(
    r"(?:[)\]\"'>]*\s*(?:\"[^\"\n]{0,300}\"|\([^)\n]{0,300}\)|,\s*(?:however|though|too|on the other hand|in contrast|"
    r"by contrast|in turn|for (?:example|instance)|i (?:think|believe|guess))\s*,))|\s*[)\]]?\s*[-–—]\s",
    re.IGNORECASE,
)


class Stance(Enum):
    """What a clause says of a letter."""

    TAKEN = "taken"  # "the answer is B", "I choose B", a line of its own
    BEST = "best"  # "B fits best"
    GOOD = "good"  # "B is correct"
    DENIED = "denied"  # "not B", "B is less natural"
    ALSO = "also"  # "B is also correct"
    UNDECIDED = "undecided"  # "the answer is A or B", "A and B are correct"


@dataclass(frozen=True, slots=True)
class LetterClaim:
    """place: of the letter in the text, in characters. retracts: a denial that also undoes what was said before, as "B
    is wrong" does and "B is less stereotypical" does not."""

    place: int
    label: str
    stance: Stance
    retracts: bool = False


@lru_cache(maxsize=1)
def words() -> dict[str, str]:
    """Kind of word -> a pattern of all its phrases, in all languages, the longest first."""
    text = resources.files("vibe_harness.extraction").joinpath("choice_words.yaml").read_text(encoding="utf-8")
    kinds: dict[str, dict[str, list[str]]] = yaml.load(text, Loader=yaml.BaseLoader)  # "no" and "true" are words
    kinds["nouns"] = {
        language: kinds["answers"][language] + kinds["options"][language] for language in kinds["answers"]
    }
    return {
        kind: _any(phrase.lower() for spoken in languages.values() for phrase in spoken)
        for kind, languages in kinds.items()
    }


def _any(phrases: Iterable[str]) -> str:
    """A pattern for one of some phrases, whole words only; scripts without blanks between words have no such bounds.

    Phrases that begin alike stand together, and a first character that is a plain literal is passed over quickly.
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
    """The text in small letters, each character in its place."""
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
    """The patterns that do not depend on the labels, made once."""

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
    """The patterns, made when first needed."""
    return _Rules()


@lru_cache(maxsize=64)
def letters(labels: str) -> re.Pattern[str]:
    """A letter as a word of its own; a small one where a mark or the end follows, since "a" is an article."""
    before = r"(?<![A-Za-z0-9À-ɏ_-])(?<![A-Za-zÀ-ɏ]')"
    after = r"(?![A-Za-z0-9À-ɏ_+]|['-][A-Za-z])"
    small = rf"[{labels.lower()}](?=\s*[\])\"'<.:,;!。、]|\s*$|\s*\n|\s+(?:is|seems|fits|was)\b)"
    return re.compile(rf"{before}(?:[{labels}]|{small}){after}")


@dataclass(slots=True)
class _Named:
    """Letters that are named as one ("A and B"), from the first to behind the last."""

    letters: list[tuple[int, str]]  # place, label
    small: bool  # one of them is a small letter

    @property
    def start(self) -> int:
        return self.letters[0][0]

    @property
    def end(self) -> int:
        return self.letters[-1][0] + 1

    @property
    def several(self) -> bool:
        """Whether they are of more than one option."""
        return any(label != self.letters[0][1] for _, label in self.letters)


class Clauses:
    """An answer's letters, each with its clause."""

    def __init__(self, text: str, labels: str) -> None:
        """text: without markup. labels: those offered, capital letters."""
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
        """How many words of a kind stand wholly between two places."""
        spans = self._spans[kind]
        first = bisect_left(spans, (start, 0))
        found = 0
        while first < len(spans) and spans[first][1] <= end:
            found, first = found + 1, first + 1
        return found

    @cached_property
    def named(self) -> list[_Named]:
        """Letters in order, those that are named as one together."""
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
        """What is said of each letter, in the order of the text; a letter of which nothing is said has no claim."""
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
        """Whether a letter is named as one with those before it. After a comma alone, one with a verdict is not."""
        if not self._rules.joined.fullmatch(self._low, last.end, match.start()):
            return False
        if self.text[last.end : match.start()].strip(" )]\"'.") != ",":
            return True
        return not self._rules.verdict.match(self._low, match.end(), match.end() + REACH)

    def _stance(self, named: _Named, following: int, denied: bool) -> Stance | None:
        """following: where the next letters begin. denied: a letter shortly before was denied."""
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
        """Where the sentence of a letter begins, and what ahead of the letter can tell of it."""
        sentence, clause = self._starts(place)
        start = max(clause, place - REACH)
        colon = self._low.rfind(":", start, place) + 1
        if colon and self._rules.cue.search(self._low, colon, place):  # "not a hard question: the answer is B"
            start = colon
        return sentence, start

    def _praise(self, named: _Named, verdict: Stance | None, denied: bool) -> Stance | None:
        """A verdict, where the letter is the subject of its clause; "B does" where another letter was denied."""
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
        """Whether words that take a letter stand right before it."""
        if named.letters[-1][1] == "A" and re.match(r" [A-Z]{2,}", self.text[named.end : named.end + 4]):
            return False  # an article among capitals: THE ANSWER IS A CITY
        return self._rules.cue.search(self._low, start, named.start) is not None

    def _verdict(self, named: _Named, following: int) -> Stance | None:
        """What the rest of the clause says of a letter."""
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
        """Where the first word of a kind begins that stands wholly between two places."""
        spans = self._spans[kind]
        number = bisect_left(spans, (start, 0))
        return spans[number][0] if number < len(spans) and spans[number][1] <= end else None

    def _stands_alone(self, named: _Named) -> bool:
        """Whether a letter is a line or the last sentence of one, or follows "so" or an introduction at its end."""
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
        """Whether another letter stands right before it on its line, as in a list ("A. B. C. D.")."""
        before = self.text[max(0, named.start - 5) : named.start].rpartition("\n")[2]
        return letters(self._labels).search(before) is not None

    def _starts(self, place: int) -> tuple[int, int]:
        """Where the sentence and the clause begin in which a place lies."""
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
    """Where one clause ends and the next begins: around a mark, before a word, and behind one of Korean, whose words of
    this kind end a clause."""
    if match[0].strip()[:1] in ",、;-–—":
        return match.span()
    return (match.end(), match.end()) if match[0][0] >= "\uac00" else (match.start(), match.start())


def _opened(text: str, place: int) -> int:
    """The place behind the blanks and opening marks at a place."""
    match = re.compile(r"[\s\"'(\[]{0,5}").match(text, place)
    return match.end() if match else place
