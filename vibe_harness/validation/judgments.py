"""Judgments on disk: one append-only journal for each judge, so that judges can work at the same time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import filelock

from vibe_harness.errors import UserError, write_failed
from vibe_harness.store.journal import Journal, as_object, journal_lines
from vibe_harness.validation.sample import Claim, Sample

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")


class Verdict(StrEnum):
    """A judge's verdict on a claim."""

    RIGHT = "right"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Judgment:
    """One judge's judgment of one claim. wrong_items: the wrong values of a list."""

    item: str
    verdict: Verdict
    wrong_items: tuple[str, ...] = ()


class Judge:
    """The judgments of one person on one sample.

    Nothing is kept in memory, so several pages, or a page and an imported sheet, of one judge stay in step.
    """

    def __init__(self, folder: Path, sample: Sample, name: str) -> None:
        """folder: of the sample. Raises UserError for a name that cannot be a file's on every system."""
        if not _NAME.fullmatch(name):
            raise UserError(f"--judge {name}: use small letters a to z, digits, '.', '-' and '_', at most 60")
        self.name = name
        self.sample = sample
        self.path = folder / f"judge-{name}.jsonl"
        self._claims = {item: claim for item, _, _, claim in sample.items()}
        self._lock = filelock.FileLock(folder / f".judge-{name}.lock")

    def judgments(self) -> dict[str, Judgment]:
        """Item -> current judgment. Raises UserError if the file is of another sample or judge, or is invalid."""
        return {judgment.item: judgment for judgment in self._standing()}

    def add(self, judgments: Sequence[Judgment]) -> None:
        """Write judgments to disk; each replaces an earlier one on the same item.

        Raises UserError if a judgment is not of this sample, or cannot be written.
        """
        for judgment in judgments:
            self._check(judgment)
        self._append([
            {"item": one.item, "verdict": str(one.verdict), "wrong_items": list(one.wrong_items)} for one in judgments
        ])  # fmt: skip

    def undo(self) -> str | None:
        """Undo the latest judgment, so that the one before it is current again. Returns its item."""
        with self._locked():
            standing = self._standing()
            if standing:
                self._append([{"item": standing[-1].item, "undone": True}])
            return standing[-1].item if standing else None

    def _append(self, records: Sequence[dict[str, Any]]) -> None:
        with self._locked(), Journal(self.path) as journal:  # which is synced to the disk when it closes
            for record in records:
                journal.append({"sample": self.sample.id, "judge": self.name, **record, "time": time.time()})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the judge's file for this thread."""
        try:
            self._lock.acquire()
        except OSError as error:
            raise write_failed(f"{self.path}: cannot be written", error) from None
        try:
            yield
        finally:
            self._lock.release()

    def _standing(self) -> list[Judgment]:
        """The judgments in the order they were made, without undone ones."""
        made: list[Judgment] = []
        for line in journal_lines(self.path, as_object):
            place, record = f"{self.path}:{line.number}", line.record
            if line.torn:
                break  # by a power loss, before it was ever said to be stored
            if record is None:
                raise UserError(f"{place}: not a judgment: the file was edited; mend or remove that line")
            if record.get("sample") != self.sample.id:
                raise UserError(
                    f"{place}: a judgment of the sample {record.get('sample')}, and this folder holds "
                    f"{self.sample.id}: move the file to the sample that it belongs to"
                )
            if record.get("judge") != self.name:
                raise UserError(f"{place}: a judgment by '{record.get('judge')}': rename the file back")
            if record.get("undone") is True:
                if not made or made[-1].item != record.get("item"):
                    raise UserError(f"{place}: takes back a judgment that is not there: the file was edited")
                made.pop()
                continue
            made.append(self._stored(place, record))
        return made

    def _stored(self, place: str, record: dict[str, Any]) -> Judgment:
        wrong = record.get("wrong_items")
        try:
            judgment = Judgment(record["item"], Verdict(record["verdict"]), tuple(wrong))  # type: ignore[arg-type]
            self._check(judgment)
        except (KeyError, TypeError, ValueError, UserError):
            raise UserError(f"{place}: not a judgment of this sample: the file was edited; mend or remove that line") \
                from None  # fmt: skip
        return judgment

    def _check(self, judgment: Judgment) -> None:
        claim: Claim | None = self._claims.get(judgment.item)
        if claim is None:
            raise UserError(f"'{judgment.item}' is nothing that this sample has to judge")
        strange = [item for item in judgment.wrong_items if item not in claim.values]
        if strange:
            raise UserError(f"'{strange[0]}' is not among the values of {judgment.item}")


def judges_of(folder: Path, sample: Sample) -> list[Judge]:
    """All judges of this sample, sorted by name."""
    files = sorted(folder.glob("judge-*.jsonl"))
    return [Judge(folder, sample, path.name.removeprefix("judge-").removesuffix(".jsonl")) for path in files]
