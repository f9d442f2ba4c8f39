"""Check task cards: errors that would stop a run, and problems that would make its scores misleading."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vibe_harness.authoring.prompt_words import LEADS, prompt_words
from vibe_harness.authoring.trial import CLIPS, EXTRACTOR, run_trial
from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.cards.paths import find_file
from vibe_harness.cards.spelling import fold
from vibe_harness.cards.yaml_file import CardSource, read_card
from vibe_harness.corpora.card import corpus_cards, load_corpus_card
from vibe_harness.corpora.importers.base import IMPORTERS
from vibe_harness.corpora.registry import corpus_manifests, find_corpus
from vibe_harness.errors import UserError
from vibe_harness.extraction.canonical import alike
from vibe_harness.kinds.base import kind_of
from vibe_harness.planning.preflight_checks import check_metrics
from vibe_harness.registry import did_you_mean

FEWEST_OFFERED = 2
"""Values of a closed attribute that a prompt holds at least, where it offers them."""
RESPONSE = "[a response, put in by the check]"
_PLACED = re.compile(r"(?P<place>.+?:\d+): (?P<message>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of a card."""

    place: str  # "FILE:LINE", or a file
    message: str  # what is wrong and how to fix it

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True, slots=True)
class CheckedTask:
    """The result of checking a task card."""

    card: Path
    findings: tuple[Finding, ...]
    prompts: Mapping[str, str]  # variant -> rendered prompt, of those that render
    tried: tuple[str, ...] = ()  # what was looked at, in words, in that order

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        findings = [{"place": finding.place, "message": finding.message} for finding in self.findings]
        return {
            "card": str(self.card), "findings": findings, "prompts": dict(self.prompts), "tried": list(self.tried)
        }  # fmt: skip


def check_tasks(
    asked: Sequence[str], include_paths: Sequence[Path] = (), *, trust_remote_code: bool = False
) -> list[CheckedTask]:
    """Check task cards, given as names, globs, card files, or folders with tasks/.

    Raises UserError if a name or a folder matches no card. Problems of a card are returned as findings.
    """
    return [check_task(card, index, trust_remote_code) for card, index in _cards(asked, include_paths)]


def check_task(card: Path, index: CardIndex, trust_remote_code: bool = False) -> CheckedTask:
    """Check one card: fields, templates, aliases, prompts, extraction, dimensions and metrics, then a trial run.

    trust_remote_code: allow the Python code of a metric that the card names.
    """
    task, faults = index.examine_task(card)
    findings = [_placed(card, fault) for fault in faults]
    prompts, tried = {}, ["the card's fields, templates and aliases"]
    if task is not None:
        source = read_card(card, index.root_of(card))
        prompts = _rendered(task)
        findings += _prompt_findings(task, source, prompts)
        findings += _attribute_findings(task, source)
        findings += _offering_findings(task, source, prompts)
        findings += _dimension_findings(task, source)
        tried += _looked_at(task, prompts)
        try:
            check_metrics([task], trust_remote_code=trust_remote_code)
        except UserError as error:
            findings.append(Finding(source.location(["metrics"]), str(error).removeprefix(f"{card}: ")))
        if not faults:
            findings += _extraction_findings(task)
    if task is not None and not findings:
        findings = [Finding(str(card), message) for message in run_trial(task, index, trust_remote_code)]
        tried.append(
            f"a run of {CLIPS} clips of the demo corpus: simulated model, extractor '{EXTRACTOR}', all metrics"
        )
    return CheckedTask(card, tuple(dict.fromkeys(findings)), prompts, tuple(tried))


def _looked_at(task: Task, prompts: Mapping[str, str]) -> Iterator[str]:
    """What is looked at in a card that can be read, in words."""
    yield f"words that name a group, the voice or an answer in the prompts {', '.join(prompts) or '(none renders)'}"
    yield f"the values of {', '.join(task.card.extraction.attributes)}, and the extractor's prompt"
    yield f"corpora and columns of {', '.join(task.card.dimensions) or 'no dimension'}"
    yield f"the metrics {', '.join(task.card.metrics)}"


def _cards(asked: Sequence[str], include_paths: Sequence[Path]) -> Iterator[tuple[Path, CardIndex]]:
    for name in asked:
        path = Path(name)
        if path.is_dir():
            cards = sorted(path.glob("tasks/**/*.y*ml")) or sorted(path.glob("*.y*ml"))
            if not cards:
                raise UserError(f"{path}: no task cards there (looked for tasks/*.yaml and *.yaml)")
            yield from ((card, _index_for(card, include_paths)) for card in cards)
        elif name.endswith((".yaml", ".yml")):
            yield path, _index_for(path, include_paths)
        else:
            index = CardIndex(include_paths)
            files = index.matching(name)
            yield from ((file, index) for file in files)


