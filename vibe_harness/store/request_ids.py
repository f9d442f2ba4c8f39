"""Compact collections of request ids, which keep memory small in runs with many requests."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator

import numpy as np

from vibe_harness.records import RequestKey


class Ids:
    """An ordered collection of ids of 32 hex digits. Uses 24 bytes for each id; a set of strings uses 130."""

    def __init__(self, ids: Iterable[str]) -> None:
        raw = bytearray()
        for id in ids:
            raw += _raw(id) or bytes(16)  # an invalid id is never found, and keeps the positions of the others
        self._keys = np.frombuffer(raw, dtype="S16")
        self._order = np.argsort(self._keys, kind="stable")

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return (bytes(key).ljust(16, b"\0").hex() for key in self._keys)

    def __contains__(self, id: str) -> bool:
        return self.index(id) is not None

    def index(self, id: str) -> int | None:
        """Position of an id (the last one if it occurs twice); None if it is not in the collection."""
        raw = _raw(id)
        if raw is None:
            return None
        key = np.frombuffer(raw, dtype="S16")
        at = int(np.searchsorted(self._keys, key, side="right", sorter=self._order)[0])
        if at == 0 or self._keys[self._order[at - 1]] != key[0]:
            return None
        return int(self._order[at - 1])


class RequestTable:
    """Id and key of each request of a plan, in order. Uses 30 bytes for each request."""

    def __init__(self, requests: Iterable[tuple[str, RequestKey]]) -> None:
        prompts: dict[tuple[str, str, int, int], int] = {}
        clips: dict[str, int] = {}
        self._prompt_of, self._clip_of = array("H"), array("I")
        hashed = hashlib.sha256()

        def noted() -> Iterator[str]:
            for request, key in requests:
                prompt = (key.task, key.variant, key.repeat, key.turn)
                self._prompt_of.append(prompts.setdefault(prompt, len(prompts)))
                self._clip_of.append(clips.setdefault(key.clip, len(clips)))
                again = [str(number) for number in (key.repeat, key.turn) if key.repeat or key.turn]
                parts = (request, key.task, key.variant, key.clip, *again, "")
                hashed.update("\0".join(parts).encode("utf-8", "surrogatepass"))
                yield request

        self._ids = Ids(noted())
        self._prompts, self._clips = list(prompts), list(clips)
        self.digest = hashed.hexdigest()[:32]  # of every id with its key, in order

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[tuple[str, RequestKey]]:
        for index, request in enumerate(self._ids):
            yield request, self._key(index)

    def __contains__(self, request: str) -> bool:
        return request in self._ids

    def get(self, request: str) -> RequestKey | None:
        """The key of a request; None if it is not in the plan."""
        index = self._ids.index(request)
        return None if index is None else self._key(index)

    def index(self, request: str) -> int | None:
        """Position of a request in the plan; None if it is not in the plan."""
        return self._ids.index(request)

    def _key(self, index: int) -> RequestKey:
        task, variant, repeat, turn = self._prompts[self._prompt_of[index]]
        return RequestKey(task, variant, self._clips[self._clip_of[index]], repeat, turn)


class RequestSet:
    """A set of planned requests. Uses one byte for each request of the plan."""

    def __init__(self, planned: RequestTable) -> None:
        self._planned = planned
        self._members = bytearray(len(planned))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, request: str) -> bool:
        index = self._planned.index(request)
        return index is not None and bool(self._members[index])

    def add(self, request: str) -> bool:
        """Add a request. Returns False if it is in the set already or is not in the plan."""
        index = self._planned.index(request)
        if index is None or self._members[index]:
            return False
        self._members[index] = 1
        self._count += 1
        return True


def _raw(id: str) -> bytes | None:
    """The 16 bytes of an id; None if it is invalid."""
    try:
        raw = bytes.fromhex(id)
    except ValueError:
        return None
    return raw if raw.hex() == id and len(raw) == 16 else None
