"""First step: rewrite each text for reading aloud, and list the rewritten texts that a person should review."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vibe_harness.backends.guards import Budget, FailureGuard, enforce_limits
from vibe_harness.backends.protocol import open_backend
from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import CardIndex
from vibe_harness.cards.schema import ModelCard
from vibe_harness.cards.templates import TemplateSet
from vibe_harness.csv_sheets import ENCODING, escape_formula, filled_rows
from vibe_harness.errors import EngineError, UserError
from vibe_harness.progress import Tick
from vibe_harness.records import Generation, Outcome, Request, Response
from vibe_harness.speech_sets.card import SpeechSet, SpeechSetCard
from vibe_harness.store.atomic_files import atomic_write
from vibe_harness.store.journal import Journal, as_object, read_journal

VARIABLES = frozenset({"text", "part", "row"})
SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
VERDICTS = ("", "fine", "mended")
REVIEW = ("item", "part", "original", "rewritten", "verdict", "mended", "key")


@dataclass(frozen=True, slots=True)
class SpokenText:
    """One text of one item, as it is read aloud."""

    item: str
    part: str  # column of the source
    original: str
    text: str  # what is spoken
    rewritten: str  # what the model made of it; the original where nothing rewrites

    @property
    def key(self) -> str:
        """Key of a verdict. The cells cannot be the key: spreadsheets may turn them into dates or numbers."""
        return review_key(self.item, self.part, self.original, self.rewritten)

    @property
    def flagged(self) -> bool:
        """The model changed more than blank space and case (BiasInEar, section 2.2): a person looks at it."""
        return _bare(self.original) != _bare(self.rewritten)


def review_key(item: str, part: str, original: str, rewritten: str) -> str:
    """Key of a rewritten text. The prefix keeps spreadsheets from reading 12e45 as a number."""
    return f"r-{digest([item, part, original, rewritten], 12)}"


class Rewriter:
    """The rewriting of a card: its template, and the key under which each answer is stored."""

    def __init__(self, card: SpeechSetCard, folder: Path, cards: CardIndex) -> None:
        """folder: of the card. Raises UserError for an unknown model or a template that does not fit."""
        assert card.rewrite is not None
        self._rewrite = card.rewrite
        self._templates = TemplateSet((folder,))
        sources = self._templates.check(card.rewrite.template, VARIABLES)
        self.model: ModelCard = cards.model(card.rewrite.model)
        self._base = digest([self.model.identity(), sources, card.rewrite.max_tokens])

    def request(self, part: str, text: str, row: Mapping[str, str]) -> Request:
        values = {"text": text, "part": part, "row": dict(row)}
        prompt = self._templates.render(self._rewrite.template, values)
        return Request(
            id=digest([self._base, prompt]),
            task="rewrite",
            variant=part,
            clip="",
            prompt=prompt,
            generation=Generation(max_tokens=self._rewrite.max_tokens),
            schema=SCHEMA,
        )


def spoken_texts(speech_set: SpeechSet, output: Path, cards: CardIndex, tick: Tick) -> list[SpokenText]:
    """All texts of a set. The model rewrites those that are not in `output`/rewritten.jsonl.

    Corrections in `output`/review.csv take precedence over the model's text. Raises EngineError if a text was not
    rewritten; the others are kept.
    """
    card = speech_set.card
    plain = [(item.id, part, item.row[part], item.row) for item in speech_set.items for part in card.texts]
    if card.rewrite is None:
        return [SpokenText(item, part, text, text, text) for item, part, text, _ in plain]
    rewriter = Rewriter(card, speech_set.path.parent, cards)
    requests = {(item, part): rewriter.request(part, text, row) for item, part, text, row in plain}
    journal = output / "rewritten.jsonl"
    done = {record["request"]: record["text"] for record in read_journal(journal, as_object)}
    missing = {request.id: request for request in requests.values() if request.id not in done}
    tick(len(plain) - len(missing))
    if missing:
        done |= _rewritten(rewriter.model, list(missing.values()), journal, tick)
    mended = read_review(output / "review.csv")
    texts = []
    for item, part, original, _ in plain:
        rewritten = done[requests[item, part].id]
        text = mended.get(review_key(item, part, original, rewritten), rewritten)
        texts.append(SpokenText(item, part, original, text, rewritten))
    return texts


def _rewritten(model: ModelCard, missing: Sequence[Request], path: Path, tick: Tick) -> dict[str, str]:
    backend = open_backend(model, [])
    done, faults, guard = {}, [], FailureGuard()
    try:
        with Journal(path) as journal:
            for response in enforce_limits(backend, missing, Budget()):
                guard.count(response.error if response.outcome is Outcome.ERROR else None)
                text, fault = _read(response)
                if text is None:
                    faults.append(fault)
                    continue
                done[response.request] = text
                served = response.served_model or model.id
                journal.append({"request": response.request, "text": text, "model": served})
                tick(1)
    finally:
        backend.close()
    if len(done) < len(missing):
        raise EngineError(
            f"{len(missing) - len(done)} of {len(missing)} texts were not rewritten by '{model.model}'; the first: "
            f"{faults[0] if faults else 'no answer'}. The others are kept: run the same command again"
        )
    return done


def _read(response: Response) -> tuple[str | None, str]:
    """The rewritten text, or None and why there is none."""
    if response.outcome is not Outcome.OK:
        return None, response.error or f"the answer is {response.outcome}"
    try:
        answer = json.loads(response.text)
    except ValueError:
        return None, f"the answer is not JSON: {response.text[:100]!r}"
    text = answer.get("text") if isinstance(answer, dict) else None
    if not isinstance(text, str) or not text.strip():
        return None, f"the answer holds no text: {response.text[:100]!r}"
    return " ".join(text.split()), ""


def write_review(path: Path, texts: Sequence[SpokenText]) -> int:
    """List the flagged texts for a person, keeping verdicts that were given. Returns how many are listed.

    Raises UserError where a verdict would be lost: its text was rewritten otherwise since.
    """
    given = {row["key"]: row for row in _review_rows(path) if row["verdict"]}
    flagged = [text for text in texts if text.flagged]
    lost = given.keys() - {text.key for text in flagged}
    if lost:
        one = given[min(lost)]
        raise UserError(
            f"{path}: {len(lost)} verdicts are on texts that are written otherwise now (one is {one['item']}, "
            f"{one['part']}): move the file aside to review anew"
        )
    with atomic_write(path) as aside, aside.open("w", encoding=ENCODING, newline="") as file:
        table = csv.writer(file)
        table.writerow(REVIEW)
        for text in flagged:
            row = given.get(text.key, {"verdict": "", "mended": ""})
            shown = [escape_formula(cell) for cell in (text.item, text.part, text.original, text.rewritten)]
            table.writerow([*shown, row["verdict"], row["mended"], text.key])
    return len(flagged)


def read_review(path: Path) -> dict[str, str]:
    """SpokenText.key -> the text that a person put in its place."""
    return {row["key"]: row["mended"].strip() for row in _review_rows(path) if row["verdict"] == "mended"}


def _review_rows(path: Path) -> Iterator[dict[str, str]]:
    for place, row in filled_rows(path, REVIEW):
        row["verdict"] = row["verdict"].strip().lower()
        if row["verdict"] not in VERDICTS:
            raise UserError(f"{place}: the verdict '{row['verdict']}' is none of: fine, mended, or empty")
        if row["verdict"] == "mended" and not row["mended"].strip():
            raise UserError(f"{place}: the verdict is 'mended', and the column 'mended' is empty")
        yield row


def _bare(text: str) -> str:
    return "".join(text.split()).lower()
