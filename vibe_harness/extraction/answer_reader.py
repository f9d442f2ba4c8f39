"""Reading which option an answer to a choice task settles on: the letter that a person would take, or none.

Nothing is guessed. An answer that commits itself to no single option is read as unknown (it says so: "both", "cannot
tell") or as unparsed (nothing in it names an option), and neither ever becomes a letter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from vibe_harness.cards.spelling import fold
from vibe_harness.records import Option, Reading

VERSION = 1

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)  # opened by the prompt
_MARKUP = re.compile(r"\*+|__|`+|~~|\\(?:text|mathrm|mathbf|textbf)(?=\{)|[{}$]|\\(?=\W)|^[^\S\n]*[#>]+", re.MULTILINE)
_QUOTES = str.maketrans("“”‘’「」『』【】《》", '""\'\'""""[]""')

_WORD = r"option|answer|ans|choice|letter|continuation|sentence|ending|completion|number|statement"
_NOUN = rf"(?:\s*\b(?:the\s+)?(?:{_WORD})\b)?"
_THING = (
    r"(?:answer|ans|choice|option|selection|pick|response|continuation|ending|completion|conclusion|one|letter)"
    r"(?:\s+(?:that|which)\s+[\w' ]{1,30}?)?(?:\s+(?:here|overall|then|(?:to|for)\s+(?:the|this)\s+question))?"
)
_IS = r"(?:\s+(?:is|was|(?:would|should|must|will|has\s+to|seems\s+to|appears\s+to)\s+be))"
_IT_IS = r"(?:it|that|this)(?:'?s|\s+is|\s+would\s+be)|(?:must|has\s+to|seems\s+to)\s+be|looks\s+like"
_SURELY = r"(?:\s*\b(?:definitely|probably|clearly|certainly|likely|most\s+likely|therefore|thus|simply|indeed)\b,?)?"
_COLON = r"\s*[\"']?\s*(?:[:=]|->|→|-|–|—)\s*"
_OPENER = r"[\s\"'(\[<]*"
_CHOOSE = (
    r"(?:choose|chose|pick|picked|select|selected|go\s+(?:with|for)|going\s+(?:with|for)|opt\s+for|vote\s+for|"
    r"settle\s+on|stick\s+with|stay\s+with|say|answer|guess|think|believe|conclude|lean\s+towards?)"
)
_CUES = (  # a letter right after one of these is a commitment
    rf"\b{_THING}(?:{_IS}|{_COLON}|{_IS}{_COLON}){_SURELY}{_NOUN}(?:\s*[:=])?\s*",
    rf"\b{_CHOOSE}(?:\s+that)?(?:\s+(?:it'?s|it\s+is|is)|\s+the\s+(?:answer|best\s+\w+)\s+is)?"
    rf"{_SURELY}{_NOUN}(?:\s*:)?\s*",
    rf"\b(?:{_IT_IS}|leaves(?:\s+\w+\s+with)?){_SURELY}{_NOUN}\s*",
    rf"\b(?:final|correct|best|right)\s+(?:answer|choice|option){_NOUN}\s*",
    rf"\b(?:correct|best|right|most\s+\w+)(?:\s*:|\s+(?:\w+\s+)?(?:is|would\s+be){_NOUN})\s*",
    r"(?:答案|选项)\s*(?:应该|应|就)?\s*[是为选]?\s*:?\s*(?:选项)?\s*|(?:选择|应选|故选|选)\s*(?:选项)?\s*:?\s*",
    r"(?:정답|답|선택)\s*(?:은|는|이|:)*\s*:?\s*",
)
_SO = (  # and so is one after these, where nothing follows it
    r"(?:^|[.!?,:;\n])\s*(?:therefore|thus|hence|so|definitely|probably|clearly|likely|most\s+likely|maybe|perhaps|"
    r"sure|okay|ok|yes|actually|correction|no|wait)\b[\s,!.:]*(?:it'?s\s+|the\s+answer\s+is\s+)?(?:option\s+)?"
)
_PRAISE = (
    r"\s*[)\].:]*\s*(?:\"[^\"\n]*\"\s*)?"
    r"(?:(?:is|seems|appears|looks|sounds|feels|would\s+be|remains)(?:\s+to\s+be)?"
    r"\s+(?:clearly\s+|definitely\s+|probably\s+|by\s+far\s+)?(?:the\s+)?(?:\w+\s+)?"
    r"(?:best|correct|right|most|more|likeliest|only|one|answer|better|accurate|natural|appropriate)\b|"
    r"it\s+is\b|(?:fits|makes|works|follows|matches|continues)\b(?!\s+no)|"
    r"번|입니다|是(?:正确|最|对)|正确|最合适|가\s*(?:정답|맞))"
)
_NEGATED = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor|hardly|unlikely|doubt|rather\s+than|instead\s+of|why|between|eliminate|"
    r"exclude|rule\s+out)|n't)\b[^,.;:!?\n]{0,24}$|\b(?:if|whether|unless|suppose|supposing)\b[^.;:!?\n]{0,24}$",
    re.IGNORECASE,
)
_JOINED_BEFORE = re.compile(r"(?:\b(?:and|or|nor|both)\b|[/&])\s*(?:option|answer)?\s*[(\[]?\s*$", re.IGNORECASE)
_DECLINES = re.compile(
    r"\b(?:both|neither|none of|all of (?:the|them)|all (?:three|four)|any of|not sure|unsure|unclear|depends)\b|"
    r"\b(?:cannot|can't|can not|could not|couldn't|unable to|not able to|impossible to|hard to)\s+(?:\w+\s+)?"
    r"(?:answer|tell|determine|decide|choose|pick|select|say|know|judge|identify|be determined)\b|"
    r"\b(?:don'?t know|do not know|no (?:correct )?answer|not enough information)\b|"
    r"\bequally (?:likely|plausible|good|valid)\b|无法|不能确定|不确定|不知道|都可以|都不|알 수 없|모르겠|둘 다",
    re.IGNORECASE,
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_QUOTE_CUE = re.compile(
    rf"\b(?:answer|choice|selection|pick|continuation|ending|completion|conclusion|{_CHOOSE})\b|答案|选|정답|답",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
SHORTEST_QUOTE = 3  # letters of a folded option text that may be looked for inside a longer answer


@dataclass(frozen=True, slots=True)
class Choice:
    """What was read: a label only with the reading `value`."""

    reading: Reading
    label: str | None = None


@dataclass(frozen=True, slots=True)
class _Patterns:
    """What finds the letters of one set of labels, each in a group `label`."""

    strong: tuple[re.Pattern[str], ...]  # the answer commits itself
    weak: tuple[re.Pattern[str], ...]  # it praises one option
    bare: re.Pattern[str]  # a line that begins with a letter
    listed: re.Pattern[str]  # a letter as in a list
    several: re.Pattern[str]  # a letter, and right after it another one


def read_choice(answer: str, options: Sequence[Option]) -> Choice:
    """The option that an answer settles on.

    options: as they were offered, in their order; labels are single capital letters. What stands in a block of thought
    is passed over. The last commitment counts ("the answer is C", "I choose (b)", "[[B]]", a line of its own); then one
    option that is praised ("B fits best"); then a line that begins with a letter; then the one option whose text is
    quoted. Letters come before quoted text.
    """
    text = _plain(answer)
    patterns = _patterns(tuple(option.label for option in options))
    commits, unsettled = _commitments(text, patterns, patterns.strong)
    if not commits and not unsettled:
        commits, unsettled = _commitments(text, patterns, patterns.weak)
    ordinal = _ordinal(text, options)
    if ordinal and (not commits or ordinal[0] > commits[-1][0]):
        commits.append(ordinal)
    if commits and (not unsettled or commits[-1][0] > unsettled[-1]):
        return Choice(Reading.VALUE, commits[-1][1])
    if not unsettled:
        label = _bare(text, patterns) or _quoted(text, options)
        if label:
            return Choice(Reading.VALUE, label)
    declined = unsettled or _DECLINES.search(text) or patterns.several.search(text)
    return Choice(Reading.UNKNOWN if declined else Reading.UNPARSED)


def _plain(answer: str) -> str:
    """The answer without thought, markup and extra blanks, its letters and quotation marks in plain forms."""
    text = unicodedata.normalize("NFKC", answer).translate(_QUOTES)
    text = _MARKUP.sub("", _THOUGHT_ENDS.split(_THOUGHT.sub("", text))[-1])
    return "\n".join(line for line in (" ".join(line.split()) for line in text.splitlines()) if line)


def _commitments(
    text: str, patterns: _Patterns, kinds: Sequence[re.Pattern[str]]
) -> tuple[list[tuple[int, str]], list[int]]:
    """Places and labels of the commitments of some kinds, in order; and places where two options are named as one."""
    found: dict[int, str] = {}
    unsettled: set[int] = set()
    for pattern in kinds:
        for match in pattern.finditer(text):
            start, before = match.start("label"), _before(match, "label")
            if _NEGATED.search(before):
                continue
            if patterns.several.match(text, start) or _JOINED_BEFORE.search(before):
                unsettled.add(start)
            else:
                found[start] = match["label"].upper()
    return sorted(found.items()), sorted(unsettled)


def _before(match: re.Match[str], group: str) -> str:
    """What stands right ahead of a group: enough to hold a negation."""
    return match.string[max(0, match.start(group) - 60) : match.start(group)]


def _ordinal(text: str, options: Sequence[Option]) -> tuple[int, str] | None:
    """The last "second option" that an answer commits itself to, with its place."""
    word = rf"(?P<word>{'|'.join(_ORDINALS[: len(options)])}|last)\s+(?:{_WORD}|one)\b"
    forms = (
        rf"(?:{_THING}{_IS}|\b{_CHOOSE})\s+the\s+{word}",
        rf"(?:^|\n)\W*(?:the\s+)?{word}\W*(?:$|\n)",
        rf"\bthe\s+{word}\s+(?:is|seems|sounds|fits|makes)\s+(?:the\s+)?(?:best|correct|right|most|more\s+likely)\b",
    )
    found = [match for form in forms for match in re.finditer(form, text, re.IGNORECASE)]
    kept = [match for match in found if not _NEGATED.search(_before(match, "word"))]
    if not kept:
        return None
    last = max(kept, key=lambda match: match.start("word"))
    ordinal = last["word"].lower()
    return last.start("word"), options[-1 if ordinal == "last" else _ORDINALS.index(ordinal)].label


def _bare(text: str, patterns: _Patterns) -> str | None:
    """The letter of a line that begins with one, where all such lines name the same: a list names several."""
    found = set()
    for line in text.splitlines():
        if match := patterns.bare.match(line.strip()):
            found |= {*patterns.listed.findall(line), match["label"].upper()}
    return found.pop() if len(found) == 1 else None


def _quoted(text: str, options: Sequence[Option]) -> str | None:
    """The one option whose text the answer gives: as a whole, or where it commits itself, or as its last line."""
    by_text = {fold(option.text): option.label for option in options}
    whole = fold(text)
    if whole in by_text:
        return by_text[whole]
    committed = [sentence for sentence in _SENTENCE.split(text) if _QUOTE_CUE.search(sentence)]
    for part in (text, *committed[-1:]):
        named = _named(part, by_text)
        if len(named) == 1:
            return named.pop()
    return by_text.get(fold(text.splitlines()[-1])) if text else None


def _named(part: str, by_text: dict[str, str]) -> set[str]:
    """Labels of the options whose text a part of an answer holds, those inside a longer one's text left out."""
    words = f" {fold(part)} "
    held = [text for text in by_text if len(text) >= SHORTEST_QUOTE and f" {text} " in words]
    longest = [text for text in held if not any(text != other and text in other for other in held)]
    return {by_text[text] for text in longest if not _NEGATED.search(words[: words.index(f" {text} ") + 1])}


@lru_cache(maxsize=64)
def _patterns(labels: tuple[str, ...]) -> _Patterns:
    capital = "".join(labels)
    either = f"(?P<label>[{capital}{capital.lower()}])"
    before, after = r"(?<![A-Za-z0-9-])(?<![A-Za-z]')", r"(?![A-Za-z0-9+]|['-][A-Za-z])"  # a word of its own
    upper = f"{before}(?P<label>[{capital}]){after}"
    # A small letter counts before a bracket or full stop, or where the text ends: "a" is an article.
    small = rf"{before}{either}(?=\s*[\])\"'.:,;!。、]|\s*$|\s*\n){after}"

    def compiled(cue: str, letter: str) -> re.Pattern[str]:  # the cue in any case, the letter as it stands
        return re.compile(f"(?i:{cue}){_OPENER}{letter}", re.MULTILINE)

    strong = [compiled(cue, letter) for cue in _CUES for letter in (upper, small)]
    strong += [
        compiled(_SO, upper + r"(?=[\s.)\]!\"']*(?:$|\n))"),
        re.compile(rf"(?i:\[\[|boxed|<answer>)\s*(?i:option\s*)?\(?{either}\)?(?![A-Za-z0-9'])"),
        re.compile(rf"^\W*(?:(?i:{_WORD})\.?\s*)?[(\[\"'<]*{small}\s*[)\]\"'>.:!。]*\s*$", re.MULTILINE),
    ]
    return _Patterns(
        strong=tuple(strong),
        weak=(re.compile(rf"(?:(?i:{_WORD})\s*)?[(\[\"']*{upper}(?i:{_PRAISE})", re.MULTILINE),),
        bare=re.compile(
            rf"^(?:[-•]\s*)?(?:(?i:{_WORD})\.?\s+)?[(\[\"'<]*{either}"
            r"(?:[)\]>.:,\"'。、]+(?=\s|$|[^\x00-\x7f]|[A-Z])|\s*[-–—]\s|"
            r"\s+(?i:because|since|as\s+the|as\s+it|for\s+sure)\b|\s*$)"
        ),
        listed=re.compile(rf"{before}[{capital}](?=[).:]\s|,|$)"),
        several=re.compile(
            rf"{before}[{capital}{capital.lower()}][)\]\"'.]*\s*"
            r"(?:(?i:\bor\b|\band\b|\bas\s+well\s+as\b)|[,/&+]|或|和|또는|와|과)+\s*(?i:and|or)?\s*(?i:option|answer)?\s*"
            rf"[(\[\"']*[{capital}]{after}"
        ),
    )
