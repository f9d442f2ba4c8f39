"""The first call to a server goes alone, so that one which answers with another model is paid for one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from vibe_harness.errors import EngineError
from vibe_harness.records import Response

LONGEST_ALONE_S = 20.0  # after which the others no longer wait for the first


class FirstCall:
    """Holds back the calls to one server until the first has ended."""

    def __init__(self) -> None:
        self._ended = asyncio.Event()
        self._taken = False
        self._refused: EngineError | None = None

    async def before_others(self, call: Callable[[], Awaitable[Response]]) -> Response:
        """Make a call: at once if it is the first one, or the first has ended; else after it.

        Raises what the call raises. EngineError, after which no call can succeed, is raised of all calls that wait.
        """
        if self._taken:
            await self._wait()
            return await call()
        self._taken = True
        try:
            return await call()
        except EngineError as error:
            self._refused = error
            raise
        finally:
            self._ended.set()

    async def _wait(self) -> None:
        if not self._ended.is_set():
            try:
                await asyncio.wait_for(self._ended.wait(), LONGEST_ALONE_S)
            except TimeoutError:
                self._ended.set()
        if self._refused is not None:
            raise self._refused
