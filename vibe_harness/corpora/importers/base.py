"""The interface of importers. Each reads one published corpus, in its own layout on disk, into clips."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vibe_harness.errors import UserError
from vibe_harness.records import Clip
from vibe_harness.registry import Registry

if TYPE_CHECKING:
    from vibe_harness.corpora.importers.hub import HubRow


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A listed clip, or a file in the corpus, that is not used."""

    file: str
    why: str  # the same text for all of its kind, since they are counted
    detail: str = ""


@dataclass(frozen=True)
class Listing:
    """The clips that an importer found. No audio has been decoded yet."""

    root: Path  # the folder that the clips' files lie below
    clips: list[Clip]
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what was corrected or is unusual; one sentence each


@dataclass(frozen=True)
class Importer:
    """One published corpus."""

    title: str
    licence: str
    looks_for: str  # which files it needs, for messages
    read: Callable[[Path, Path, str], Listing]  # source folder, a folder to write to, the corpus's name
    hub: Callable[[Iterable[HubRow], Path, str], Listing] | None = None  # the same, from rows of a data set on the hub
    synthetic: bool = False
    columns: tuple[str, ...] = ()  # groups that its clips may have, to check task cards without the corpus


IMPORTERS: Registry[Importer] = Registry(
    "corpus importer",
    "vibe_harness.corpora",
    {
        "crema-d": "vibe_harness.corpora.importers.crema_d:IMPORTER",
        "l2-arctic": "vibe_harness.corpora.importers.l2_arctic:IMPORTER",
        "speech-accent-archive": "vibe_harness.corpora.importers.speech_accent_archive:IMPORTER",
        "spoken-stereoset": "vibe_harness.corpora.importers.spoken_stereoset:IMPORTER",
        "biasinear": "vibe_harness.corpora.importers.biasinear:IMPORTER",
    },
)


def folders(source: Path, depth: int = 3) -> Iterator[Path]:
    """The source and the folders below it, nearest first, without hidden folders and those of zip programs."""
    level = [source]
    for _ in range(depth + 1):
        yield from level
        level = [
            below
            for folder in level
            for below in sorted(folder.iterdir())
            if below.is_dir() and not below.name.startswith((".", "__MACOSX"))
        ]


def not_found(source: Path, importer: Importer) -> UserError:
    """The error for a source that is not the corpus, with what was looked for and what was found."""
    there = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in source.iterdir())
    listed = ", ".join(there[:8]) + (f" and {len(there) - 8} more" if len(there) > 8 else "")
    return UserError(
        f"{source}: not {importer.title}: looked for {importer.looks_for}, there and in the folders below; "
        f"found {listed or 'an empty folder'}"
    )


class FileNames:
    """The files of a folder, found by name whatever the case and Unicode form."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names: dict[str, list[str]] = {}
        for name in names:
            self._names.setdefault(_plain(name), []).append(name)

    def find(self, *names: str) -> str | None:
        """The file with the first of the names that there is: an exact match, else the only one that differs in case or
        Unicode form alone."""
        for name in names:
            near = self._names.get(_plain(name), [])
            if name in near:
                return name
            if len(near) == 1:
                return near[0]
        return None


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def counted(left_out: Iterable[LeftOut]) -> Mapping[str, int]:
    """Reason -> number of clips, largest first."""
    return dict(Counter(one.why for one in left_out).most_common())
