"""Asking a server many things at once: bounded, adaptive concurrency, retries with backoff, answers as they finish.

One event loop in a thread of its own, since one loop serves 32 calls at once with half the processor time of 32
threads, and its calls can be cancelled.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from queue import SimpleQueue
from typing import Any, TypeVar

from pydantic import Field

from vibe_harness.backends.protocol import Options
from vibe_harness.backends.remote.reply_limits import costs_untold
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Request, Response

T = TypeVar("T")

FIRST_WAIT_S = 0.5  # before the first retry; doubled for each further one
LONGEST_WAIT_S = 60.0  # of the backoff
LONGEST_ASKED_S = 600.0  # a server that asks for a longer wait is not waited for
HOPELESS_AFTER = 50  # requests that failed one after the other, with no answer between them


class CallFailed(Exception):
    """A call that failed. again: worth a retry; crowded: the server asks for less; wait_s: the wait it asked for."""

    def __init__(self, message: str, *, again: bool = False, crowded: bool = False, wait_s: float | None = None):
        super().__init__(message)
        self.again = again
        self.crowded = crowded
        self.wait_s = wait_s


class ServerConnection(Options):
    """What every server backend may be told of how to ask; none of it changes an answer."""

    api_key_env: str | None = Field(
        None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="environment variable that holds the key"
    )
    concurrency: int = Field(32, ge=1, le=1024, description="most requests at one time")
    timeout_s: float = Field(300.0, gt=0, description="for one call")
    max_retries: int = Field(6, ge=0, le=20)
    requests_per_minute: float | None = Field(None, gt=0, description="most calls a minute, retries included")
    tokens_per_minute: float | None = Field(None, gt=0, description="most tokens a minute, prompt and answer")


class Pace:
    """A rate that is not passed: each use takes up time on a line, and the next one starts where the line ends."""

    def __init__(self, per_minute: float | None) -> None:
        self._seconds_each = 0.0 if per_minute is None else 60.0 / per_minute
        self._free_at = float("-inf")

    def wait(self, now: float) -> float:
        """Seconds until the next use may begin."""
        return max(0.0, self._free_at - now)

    def use(self, now: float, amount: float = 1.0) -> None:
        """Take up the time of `amount` uses."""
        self._free_at = max(self._free_at, now) + amount * self._seconds_each


class Slots:
    """At most `limit` calls at once: halved when the server says that it is crowded, one more after `limit` answers.

    The additive increase and multiplicative decrease of Chiu and Jain (1989).
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self._used = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._cut_at = float("-inf")

    async def take(self) -> None:
        if self._used < int(self.limit) and not self._waiting:
            self._used += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give()
            raise

    def give(self) -> None:
        self._used -= 1
        self._wake()

    def answered(self) -> None:
        self.limit = min(self.most, self.limit + 1 / self.limit)
        self._wake()

    def crowded(self, sent_at: float, now: float) -> None:
        """Cut the limit, once for all calls that were under way at the last cut."""
        if sent_at > self._cut_at:
            self.limit = max(1.0, self.limit / 2)
            self._cut_at = now

    def _wake(self) -> None:
        while self._waiting and self._used < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self._used += 1
                turn.set_result(None)


