"""The pool under fastthreadpool's names."""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any

from logspool._native import Semaphore
from logspool.pool._pool import Pool as Workers
from logspool.pool._pool import all_of
from logspool.pool.compat._jobs import Job
from logspool.pool.compat._outcomes import Outcomes
from logspool.pool.compat._timed import Timed

# Up to here `max_children` means "as many as there are cores".
_ALL_CORES = -9999
# Chosen: parts of a `map` for each worker; more spread the last items better, fewer cost less.
_PARTS = 4


class Pool(Timed):
    """Threads that do jobs; what comes of them lies in `done` and `failed`. All methods are thread-safe.

    - `max_children`: most threads; 0 and below: so many fewer than the process has cores; by default as many.
      They are started when jobs come and none is idle.
    - `child_name_prefix`: what their names begin with.
    - `init_callback(thread, *init_args)` is called in each thread before its first job; what it sets on the `Thread`
      its jobs find on `threading.current_thread()`. Where it raises, the pool is broken. `finish_callback()` is called
      in each thread at its end.
    - `done_callback`: called with each result, in a thread of its own; False: results are dropped.
    - `failed_callback`: called with each entry that would go to `failed`, in a thread of its own.
    - `log_level`: level of the logger `fastthreadpool`, which gets each failure as an error; `failed` gets none then.
    - `result_id`: an entry of `done` is `(id, result)`, one of `failed` begins with the id; 0 with `map`.
    - `exc_stack`: entries of `failed` hold the formatted traceback in place of the exception.
    - `exc_args`: entries of `failed` end with the positional arguments and the keywords of the job.
    - `done_max`: most entries of `done`; workers wait until some are taken. 0: no limit.

    An entry of `failed` that has one part is that part, without a tuple. Where `fn` is a generator function each value
    that it yields is a result. Raises `ValueError` where `max_children` leaves no thread.
    """

    def __init__(
        self,
        max_children: int = _ALL_CORES,
        child_name_prefix: str = "",
        init_callback: Callable[..., object] | None = None,
        init_args: Iterable[Any] | None = None,
        finish_callback: Callable[[], object] | None = None,
        done_callback: Callable[[Any], object] | bool | None = None,
        failed_callback: Callable[..., object] | None = None,
        log_level: int | str | None = None,
        result_id: bool = False,
        exc_stack: bool = False,
        exc_args: bool = False,
        done_max: int = 0,
    ) -> None:
        if max_children <= 0:
            max_children = len(os.sched_getaffinity(0)) + (max_children if max_children > _ALL_CORES else 0)
        if max_children <= 0:
            raise ValueError("number of child threads must be greater than 0")
        # What the threads have must not hold the pool.
        initializer = None if init_callback is None else _prepare
        initargs = (weakref.ref(self), init_callback, *(init_args or ()))
        outcomes = Outcomes(
            done_callback=done_callback,
            failed_callback=failed_callback,
            log_level=log_level,
            result_id=bool(result_id),
            exc_stack=exc_stack,
            exc_args=bool(exc_args),
            done_max=done_max,
        )

        def open_workers() -> Workers:
            prefix = child_name_prefix or "ThreadPool"
            return Workers(max_children, prefix, initializer, initargs, finalizer=finish_callback, idle_timeout=None)

        super().__init__(outcomes, open_workers, default=done_callback is not False)
        _pools[id(self)] = self

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        self.shutdown()

    # Jobs.

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> int:
        """Have `fn(*args, **kwargs)` called and return the id of the job. Raises `PoolStopped` after `shutdown`."""
        return self._submit(self._workers.push, (fn, self._default, args, kwargs))

    def submit_done(self, fn: Callable[..., Any], done_callback: Any, /, *args: Any, **kwargs: Any) -> int:
        """As `submit`; `done_callback`: True: results go where those of the pool go, False: nowhere, else called.

        It is called in the worker, with several at a time; what it raises is the job's failure.
        """
        return self._submit(self._workers.push, (fn, done_callback, args, kwargs))

    def submit_first(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> int:
        """As `submit`, before all jobs that wait."""
        return self._submit(self._workers.submit_first, (fn, self._default, args, kwargs))

    def submit_done_first(self, fn: Callable[..., Any], done_callback: Any, /, *args: Any, **kwargs: Any) -> int:
        """As `submit_done`, before all jobs that wait."""
        return self._submit(self._workers.submit_first, (fn, done_callback, args, kwargs))

    def map(
        self,
        fn: Callable[..., Any],
        itr: Iterable[Any],
        done_callback: Any = True,
        direct: bool = True,
        unpack_args: bool | None = None,
    ) -> None:
        """Have `fn` called with each item; results come in no order, as those of `submit_done`.

        `unpack_args`: whether the parts of an item are arguments of their own; None: those of tuples and lists.
        `direct` is taken and changes nothing.
        """
        items = list(itr)
        size = -(-len(items) // (_PARTS * self._workers._max_workers)) or 1
        for begin in range(0, len(items), size):
            part = (fn, items[begin : begin + size], done_callback, unpack_args)
            self._submit(self._workers.push, (self._do_part, False, part, {}))

    def as_completed(self, wait: float | bool | None = None, cnt_max: int = 0) -> Iterator[Any]:
        """Return an iterator that takes entries out of `done` and `failed` as they come.

        `wait`: None: until no job waits or runs; False: what is there; else seconds from now. `cnt_max`: most entries,
        0 for no limit. Jobs that wait for their time do not count. Raises `PoolCallback` where a callback or the log
        gets the results or the failures.
        """
        deadline = None if wait is None or wait is True else time.monotonic() + wait
        entries = self._outcomes.completed(lambda: not self._pending(), deadline)
        return itertools.islice(entries, cnt_max if cnt_max > 0 else None)

    def cancel(self, jobid: int | None = None, timer: Any = None) -> bool:
        """Cancel jobs that wait, and timers; return whether the job was there.

        `jobid`: None for all, False for none, else one that `submit` returned. `timer`: True for all that are delayed
        or scheduled, else one of them. What runs goes on.
        """
        if timer is True:
            self._cancel_timers()
        elif timer is not None:
            self._cancel_timer(timer)
        if jobid is None:
            self._waiting.clear()
        return jobid is None or jobid is False or self._waiting.pop(jobid, None) is not None

    def clear(self) -> None:
        """Drop the jobs that wait, and all results and failures; after `shutdown` take jobs again."""
        self._waiting.clear()
        self._outcomes.clear()
        if self._is_shutdown:
            self._open()

    # The end.

    def shutdown(self, timeout: float | None = None, soon: bool = False) -> bool:
        """Take no more jobs, do those that wait (not with `soon`), cancel all timers, and wait until the threads end.

        Returns False where they still run after `timeout` seconds. With `done_max` and without `soon` it waits until
        the results were taken. Raises `RuntimeError` where a job waits for its own pool.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        self._stop(soon)
        return all(_end(workers, deadline) for workers in (self._workers, *self._outcomes.callers))

    def join(self, timeout: float | None = None) -> bool:
        """As `shutdown(timeout)`."""
        return self.shutdown(timeout)

    def shutdown_children(self) -> None:
        """As `shutdown(soon=True)`, without waiting."""
        self._stop(soon=True)

    def cleanup_children(self) -> None:
        """Do nothing: threads that ended are in no list."""

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until no job waits and none runs. Returns False where `timeout` seconds were over first."""
        return self._workers.wait_idle(timeout)

    # What there is.

    @property
    def children(self) -> tuple[threading.Thread, ...]:
        """The threads."""
        return tuple(self._workers._threads)

    @property
    def child_cnt(self) -> int:
        """How many threads there are."""
        return len(self._workers._threads)

    @property
    def alive(self) -> int:
        """How many of them live."""
        return sum(thread.is_alive() for thread in self._workers._threads)

    @property
    def busy(self) -> int:
        """How many jobs run."""
        return len(self._begun)

    @property
    def pending(self) -> int:
        """How many jobs wait or run."""
        return self._pending()

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs that wait, as they were given: function, done_callback, arguments, keywords."""
        return tuple(self._waiting.copy().values())

    @property
    def done(self) -> deque[Any]:
        """The results. Take them with `popleft`, which makes room where `done_max` is set, or with `as_completed`."""
        return self._outcomes.done

    @property
    def done_cnt(self) -> Semaphore:
        """A semaphore with a permit for each result: acquire it to wait for one, then take it from `done`."""
        return self._outcomes.done.permits

    @property
    def failed(self) -> deque[Any]:
        """The failures."""
        return self._outcomes.failed

    @property
    def failed_cnt(self) -> Semaphore:
        """A semaphore with a permit for each failure."""
        return self._outcomes.failed.permits

    @property
    def is_shutdown(self) -> bool:
        """Whether jobs are refused."""
        return self._is_shutdown


def _end(workers: Workers, deadline: float | None) -> bool:
    """Shut workers down and return whether they ended before the deadline."""
    workers.shutdown(wait=False)
    return workers._join(None if deadline is None else max(0.0, deadline - time.monotonic()))


def _prepare(pool_reference: weakref.ref[Pool], init_callback: Callable[..., object], *init_args: Any) -> None:
    """Prepare a worker, in it."""
    try:
        init_callback(threading.current_thread(), *init_args)
    except BaseException as error:
        # The thread goes on: the jobs that wait fail with this, instead of waiting for good.
        pool = pool_reference()
        if pool is not None:
            pool._broken = error


def Shutdown(now: bool = True) -> None:
    """Shut all pools down and wait for their threads; with `now` without the jobs that wait."""
    pools = all_of(_pools)
    for pool in pools:
        pool._stop(now)
    for pool in pools:
        pool.shutdown(soon=now)


def _after_fork() -> None:
    for pool in all_of(_pools):
        pool._begin_anew_after_fork()


# By `id`.
_pools: weakref.WeakValueDictionary[int, Pool] = weakref.WeakValueDictionary()

# At the interpreter's end, before the pools beneath would do all that waits.
threading._register_atexit(Shutdown)  # type: ignore[attr-defined]
os.register_at_fork(after_in_child=_after_fork)
