"""Sending many requests to a server: bounded concurrency, retries with backoff, answers as they finish.

An event loop runs in its own thread: for 32 simultaneous calls it takes half the processor time of 32 threads, and
calls can be cancelled.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from pydantic import Field

from vibe_harness.backends.protocol import Options
from vibe_harness.backends.remote.call_failed import CallFailed
from vibe_harness.backends.remote.concurrency_limiter import ConcurrencyLimiter
from vibe_harness.backends.remote.reply_limits import costs_untold
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Request, Response

T = TypeVar("T")

FIRST_WAIT_S = 0.2  # before the first retry, while the server answers nobody
STEP_S = 0.1  # by which the wait grows, while it answers other requests
REFUSED = 3  # times as many tries for a request that was refused while the server answered others
GROWTH = 3  # of the wait from one retry to the next, while the server answers nobody
LONGEST_WAIT_S = 60.0  # of the backoff
LONGEST_ANNOUNCED_S = 600.0  # a server that asks for a longer wait is not waited for
LONGEST_JITTER_S = 0.2  # added to the wait that a server asks for, so that not all come back at once
WAITING = 8  # requests that wait for their next try, at most, for each that may be under way


class ServerConnection(Options):
    """Connection options of all server back ends. None of them changes an answer."""

    api_key_env: str | None = Field(
        None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="environment variable that holds the key"
    )
    concurrency: int = Field(32, ge=1, le=1024, description="most requests at one time")
    timeout_s: float = Field(300.0, gt=0, description="for one call, from the name lookup to the last byte")
    max_retries: int = Field(
        6, ge=0, le=20, description="tries after the first; three times as many where other requests are answered "
        "while one is refused (429, 503)",
    )  # fmt: skip
    requests_per_minute: float | None = Field(None, gt=0, description="most calls a minute, retries included")
    tokens_per_minute: float | None = Field(None, gt=0, description="most tokens a minute, prompt and answer")


class RateLimiter:
    """Limits a rate: each use takes up time, and the next one starts when that is over."""

    def __init__(self, per_minute: float | None) -> None:
        self._seconds_each = 0.0 if per_minute is None else 60.0 / per_minute
        self._free_at = float("-inf")

    def wait(self, now: float) -> float:
        """Seconds until the next use may begin."""
        return max(0.0, self._free_at - now)

    def use(self, now: float, amount: float = 1.0) -> None:
        """Take up the time of `amount` uses."""
        self._free_at = max(self._free_at, now) + amount * self._seconds_each


@dataclass
class Tries:
    """The tries of a request. Times are on the loop's clock."""

    begun: float
    sent_at: float = 0.0  # the last time
    sent_before: float | None = None  # the time before that
    count: int = 0
    unanswered: int = 0  # of the last tries, those during which the server answered nobody
    alone: int = 0  # of all tries, the same

    def failed(self, answered_at: float) -> None:
        """Count the try that has failed. answered_at: when the server last answered any request."""
        self.count += 1
        since = self.sent_at if self.sent_before is None else self.sent_before
        self.unanswered = 0 if answered_at >= since else self.unanswered + 1
        self.alone += self.unanswered > 0
        self.sent_before = self.sent_at


class Patience:
    """When a request is retried, and when it is given up.

    If the server does not ask for a wait, the wait grows in small steps while it answers other requests, and threefold
    each time while it answers none. A request is given up after `max_retries`, or REFUSED times as many if it was
    refused while others were answered, since of thousands of requests some are refused many times by chance. It is not
    given up before the longest wait has passed that the server asked of any request, since quotas are shared.
    """

    def __init__(self, max_retries: int) -> None:
        self._max_retries = max_retries
        self._jitter = random.Random(0)
        self._longest_s = 0.0
        self._answered_at = float("-inf")

    def answered(self, now: float) -> None:
        """Note that the server answered a request."""
        self._answered_at = now

    def wait(self, tries: Tries, failure: CallFailed, now: float) -> float | None:
        """Count a failed try. Returns the seconds until the next one, or None if there is none."""
        tries.failed(self._answered_at)
        announced = failure.wait_s
        if not failure.retry or (announced is not None and announced > LONGEST_ANNOUNCED_S):
            return None
        if announced is not None:
            self._longest_s = max(self._longest_s, announced)
        most = self._max_retries * (1 if failure.refusal is None else REFUSED)
        if tries.count <= most and tries.alone <= self._max_retries:
            if announced is not None:
                return announced + self._jitter.uniform(0, LONGEST_JITTER_S)
            wait = FIRST_WAIT_S * GROWTH ** (tries.unanswered - 1) if tries.unanswered else STEP_S * tries.count
            return float(min(LONGEST_WAIT_S, wait) * self._jitter.uniform(0.5, 1))
        if failure.refusal is None or not self._max_retries:
            return None
        left = tries.begun + self._longest_s - now
        return max(left, announced or 0.0) + self._jitter.uniform(0, LONGEST_JITTER_S) if left > 0 else None


