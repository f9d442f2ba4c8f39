"""How many calls may be under way at once, learnt from what the server refuses.

A refusal may go with the load, and then fewer calls are refused as fewer are sent; or it may not, and then sending less
only costs time. Which of the two it is, is tried out: see `ConcurrencyLimiter`.
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
    """The right to one call. sent_at: when it was sent, on the loop's clock."""

    sent_at: float


@dataclass(frozen=True, slots=True)
class Trial:
    """A lower limit, tried out. share: of refusals of this kind, at the limit of before."""

    kind: Refusal
    share: float
    limit: float


class ConcurrencyLimiter:
    """At most `limit` calls under way at once.

    - A call that fails gives up its slot, and waits without one. Its slot stays empty for as long as a call usually
      takes, so that a server that refuses fast is not called the faster, unless refusals are known not to go with the
      load.
    - Over each window of calls the share of refusals is measured, each kind for itself. Where it is higher than usual,
      the limit is lowered by that share for one window. If the share then falls by six tenths, the refusals went with
      the load and the limit stays; from there it rises in small steps. Otherwise the limit is restored, and this share
      is the usual one from then on.
    - After ROW refusals with no answer between them, the server is taken to refuse everything it is not at work on, and
      the limit becomes the number of those calls. Where the refusals named a wait, nothing is sent until the longest
      has passed, and then one call at a time until one is answered.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self._known_good = float(most)  # the limit up to which it doubles from window to window
        self._under_way: set[Slot] = set()
        self._resting = 0  # slots that stay empty for a while
        self._first: deque[asyncio.Future[Slot]] = deque()  # requests that were never sent
        self._again: deque[asyncio.Future[Slot]] = deque()  # requests that failed: ahead of the others
        self._typical_s = 0.0  # duration of an answered call
        self._paused_until = float("-inf")
        self._row = 0  # refusals with no answer between them
        self._row_from = 0.0  # when the first of them was sent
        self._row_until = float("-inf")  # the end of the longest wait that they named
        self._pauses = 0  # in a row
        self._trial: Trial | None = None
        self._usual = dict.fromkeys(Refusal, 0.0)  # shares of refusals that were found not to go with the load
        self._steady = 0  # windows until the next step upward
        self._next_steady = 1
        self._begin_window(0.0)

    async def take(self, again: bool = False) -> Slot:
        """Wait for a slot. again: for a request that failed before."""
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
        """Give a slot back that says nothing of the server."""
        self._under_way.discard(slot)
        self._wake()

    def answered(self, slot: Slot) -> None:
        """The call was answered, well or not."""
        now = asyncio.get_running_loop().time()
        took = now - slot.sent_at
        self._typical_s = took if not self._typical_s else 0.9 * self._typical_s + 0.1 * took
        if self._row and slot.sent_at >= self._row_from:
            self._row = self._pauses = 0
        self._count(slot, now, None)
        self._free(slot, now, 0.0)

    def failed(self, slot: Slot, failure: CallFailed) -> None:
        """The call failed; where its failure may pass, its slot stays empty for the rest of a usual call's time."""
        now = asyncio.get_running_loop().time()
        if failure.refusal is not None:
            self._note_refusal(slot, now, failure.wait_s)
        self._count(slot, now, failure.refusal)
        unaffected = failure.refusal is not None and self._usual[failure.refusal] > 0 and self.limit >= self.most
        self._free(slot, now, self._typical_s if failure.retry and not unaffected else 0.0)

    def _free(self, slot: Slot, now: float, lasting: float) -> None:
        """Free a slot, `lasting` seconds after its call was sent; below a limit of 1, the calls are spaced besides."""
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
        """Hand out what slots there are."""
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
        return sum(slot.sent_at >= sent_at for slot in self._under_way) - 1  # the one that has just failed

    def _refuses_everything(self, now: float) -> None:
        """Lower the limit to the number of calls that the server is at work on."""
        served = float(max(1, len(self._under_way) - 1))
        again = self.limit < self.most
        if not self._pauses:
            self._known_good = max(served, self.limit / 2)
        self.limit = min(self.limit, served)
        self._trial = None
        self._begin_window(now)
        if self._row_until > now and self._pauses < PAUSES:
            if again:  # a rate is passed, whatever the server is at work on
                self.limit = min(self.limit, 1.0)
            self._pauses += 1
            self._pause(self._row_until)
            return
        self._row = 0  # with no wait named, each request keeps its own

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
        if share > 0.4 * trial.share:  # about as many at a lower load: they do not go with it
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
