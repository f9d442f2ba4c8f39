"""Ids held in few bytes each, so that memory hardly grows with the requests of a run."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator

import numpy as np

Place = tuple[str, str, str]  # task, variant, clip


class Ids:
    """Ids of 32 hex digits in the order given, at 24 bytes each; a set of strings takes 130."""

    def __init__(self, ids: Iterable[str]) -> None:
        raw = bytearray()
        for one in ids:
            raw += _raw(one) or bytes(16)  # what is no id is never looked for: it only takes up its place
        self._keys = np.frombuffer(raw, dtype="S16")
        self._order = np.argsort(self._keys, kind="stable")

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return (bytes(key).ljust(16, b"\0").hex() for key in self._keys)

    def __contains__(self, one: str) -> bool:
        return self.index(one) is not None

    def index(self, one: str) -> int | None:
        """Where an id stands, the last place where it stands twice; None for one that is not there."""
        raw = _raw(one)
        if raw is None:
            return None
        key = np.frombuffer(raw, dtype="S16")
        at = int(np.searchsorted(self._keys, key, side="right", sorter=self._order)[0])
        if at == 0 or self._keys[self._order[at - 1]] != key[0]:
            return None
        return int(self._order[at - 1])


class Planned:
    """The requests of a plan: each with its task, variant and clip, at 30 bytes each."""

    def __init__(self, requests: Iterable[tuple[str, Place]]) -> None:
        self._prompts: dict[tuple[str, str], int] = {}
        self._clips: dict[str, int] = {}
        self._prompt_of, self._clip_of = array("H"), array("I")
        hashed = hashlib.sha256()

        def noted() -> Iterator[str]:
            for one, (task, variant, clip) in requests:
                self._prompt_of.append(self._prompts.setdefault((task, variant), len(self._prompts)))
                self._clip_of.append(self._clips.setdefault(clip, len(self._clips)))
                hashed.update("\0".join((one, task, variant, clip, "")).encode("utf-8", "surrogatepass"))
                yield one

        self._ids = Ids(noted())
        self._prompt_names, self._clip_names = list(self._prompts), list(self._clips)
        self.digest = hashed.hexdigest()[:32]  # of every request with its place, in order

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[tuple[str, Place]]:
        for index, one in enumerate(self._ids):
            yield one, self._place(index)

    def __contains__(self, request: str) -> bool:
        return request in self._ids

    def get(self, request: str) -> Place | None:
        """Task, variant and clip of a request; None where it is not of the plan."""
        index = self._ids.index(request)
        return None if index is None else self._place(index)

    def index(self, request: str) -> int | None:
        return self._ids.index(request)

    def _place(self, index: int) -> Place:
        return (*self._prompt_names[self._prompt_of[index]], self._clip_names[self._clip_of[index]])


class Marks:
    """A set of planned requests, at one byte for each that is planned."""

    def __init__(self, planned: Planned) -> None:
        self._planned = planned
        self._marked = bytearray(len(planned))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, request: str) -> bool:
        index = self._planned.index(request)
        return index is not None and bool(self._marked[index])

    def add(self, request: str) -> bool:
        """Mark a request. False where it is marked already, or is not planned."""
        index = self._planned.index(request)
        if index is None or self._marked[index]:
            return False
        self._marked[index] = 1
        self._count += 1
        return True


def _raw(one: str) -> bytes | None:
    """The 16 bytes of an id, None for what is none."""
    try:
        raw = bytes.fromhex(one)
    except ValueError:
        return None
    return raw if raw.hex() == one and len(raw) == 16 else None