class Dispatcher:
    """Sends requests through an asynchronous client from synchronous code."""

    def __init__(self, limits: ServerConnection) -> None:
        self.limits = limits
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dispatch", daemon=True)
        self._thread.start()
        self._workers = ThreadPoolExecutor(2, thread_name_prefix="prepare")
        self._slots = Slots(limits.concurrency)
        self._requests = Pace(limits.requests_per_minute)
        self._tokens = Pace(limits.tokens_per_minute)
        self._jitter = random.Random(0)
        self._failed_in_a_row = 0

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run one coroutine on the loop and return what it returns."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
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
        """Answers as they finish, in any order, one for each request.

        prepare: decodes and encodes, in a worker thread. send: one call; raises Fault where it failed. Requests are
        drawn in the caller's thread, a few ahead of the free slots. Raises what prepare or send raise but Fault, and
        EngineError after `HOPELESS_AFTER` failures with no answer between them. When the caller stops early, calls
        under way are cancelled.
        """
        done: SimpleQueue[Future[Response]] = SimpleQueue()
        running: set[Future[Response]] = set()
        ahead = self.limits.concurrency + max(2, self.limits.concurrency // 4)
        source = iter(requests)
        more = True
        try:
            while True:
                while more and len(running) < ahead:
                    request = next(source, None)
                    if request is None:
                        more = False
                        break
                    future = asyncio.run_coroutine_threadsafe(self._answer(request, prepare, send), self._loop)
                    running.add(future)
                    future.add_done_callback(done.put)
                if not running:
                    return
                finished = done.get()
                running.discard(finished)
                yield finished.result()
        finally:
            for future in running:
                future.cancel()

    async def _answer(
        self,
        request: Request,
        prepare: Callable[[Request], T],
        send: Callable[[Request, T], Awaitable[Response]],
    ) -> Response:
        prepared = await self._loop.run_in_executor(self._workers, prepare, request)
        await self._slots.take()
        try:
            return await self._ask(request, prepared, send)
        finally:
            self._slots.give()

    async def _ask(self, request: Request, prepared: T, send: Callable[[Request, T], Awaitable[Response]]) -> Response:
        for attempt in range(self.limits.max_retries + 1):
            sent_at = await self._turn()
            try:
                async with asyncio.timeout(self.limits.timeout_s):
                    response = await send(request, prepared)
            except CallFailed as error:
                fault = error
            except TimeoutError:
                fault = CallFailed(f"no answer within {self.limits.timeout_s:g} s", again=True)
            else:
                self._slots.answered()
                self._tokens.use(self._loop.time(), self._spent(response))
                self._count(response.outcome is Outcome.ERROR, response.error)
                return response
            if fault.crowded:
                self._slots.crowded(sent_at, self._loop.time())
            wait = self._wait(attempt, fault)
            if wait is None:
                break
            await asyncio.sleep(wait)
        self._count(True, str(fault))
        tries = f" (asked {attempt + 1} times)" if attempt else ""
        return Response(request.id, Outcome.ERROR, error=f"{fault}{tries}")

    def _spent(self, response: Response) -> int:
        """Tokens of an answer. Raises EngineError where they are to be paced and the server does not tell them."""
        if self.limits.tokens_per_minute and costs_untold(response):
            raise EngineError(
                "tokens_per_minute cannot be kept: the server does not tell how many tokens an answer took. Leave it "
                "out, or set requests_per_minute"
            )
        return (response.input_tokens or 0) + (response.output_tokens or 0)

    async def _turn(self) -> float:
        """Wait until a call may be sent; returns the time. Tokens are paid after the call: only then are they known."""
        while True:
            now = self._loop.time()
            wait = max(self._requests.wait(now), self._tokens.wait(now))
            if not wait:
                self._requests.use(now)
                return now
            await asyncio.sleep(wait)

    def _count(self, failed: bool, error: str | None) -> None:
        self._failed_in_a_row = self._failed_in_a_row + 1 if failed else 0
        if self._failed_in_a_row >= HOPELESS_AFTER:
            raise EngineError(f"{HOPELESS_AFTER} requests in a row failed, the last with: {error}")

    def _wait(self, attempt: int, fault: CallFailed) -> float | None:
        """Seconds until the next try, or None where there is none."""
        if not fault.again or attempt == self.limits.max_retries:
            return None
        if fault.wait_s is None:
            return float(min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt) * self._jitter.uniform(0.5, 1))
        if fault.wait_s > LONGEST_ASKED_S:
            return None
        return fault.wait_s + self._jitter.uniform(0, FIRST_WAIT_S)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel what is under way, run `last` (closing the client) on the loop, and end the thread."""
        if self._loop.is_closed():
            return
        self._workers.shutdown(wait=False, cancel_futures=True)
        self.wait_for(_cancel_all())
        self.wait_for(last())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def asked_wait(headers: Any, now: datetime | None = None) -> float | None:
    """Seconds that a reply's Retry-After header asks for (RFC 9110, 10.2.3: seconds or a date), None without one."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(value)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, OverflowError):  # no date, or one that no calendar has
        return None