def _index_for(card: Path, include_paths: Sequence[Path]) -> CardIndex:
    """The index that a run would use. Includes the card's own folder if the card is in a folder tasks/."""
    index = CardIndex(include_paths)
    own = card.parent.parent
    known = {root.resolve() for root in index.roots}
    if card.parent.name == "tasks" and own.resolve() not in known:
        index = CardIndex([*include_paths, own])
    index.task_files()  # raises if two cards have the same name
    return index


def _placed(card: Path, fault: str) -> Finding:
    match = _PLACED.fullmatch(fault)
    return Finding(match["place"], match["message"]) if match else Finding(str(card), fault.removeprefix(f"{card}: "))


def _rendered(task: Task) -> dict[str, str]:
    prompts = {}
    for variant in task.card.prompts:
        try:
            prompts[variant] = task.prompt(variant, "[what the clip says]")
        except UserError:
            continue  # reported among the errors of the card
    return prompts


def _prompt_findings(task: Task, source: CardSource, prompts: Mapping[str, str]) -> Iterator[Finding]:
    """Find words in prompts that name a group, mention the voice or suggest an answer, and values of open attributes.

    Closed values and the options of a choice task are ignored.
    """
    closed = [
        value for spec in task.card.extraction.attributes.values() for value in spec.values if spec.values != "open"
    ]
    for variant, prompt in prompts.items():
        for word, reason in prompt_words().find(_without(prompt, [*closed, *(one.text for one in task.offered)])):
            mend = (
                "ask without it, or the answer is the prompt's"
                if reason == LEADS
                else "leave it out: a prompt never says which groups are compared, nor that there is a voice to judge"
            )
            yield Finding(_place(task, variant, word, source), f"the prompt says '{word}', which {reason}: {mend}")
        for attribute, value in _open_values_named(task, prompt):
            yield Finding(
                _place(task, variant, value, source),
                f"the prompt names '{value}', a value of the open attribute '{attribute}': leave it out, or the model "
                "will say it after the prompt",
            )


def _open_values_named(task: Task, prompt: str) -> Iterator[tuple[str, str]]:
    """Open attributes and their known values that occur in a prompt, other than in headings or closed values."""
    attributes = task.card.extraction.attributes
    spoken = [name.replace("_", " ") for name in attributes] + [spec.label or "" for spec in attributes.values()]
    spoken += [value for spec in attributes.values() if spec.values != "open" for value in spec.values]
    headings = {fold(word) for phrase in spoken for word in phrase.split()}
    for name, spec in attributes.items():
        if spec.values == "open":
            known = task.aliases.get(name, {})
            for value in dict.fromkeys([*known.values(), *known]):
                if fold(value) not in headings and _holds(prompt, value):
                    yield name, value


def _attribute_findings(task: Task, source: CardSource) -> Iterator[Finding]:
    """Find attributes whose values are demographic groups, and pairs of values that are too similar."""
    words = prompt_words()
    for name, spec in task.card.extraction.attributes.items():
        place = source.location(["extraction", "attributes", name])
        listed = spec.values if spec.values != "open" else []
        groups = [value for value in listed if words.find(value) and len(value.split()) == 1]
        if len(groups) > 1:
            yield Finding(
                place,
                f"the values of '{name}' are groups of people ({', '.join(groups)}): a prompt that offers them names a "
                "demographic attribute; ask for something else",
            )
        known = list(dict.fromkeys([*listed, *task.aliases.get(name, {}).values()]))
        for one, other in itertools.combinations(known, 2):
            if alike(fold(one), fold(other)):
                yield Finding(
                    place,
                    f"the values '{one}' and '{other}' of '{name}' are so alike that a spelling between them would be "
                    "counted under neither: keep one of them, and make the other its alias",
                )


