"""The pool without the native core: the executor of the standard library, with more of the methods of `Pool`.

Everything else, such as priorities, timers and limits of the queue, is refused with the reason.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import itertools
import queue
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.thread import BrokenThreadPool as BrokenPool
from typing import Any, NoReturn

from logspool.base import _interpreter, _options
from logspool.base._options import known_only
from logspool.pool import _exit, _map
from logspool.pool._stats import Histogram, PoolStats

__all__ = ["BrokenPool", "Future", "Pool", "Results", "Schedule", "Semaphore", "Timer", "as_completed"]

as_completed = concurrent.futures.as_completed

#: The most permits that a `Semaphore` is made with: each of them is an object.
_MOST_PERMITS = 1_000_000

_numbers = itertools.count()


def _refused(name: str) -> Callable[..., NoReturn]:
    """Make a method that is refused."""

    def refuse(self: Any, /, *args: Any, **kwargs: Any) -> NoReturn:
        raise _interpreter.refusal(f"Pool.{name}()")

    refuse.__name__, refuse.__qualname__ = name, f"Pool.{name}"
    refuse.__doc__ = "Refuse: this method needs the native core."
    return refuse


class Pool(_exit.ThreadPoolExecutor):
    """A pool of threads that run jobs: a `ThreadPoolExecutor` with more methods.

    - `max_workers`, `thread_name_prefix`, `initializer`, `initargs`: as in `ThreadPoolExecutor`.
    - `context`: `"none"`, or `"copy"` to run each job in a copy of its caller's `contextvars` context.
    - `done_callback(result)` and `failed_callback(exception)` are called in the worker for each job without a future.
      Without `failed_callback`, exceptions of such jobs go to `sys.unraisablehook`.
    - Threads stay until the pool is shut down, whatever `idle_timeout` is. The others need the native core.

    Raises `ValueError` and `TypeError` for options that do not fit or that need the native core.
    """

    @known_only
    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        finalizer: Callable[[], object] | None = None,
        queue_size: int = 0,
        overflow: str = "block",
        idle_timeout: float | None = 60.0,
        at_exit: str = "finish",
        exit_timeout: float | None = None,
        context: str = "none",
        done_callback: Callable[[Any], object] | None = None,
        failed_callback: Callable[[BaseException], object] | None = None,
    ) -> None:
        for name, value, usual in (
            ("finalizer", finalizer, None),
            ("queue_size", queue_size, 0),
            ("overflow", overflow, "block"),
            ("at_exit", at_exit, "finish"),
            ("exit_timeout", exit_timeout, None),
        ):
            if value != usual:
                raise _interpreter.refusal(f"Pool({name}={value!r})")
        if context not in ("none", "copy"):
            raise ValueError(f"context is {context!r}, expected one of 'none', 'copy'")
        super().__init__(max_workers, thread_name_prefix or f"Pool-{next(_numbers)}", initializer, initargs)
        self._copies = context == "copy"
        self._done, self._failed = done_callback, failed_callback
        self._unfinished: set[Future[Any]] = set()
        self._submitted = itertools.count()
        self._counted = self._failures = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn(*args, **kwargs)` in a worker and return its future."""
        _options.check_callable("submit", fn)
        if self._copies:
            args, fn = (fn, *args), contextvars.copy_context().run
        future = super().submit(fn, *args, **kwargs)
        self._counted = next(self._submitted) + 1
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        return future

    def push(self, fn: Callable[..., object], /, *args: Any, **kwargs: Any) -> None:
        """Call `fn(*args, **kwargs)` in a worker, without a future. A generator is run to its end."""
        _options.check_callable("push", fn)
        self.submit(self._run, fn, args, kwargs)

    def push_many(self, fn: Callable[..., object], /, *iterables: Iterable[Any]) -> int:
        """Push a call of `fn` for each item of the iterables, as `map` would call it. Return the number of calls."""
        count = 0
        for row in zip(*iterables):
            self.push(fn, *row)
            count += 1
        return count

    def _run(self, fn: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            result = fn(*args, **kwargs)
            if isinstance(result, types.GeneratorType):
                for value in result:
                    self._note(value)
            else:
                self._note(result)
        except BaseException as error:
            self._failures += 1
            if self._failed is not None:
                self._failed(error)
            else:
                _report(error, fn)

    def _note(self, value: object) -> None:
        if self._done is not None:
            self._done(value)

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        buffersize: int | None = None,
        ordered: bool = True,
    ) -> Iterator[Any]:
        """Return an iterator over the results of `fn` for the items of the iterables, as the native pool does."""
        return _map.run(self, fn, iterables, timeout, chunksize, buffersize, ordered)

    def run(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> asyncio.Future[Any]:
        """Call `fn(*args, **kwargs)` in a worker and return an awaitable for the running asyncio event loop."""
        asyncio.get_running_loop()
        return asyncio.wrap_future(self.submit(fn, *args, **kwargs))

    def cancel(self) -> int:
        """Cancel the jobs that wait for a worker. Return their number."""
        return sum(future.cancel() for future in list(self._unfinished))

    clear = cancel

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until no job waits and no job runs. Return False if `timeout` seconds passed first."""
        return not concurrent.futures.wait(list(self._unfinished), _options.timeout(timeout)).not_done

    def stats(self) -> PoolStats:
        """Return the counters of the pool. Durations are not measured."""
        none = Histogram(0, 0.0, ())
        unfinished, depth = len(self._unfinished), self._work_queue.qsize()
        return PoolStats(
            depth=depth,
            oldest_age=0.0,
            delayed=0,
            workers=len(self._threads),
            busy=max(unfinished - depth, 0),
            submitted=self._counted,
            failed=self._failures,
            dropped=0,
            timed_out=0,
            wakes=0,
            wait_seconds=none,
            run_seconds=none,
        )

    submit_first = _refused("submit_first")
    submit_later = _refused("submit_later")
    submit_at = _refused("submit_at")
    schedule = _refused("schedule")
    schedule_with_delay = _refused("schedule_with_delay")
    options = _refused("options")
    stream = _refused("stream")
    resize = _refused("resize")

    @property
    def high(self) -> NoReturn:
        """Refuse: a priority needs the native core."""
        raise _interpreter.refusal("Pool.high")

    @property
    def low(self) -> NoReturn:
        """Refuse: a priority needs the native core."""
        raise _interpreter.refusal("Pool.low")


def _report(error: BaseException, fn: object) -> None:
    found = types.SimpleNamespace(
        exc_type=type(error), exc_value=error, exc_traceback=error.__traceback__, err_msg=None, object=fn
    )
    sys.unraisablehook(found)


class _OfCore:
    """A class whose objects only the native core makes."""

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        raise _interpreter.refusal(f"{cls.__name__}()")


class Results(_OfCore):
    """A queue of values: jobs put them in, an iterator takes them in order of arrival."""


class Schedule(_OfCore):
    """The handle of a job that runs repeatedly."""


class Timer(_OfCore):
    """The future of a job that runs later."""


class Semaphore:
    """A counting semaphore: threads acquire and release permits."""

    def __init__(self, value: int = 1) -> None:
        if not 0 <= value <= _MOST_PERMITS:
            raise ValueError(f"value must be 0 to {_MOST_PERMITS}, not {value}")
        self._permits: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(value):
            self._permits.put(None)

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take a permit and return True; if no permit is free, wait for at most `timeout` seconds."""
        try:
            self._permits.get(blocking, timeout)
        except queue.Empty:
            return False
        return True

    def release(self, n: int = 1) -> None:
        """Release `n` permits and wake up to `n` waiting threads."""
        if n < 1:
            raise ValueError(f"n must be 1 or more, not {n}")
        for _ in range(n):
            self._permits.put(None)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()

    @property
    def value(self) -> int:
        """Number of free permits."""
        return self._permits.qsize()
