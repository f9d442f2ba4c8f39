"""The number of simultaneous calls, adapted to the calls that the server refuses.

Refusals may depend on the load, so that fewer calls are refused if fewer are sent; or they may not, and then sending
less only costs time. `ConcurrencyLimiter` finds out which by trials.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from dataclasses import dataclass

from vibe_harness.backends.remote.call_failed import CallFailed, Refusal

LEAST = 0.02  # of the limit: below 1, calls are spaced
ROW = 12  # refusals with no answer between them, at least, after which the server is taken to refuse everything
PER_OPEN_CALL = 2  # and at least so many for each call sent since the first of them whose end is not known yet
WINDOW = 20  # calls, at least, over which the share of refusals is measured
EXPECTED = 8  # refusals during a trial if they do not go with the load; fewer would say little
FADING = 0.97  # of the usual share of refusals, from window to window, so that it is tried out again now and then
LONGEST_STEADY = 8  # windows between two steps upward, at most
PAUSES = 6  # in a row, at most; then the requests are asked again each for itself, and given up


@dataclass(eq=False, slots=True)
class Slot:
    """Permission for one call. sent_at: when it was sent, on the loop's clock."""

    sent_at: float


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of a lower limit. share: of refusals of this kind, at the previous limit."""

    kind: Refusal
    share: float
    limit: float


class ConcurrencyLimiter:
    """Allows at most `limit` simultaneous calls.

    - A failed call releases its slot and waits without one. The slot stays empty for the usual duration of a call, so
      that a server that refuses fast is not called faster, unless refusals are known not to depend on the load.
    - The share of refusals is measured over each window of calls, separately for each kind. If it is higher than usual,
      the limit is lowered by that share for one window. If the share then falls by six tenths, the refusals depend on
      the load and the limit stays; it then rises in small steps. Otherwise the limit is restored, and this share
      becomes the usual one.
    - After ROW refusals in a row, the server is assumed to refuse everything beyond its current work, and the limit
      becomes the number of calls that it is working on. If the refusals asked for a wait, nothing is sent until the
      longest wait has passed, and then one call at a time until one is answered.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self._known_good = float(most)  # the limit up to which it doubles from window to window
        self._under_way: set[Slot] = set()
        self._resting = 0  # slots that stay empty for some time
        self._first: deque[asyncio.Future[Slot]] = deque()  # requests that were never sent
        self._again: deque[asyncio.Future[Slot]] = deque()  # failed requests, which go first
        self._typical_s = 0.0  # duration of an answered call
        self._paused_until = float("-inf")
        self._row = 0  # refusals in a row
        self._row_from = 0.0  # when the first of them was sent
        self._row_until = float("-inf")  # the end of the longest wait that they asked for
        self._pauses = 0  # in a row
        self._trial: Trial | None = None
        self._usual = dict.fromkeys(Refusal, 0.0)  # shares of refusals that do not depend on the load
        self._steady = 0  # windows until the next step upward
        self._next_steady = 1
        self._begin_window(0.0)

    async def take(self, again: bool = False) -> Slot:
        """Wait for a slot. again: whether the request failed before."""
        turn: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        (self._again if again else self._first).append(turn)
        self._wake()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(turn.result())
            raise

    def release(self, slot: Slot) -> None:
        """Return a slot without a result of the call."""
        self._under_way.discard(slot)
        self._wake()

    def answered(self, slot: Slot) -> None:
        """Note that the call was answered, with success or not."""
        now = asyncio.get_running_loop().time()
        took = now - slot.sent_at
        self._typical_s = took if not self._typical_s else 0.9 * self._typical_s + 0.1 * took
        if self._row and slot.sent_at >= self._row_from:
            self._row = self._pauses = 0
        self._count(slot, now, None)
        self._free(slot, now, 0.0)

    def failed(self, slot: Slot, failure: CallFailed) -> None:
        """Note that the call failed. After a temporary failure the slot stays empty for the rest of a usual call."""
        now = asyncio.get_running_loop().time()
        if failure.refusal is not None:
            self._note_refusal(slot, now, failure.wait_s)
        self._count(slot, now, failure.refusal)
        unaffected = failure.refusal is not None and self._usual[failure.refusal] > 0 and self.limit >= self.most
        self._free(slot, now, self._typical_s if failure.retry and not unaffected else 0.0)

    def _free(self, slot: Slot, now: float, lasting: float) -> None:
        """Free a slot, `lasting` seconds after its call was sent. Below a limit of 1, calls are also spaced."""
        self._under_way.discard(slot)
        if self.limit < 1:
            lasting = self._typical_s / self.limit
        rest = slot.sent_at + lasting - now
        if rest > 0.1 * self._typical_s:
            self._resting += 1
            asyncio.get_running_loop().call_later(rest, self._rested)
        else:
            self._wake()

    def _rested(self) -> None:
        self._resting -= 1
        self._wake()

    def _wake(self) -> None:
        """Assign the free slots."""
        loop = asyncio.get_running_loop()
        while (waiting := self._again or self._first) and self._has_room(loop.time()):
            turn = waiting.popleft()
            if not turn.done():
                slot = Slot(loop.time())
                self._under_way.add(slot)
                turn.set_result(slot)

    def _has_room(self, now: float) -> bool:
        if now < self._paused_until or len(self._under_way) + self._resting >= max(1, int(self.limit)):
            return False
        probing = self._row >= ROW
        return not probing or not any(slot.sent_at >= self._row_from for slot in self._under_way)

    def _note_refusal(self, slot: Slot, now: float, wait_s: float | None) -> None:
        if not self._row:
            self._row_from, self._row_until = slot.sent_at, float("-inf")
        self._row += 1
        if wait_s is not None:
            self._row_until = max(self._row_until, now + wait_s)
        if now < self._paused_until:
            self._pause(max(self._paused_until, self._row_until))
        elif self._row >= max(ROW, PER_OPEN_CALL * self._open_since(self._row_from)):
            self._refuses_everything(now)

    def _open_since(self, sent_at: float) -> int:
        return sum(slot.sent_at >= sent_at for slot in self._under_way) - 1  # the call that has just failed

    def _refuses_everything(self, now: float) -> None:
        """Lower the limit to the number of calls that the server is working on."""
        served = float(max(1, len(self._under_way) - 1))
        again = self.limit < self.most
        if not self._pauses:
            self._known_good = max(served, self.limit / 2)
        self.limit = min(self.limit, served)
        self._trial = None
        self._begin_window(now)
        if self._row_until > now and self._pauses < PAUSES:
            if again:  # a rate was exceeded, whatever the server is working on
                self.limit = min(self.limit, 1.0)
            self._pauses += 1
            self._pause(self._row_until)
            return
        self._row = 0  # without a wait, each request keeps its own

    def _pause(self, until: float) -> None:
        if until > self._paused_until:
            self._paused_until = until
            asyncio.get_running_loop().call_at(until, self._wake)

    def _begin_window(self, now: float) -> None:
        self._window_from = now
        self._window_calls = 0
        self._window_refusals: Counter[Refusal] = Counter()

    def _count(self, slot: Slot, now: float, refusal: Refusal | None) -> None:
        if slot.sent_at < self._window_from:
            return
        self._window_calls += 1
        if refusal is not None:
            self._window_refusals[refusal] += 1
        least = 2 if self.limit < self._known_good and not self._window_refusals else WINDOW
        if self._trial is not None:
            least = max(WINDOW, math.ceil(EXPECTED / self._trial.share))
        if self._window_calls >= max(least, 2 * math.ceil(self.limit)):
            self._end_window(now)

    def _end_window(self, now: float) -> None:
        calls, refusals = self._window_calls, self._window_refusals
        self._begin_window(now)
        if self._trial is not None:
            self._judge(self._trial, refusals[self._trial.kind] / calls)
            self._trial = None
            return
        self._usual = {kind: share * FADING for kind, share in self._usual.items()}
        kind = max(Refusal, key=lambda one: refusals[one] / calls - self._usual[one])
        share, usual = refusals[kind] / calls, self._usual[kind]
        by_chance = 2 * math.sqrt(usual * (1 - usual) / calls)  # two standard errors
        if refusals[kind] >= 2 and share > usual + by_chance:
            self._trial = Trial(kind, share, self.limit)
            self.limit = max(LEAST, self.limit / 8, self.limit * (1 - share))
        else:
            self._rise()

    def _judge(self, trial: Trial, share: float) -> None:
        if share > 0.4 * trial.share:  # about as many at a lower load, so they do not depend on it
            self._usual[trial.kind] = max(share, trial.share)
            self.limit = trial.limit
            self._known_good = float(self.most)
        else:
            self._usual[trial.kind] = min(self._usual[trial.kind], share)
            self._known_good = self.limit
            self._steady = self._next_steady
            self._next_steady = min(2 * self._next_steady, LONGEST_STEADY)

    def _rise(self) -> None:
        if self._steady:
            self._steady -= 1
        elif self.limit < self._known_good:
            self.limit = min(2 * self.limit, self._known_good)
        elif self.limit < self.most:
            step = max(1.0, self.limit / 16) if self.limit >= 1 else self.limit / 4
            self.limit = min(float(self.most), self.limit + step)
        self._wake()