class Dispatcher:
    """Sends requests with an asynchronous client from synchronous code."""

    def __init__(self, limits: ServerConnection) -> None:
        self.limits = limits
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="dispatch", daemon=True)
        self._thread.start()
        self.workers = ThreadPoolExecutor(2, thread_name_prefix="prepare")
        self.slots = ConcurrencyLimiter(limits.concurrency)
        self.patience = Patience(limits.max_retries)
        self._requests = RateLimiter(limits.requests_per_minute)
        self._tokens = RateLimiter(limits.tokens_per_minute)

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run one coroutine on the loop and return what it returns."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def run(
        self,
        requests: Iterable[Request],
        prepare: Callable[[Request], T],
        send: Callable[[Request, T], Awaitable[Response]],
    ) -> Iterator[Response]:
        """Yield answers as they finish, in any order, one for each request.

        prepare: decodes and encodes, in a worker thread. send: makes one call; raises CallFailed if it fails. Requests
        are taken in the caller's thread, a few more than there are free slots. Raises what prepare or send raise,
        except CallFailed. If the caller stops early, calls under way are cancelled.
        """
        work = _Work(self, prepare, send)
        source = iter(requests)
        more = True
        try:
            while True:
                while more and work.has_room():
                    request = next(source, None)
                    if request is None:
                        more = False
                    else:
                        work.start(request)
                if not work.open:
                    return
                response = work.next_ended()
                if response is not None:
                    yield response
        finally:
            work.stop()

    async def turn(self) -> float:
        """Wait until a call may be sent; returns the time. Tokens are counted after the call, when they are known."""
        while True:
            now = self.loop.time()
            wait = max(self._requests.wait(now), self._tokens.wait(now))
            if not wait:
                self._requests.use(now)
                return now
            await asyncio.sleep(wait)

    def pay(self, response: Response) -> None:
        """Count the tokens of an answer. Raises EngineError if they are limited and the reply lacks them."""
        if not self.limits.tokens_per_minute:
            return
        if costs_untold(response):
            raise EngineError(
                "tokens_per_minute cannot be kept: the server does not tell how many tokens an answer took. Leave it "
                "out, or set requests_per_minute"
            )
        self._tokens.use(self.loop.time(), (response.input_tokens or 0) + (response.output_tokens or 0))

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel calls under way, run `last` (which closes the client) on the loop, and end the thread."""
        if self.loop.is_closed():
            return
        self.workers.shutdown(wait=False, cancel_futures=True)
        self.wait_for(_cancel_all())
        self.wait_for(last())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class _Work(Generic[T]):
    """The requests of one `Dispatcher.run`. Each is prepared in a worker thread, then sent by a task of the loop."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        prepare: Callable[[Request], T],
        send: Callable[[Request, T], Awaitable[Response]],
    ) -> None:
        self.open = 0  # requests under way
        self._dispatcher = dispatcher
        self._prepare = prepare
        self._send = send
        self._ended: SimpleQueue[Response | BaseException | None] = SimpleQueue()
        self._tasks: set[asyncio.Task[Response]] = set()
        self._waiting = 0  # requests that wait for their next try; changed on the loop only
        self._stopped = False
        at_once = dispatcher.limits.concurrency
        self._most_ahead = at_once + max(2, at_once // 4)
        self._most_waiting = WAITING * at_once

    def has_room(self) -> bool:
        """Whether another request may be started."""
        waiting = self._waiting
        return self.open - waiting < self._most_ahead and waiting < self._most_waiting

    def start(self, request: Request) -> None:
        self.open += 1
        self._dispatcher.workers.submit(self._prepared, request)

    def next_ended(self) -> Response | None:
        """The next response, or None if a request began to wait, so that there may be room for another."""
        ended = self._ended.get()
        if isinstance(ended, BaseException):
            raise ended
        self.open -= ended is not None
        return ended

    def stop(self) -> None:
        """Cancel requests under way."""
        self._stopped = True
        if self.open and not self._dispatcher.loop.is_closed():
            self._dispatcher.loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _prepared(self, request: Request) -> None:
        """Prepare a request, in a worker thread."""
        if self._stopped:
            return
        try:
            prepared = self._prepare(request)
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            self._ended.put(error)
            return
        self._dispatcher.loop.call_soon_threadsafe(self._begin, request, prepared)

    def _begin(self, request: Request, prepared: T) -> None:
        if self._stopped:
            return
        task = self._dispatcher.loop.create_task(self._answer(request, prepared))
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[Response]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            self._ended.put(asyncio.CancelledError())
        else:
            self._ended.put(task.exception() or task.result())

    async def _answer(self, request: Request, first: T) -> Response:
        dispatcher, slots = self._dispatcher, self._dispatcher.slots
        prepared: T | None = first
        tries = Tries(dispatcher.loop.time())
        while True:
            if prepared is None:
                prepared = await dispatcher.loop.run_in_executor(dispatcher.workers, self._prepare, request)
            slot = await slots.take(again=tries.count > 0)
            try:
                slot.sent_at = tries.sent_at = await dispatcher.turn()
                response = await self._send(request, prepared)
            except CallFailed as error:
                failure = error
                slots.failed(slot, failure)
            except BaseException:
                slots.release(slot)
                raise
            else:
                slots.answered(slot)
                dispatcher.patience.answered(dispatcher.loop.time())
                dispatcher.pay(response)
                return response
            wait = dispatcher.patience.wait(tries, failure, dispatcher.loop.time())
            if wait is None:
                often = f" (asked {tries.count} times)" if tries.count > 1 else ""
                return Response(request.id, Outcome.ERROR, error=f"{failure}{often}")
            prepared = None  # do not keep a clip while its request waits
            await self._sleep(wait)

    async def _sleep(self, seconds: float) -> None:
        self._waiting += 1
        self._ended.put(None)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._waiting -= 1


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