def _offering_findings(task: Task, source: CardSource, prompts: Mapping[str, str]) -> Iterator[Finding]:
    """Find prompts for free text that do not offer the values of a closed attribute; one alone may be a word of prose.

    Answers then use words of their own, which are read as no value. The options of a choice task are offered anyway.
    """
    if not kind_of(task.card).free_text:
        return
    for name, spec in task.card.extraction.attributes.items():
        if spec.values == "open":
            continue
        spellings = {value: [value] for value in spec.values}
        for spelling, value in task.aliases.get(name, {}).items():
            spellings.setdefault(value, []).append(spelling)
        for variant, prompt in prompts.items():
            offered = sum(any(_offers(prompt, word) for word in words) for words in spellings.values())
            if offered < min(FEWEST_OFFERED, len(spec.values)):
                yield Finding(
                    source.location(["extraction", "attributes", name]),
                    f"the prompt '{variant}' does not offer the values of the closed attribute '{name}' "
                    f"({', '.join(spec.values)}): answers in other words would be read as no value. Offer them in the "
                    "prompt, or make the attribute open",
                )


def _offers(prompt: str, spelling: str) -> bool:
    """Whether a prompt holds a spelling, whatever its case, hyphens and spacing; between other letters too in scripts
    that put no space between words."""
    if spelling.isascii():
        return _holds(fold(prompt), fold(spelling)) or _holds(prompt, spelling)
    return fold(spelling) in fold(prompt)


def _extraction_findings(task: Task) -> Iterator[Finding]:
    """Find what is missing in the extraction prompt: the response, attributes, values or "refused"."""
    prompt = task.extraction_prompt(RESPONSE)
    place = str(find_file(task.templates.roots, task.card.extraction.template))
    if RESPONSE not in prompt:
        yield Finding(place, "the extractor is not shown the response: write {{ response }} where it should stand")
    for name, spec in task.card.extraction.attributes.items():
        if not re.search(rf"[\"'`]{name}[\"'`]|\b{name}\s*:", prompt):
            yield Finding(
                place,
                f"the extractor is not told of the attribute '{name}': extend \"extract.j2\", or name it here, "
                f'as "{name}": what it is',
            )
        missing = [value for value in spec.values if spec.values != "open" and not _holds(prompt, value)]
        if missing:
            yield Finding(place, f"the extractor is not told these values of '{name}': {', '.join(missing)}: list them")
    if not re.search(r"[\"'`]refused[\"'`]|\brefused\s*:", prompt):
        yield Finding(
            place,
            'the extractor is not told of "refused", which its answer must hold: extend "extract.j2", or say that it '
            "is true only where the text declines the whole task",
        )


def _dimension_findings(task: Task, source: CardSource) -> Iterator[Finding]:
    """Find unknown corpora, and corpora without a column that the card needs. A card may list no corpus."""
    at_hand, cards = corpus_manifests(), corpus_cards()
    for dimension, corpora in task.card.dimensions.items():
        place = source.location(["dimensions", dimension])
        for corpus in corpora:
            if corpus not in at_hand and corpus not in cards:
                hint = did_you_mean(corpus, {*at_hand, *cards})
                yield Finding(place, f"there is no corpus '{corpus}'. {hint} A manifest of your own goes with --corpus")
                continue
            columns = _columns(corpus)
            if columns and dimension not in columns:
                yield Finding(
                    place,
                    f"the corpus '{corpus}' has no column '{dimension}'. {did_you_mean(dimension, columns)} "
                    "Mend the name, or name another corpus",
                )
            for field, column in kind_of(task.card).columns(task.card):
                if columns and column not in columns:
                    yield Finding(
                        source.location(list(field)),
                        f"the corpus '{corpus}' has no column '{column}'. {did_you_mean(column, columns)} Mend the "
                        "name, or name another corpus",
                    )


def _columns(corpus: str) -> set[str]:
    """Columns of an available or importable corpus; empty if they are unknown."""
    if corpus in corpus_manifests():
        return {name for clip in find_corpus(corpus).clips for name in clip.groups}
    card, _ = load_corpus_card(corpus)
    known = _columns(card.base) if card.base else set(IMPORTERS.get(str(card.importer)).columns)
    levels = card.perturb.levels.listed if card.perturb else ()
    return {*known, *(f"{column}_group" for column in card.bands), *levels} if known else set()


def _place(task: Task, variant: str, words: str, source: CardSource) -> str:
    """File and line of the template that contains the words; the card's location if they are not on one line."""
    name = task.card.prompts[variant]
    for file, text in task.templates.sources(name).items():
        for number, line in enumerate(text.splitlines(), start=1):
            if _holds(line, words):
                return f"{find_file(task.templates.roots, file)}:{number}"
    return source.location(["prompts", variant])


def _holds(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


def _without(text: str, phrases: Iterable[str]) -> str:
    for phrase in sorted(phrases, key=len, reverse=True):  # "single parent" before "single"
        text = re.sub(rf"(?<!\w){re.escape(phrase)}(?!\w)", "", text, flags=re.IGNORECASE)
    return text
