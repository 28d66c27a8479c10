"""Results and failures of jobs: kept in deques, passed to callbacks, or logged."""

from __future__ import annotations

import logging
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from logspool._native import Semaphore
from logspool.pool._pool import Pool as Workers

_LOGGER = "fastthreadpool"
_LOG_FORMAT = "[%(levelname)s/%(processName)s] %(message)s"


class PoolCallback(Exception):
    """Results cannot be taken one by one, because the pool passes them to a callback."""


class Entries(deque[Any]):
    """Results or failures, the oldest on the left.

    After `bound(most)`, `put` waits while the deque has `most` entries; `popleft` and `clear` make room.
    """

    def __init__(self, entries: Iterable[Any] = ()) -> None:
        super().__init__(entries)
        #: A semaphore with a permit for each entry. Consumers wait for a permit.
        self.permits = Semaphore(0)
        self._room: Semaphore | None = None

    def bound(self, most: int) -> None:
        """Hold at most `most` entries from now on; 0: no limit. Call it while the deque is empty."""
        self._room = Semaphore(most) if most > 0 else None

    def put(self, entry: Any) -> None:
        room = self._room
        if room is not None:
            room.acquire()
        self.append(entry)
        try:
            self.permits.release()
        except ValueError:
            # The semaphore is full, because the consumer takes entries without taking permits.
            pass

    def take(self) -> Any:
        """Remove and return the oldest entry, and take its permit. Raises `IndexError` if there is no entry."""
        entry = self.popleft()
        self.permits.acquire(False)
        return entry

    def popleft(self) -> Any:
        entry = super().popleft()
        if self._room is not None:
            self._room.release()
        return entry

    def clear(self) -> None:
        while True:
            try:
                self.take()
            except IndexError:
                return

    def lift(self, waiting: int) -> None:
        """Remove the limit, and release at most `waiting` waiting producers."""
        room, self._room = self._room, None
        if room is not None:
            room.release(waiting)


class Outcomes:
    """Results and failures of a pool's jobs."""

    def __init__(
        self,
        *,
        done_callback: Callable[[Any], object] | bool | None,
        failed_callback: Callable[..., object] | None,
        log_level: int | str | None,
        result_id: bool,
        exc_stack: bool,
        exc_args: bool,
        done_max: int,
    ) -> None:
        self._done_callback: Any = done_callback if callable(done_callback) else None
        self._failed_callback: Any = failed_callback
        self._logger = _logger(log_level) if log_level else None
        self._result_id, self._exc_stack, self._exc_args, self._done_max = result_id, exc_stack, exc_args, done_max
        self._takers: set[Semaphore] = set()
        self.done, self.failed = Entries(), Entries()
        self.open()

    def open(self) -> None:
        """Start the threads that call the callbacks. Also called again after a shutdown."""
        self.done.bound(self._done_max)
        # Each callback has its own single thread, so a callback need not be thread-safe.
        self._done_caller = Workers(1, "ThreadPoolDone", queue_size=self._done_max) if self._done_callback else None
        self._failed_caller = Workers(1, "ThreadPoolFailed") if self._failed_callback else None

    @property
    def callers(self) -> list[Workers]:
        """The pools that call the callbacks. Each has one worker."""
        return [caller for caller in (self._done_caller, self._failed_caller) if caller is not None]

    def result(self, number: int, value: Any) -> None:
        """Store or pass on a result of job `number`. With `done_max`, wait for room."""
        entry = (number, value) if self._result_id else value
        if self._done_caller is not None:
            self._done_caller.push(self._done_callback, entry)
        else:
            self.done.put(entry)
            self.wake()

    def failure(self, number: int, error: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Store, pass on or log the exception of job `number`."""
        what = "".join(traceback.format_exception(error)) if self._exc_stack else error
        entry = (number,) * self._result_id + (what,) + (args, kwargs) * self._exc_args
        if self._logger is not None:
            self._logger.error("%s", error, exc_info=error)
        if self._failed_caller is not None:
            self._failed_caller.push(self._failed_callback, *entry)
        elif self._logger is None:
            self.failed.put(entry if len(entry) > 1 else what)
            self.wake()

    def clear(self) -> None:
        """Drop all results and failures."""
        self.done.clear()
        self.failed.clear()

    def wake(self) -> None:
        """Wake all consumers, so that they check again whether jobs are left."""
        for taker in list(self._takers):
            taker.release()

    def completed(self, idle: Callable[[], bool], deadline: float | None) -> Iterator[Any]:
        """Return an iterator over entries as they arrive, until `idle()` or the deadline. Raises `PoolCallback`."""
        for name, used in (
            ("done_callback", self._done_callback),
            ("failed_callback", self._failed_callback),
            ("log_level", self._logger),
        ):
            if used is not None:
                raise PoolCallback(f"the pool has a {name}")
        return self._completed(idle, deadline)

    def _take(self) -> Any:
        try:
            return self.done.take()
        except IndexError:
            return self.failed.take()

    def _completed(self, idle: Callable[[], bool], deadline: float | None) -> Iterator[Any]:
        news = Semaphore(0)
        self._takers.add(news)
        try:
            while True:
                # `idle()` is called before the entries are taken: the results of a job are stored before the job counts
                # as ended.
                ended = idle()
                try:
                    taken = [self._take()]
                except IndexError:
                    if ended:
                        return
                    left = None if deadline is None else deadline - time.monotonic()
                    if (left is not None and left <= 0) or not news.acquire(timeout=left):
                        return
                else:
                    news.acquire(False)
                    yield taken.pop()
        finally:
            self._takers.discard(news)


def _logger(level: int | str) -> logging.Logger:
    """Return the logger of failed jobs. The first call adds a handler if the program has added none."""
    logger = logging.getLogger(_LOGGER)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_LOG_FORMAT))
        logger.addHandler(handler)
        logger.propagate = False
    logger.setLevel(level)
    return logger
