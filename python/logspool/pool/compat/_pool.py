"""The pool with the interface of fastthreadpool."""

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

from logspool import _forks
from logspool._native import Semaphore
from logspool.pool._pool import Pool as Workers
from logspool.pool._pool import all_of
from logspool.pool.compat._jobs import Job
from logspool.pool.compat._outcomes import Outcomes
from logspool.pool.compat._timed import Timed

# If `max_children` is less than or equal to this number, it means one thread per core.
_ALL_CORES = -9999
# Number of parts of a `map` for each worker. Chosen: more parts would spread the last items more evenly; fewer parts
# would cost less.
_PARTS = 4


class Pool(Timed):
    """Threads that run jobs; results are in `done`, failures in `failed`. All methods are thread-safe.

    - `max_children`: maximum number of threads. 0 or a negative number is added to the number of cores of the process.
      Default: one thread per core. A thread is started when a job arrives and no thread is idle.
    - `child_name_prefix`: prefix of the threads' names.
    - `init_callback(thread, *init_args)` is called in each thread before its first job. Attributes that it sets on the
      `Thread` are available to jobs by `threading.current_thread()`. If it raises, the pool is broken.
      `finish_callback()` is called in each thread at its end.
    - `done_callback`: called with each result, in a thread of its own. False drops the results.
    - `failed_callback`: called, in a thread of its own, with each entry that would otherwise be added to `failed`.
    - `log_level`: level of the logger `fastthreadpool`, which logs each failure as an error; `failed` stays empty then.
    - `result_id`: an entry of `done` is `(id, result)`, an entry of `failed` begins with the id; the id is 0 for `map`.
    - `exc_stack`: entries of `failed` have the formatted traceback instead of the exception.
    - `exc_args`: entries of `failed` end with the positional arguments and the keywords of the job.
    - `done_max`: maximum number of entries of `done`. Workers wait until entries are taken. 0 means no limit.

    If an entry of `failed` has a single part, the entry is this part and not a tuple. If `fn` is a generator function,
    each value that it yields is a result. Raises `ValueError` if `max_children` leaves no thread.
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
        # The threads must not hold a strong reference to the pool.
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
        """Call `fn(*args, **kwargs)` in a worker and return the job's id. Raises `PoolStopped` after `shutdown`."""
        return self._submit(self._workers.push, (fn, self._default, args, kwargs))

    def submit_done(self, fn: Callable[..., Any], done_callback: Any, /, *args: Any, **kwargs: Any) -> int:
        """Like `submit`. `done_callback`: True for the callback of the pool, False to drop results, or a function.

        Several workers may call the function at the same time. An exception of the function is a failure of the job.
        """
        return self._submit(self._workers.push, (fn, done_callback, args, kwargs))

    def submit_first(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> int:
        """Like `submit`, before all waiting jobs."""
        return self._submit(self._workers.submit_first, (fn, self._default, args, kwargs))

    def submit_done_first(self, fn: Callable[..., Any], done_callback: Any, /, *args: Any, **kwargs: Any) -> int:
        """Like `submit_done`, before all waiting jobs."""
        return self._submit(self._workers.submit_first, (fn, done_callback, args, kwargs))

    def map(
        self,
        fn: Callable[..., Any],
        itr: Iterable[Any],
        done_callback: Any = True,
        direct: bool = True,
        unpack_args: bool | None = None,
    ) -> None:
        """Call `fn` with each item in the workers; results come in any order, as with `submit_done`.

        `unpack_args`: True passes the parts of an item as separate arguments; None does so only for tuples and lists.
        `direct` is accepted and has no effect.
        """
        items = list(itr)
        size = -(-len(items) // (_PARTS * self._workers._max_workers)) or 1
        for begin in range(0, len(items), size):
            part = (fn, items[begin : begin + size], done_callback, unpack_args)
            self._submit(self._workers.push, (self._do_part, False, part, {}))

    def as_completed(self, wait: float | bool | None = None, cnt_max: int = 0) -> Iterator[Any]:
        """Return an iterator that takes entries out of `done` and `failed` as they come.

        `wait`: None waits until no job waits or runs; False takes only the present entries; a number is a timeout in
        seconds. `cnt_max`: maximum number of entries, 0 for no limit. Jobs that are not due yet do not count. Raises
        `PoolCallback` if a callback or the log receives the results or the failures.
        """
        deadline = None if wait is None or wait is True else time.monotonic() + wait
        entries = self._outcomes.completed(lambda: not self._pending(), deadline)
        return itertools.islice(entries, cnt_max if cnt_max > 0 else None)

    def cancel(self, jobid: int | None = None, timer: Any = None) -> bool:
        """Cancel waiting jobs and timers; return whether the job was found.

        `jobid`: None for all, False for no job, else an id from `submit`. `timer`: True for all delayed and scheduled
        jobs, else a single timer. Running jobs continue.
        """
        if timer is True:
            self._cancel_timers()
        elif timer is not None:
            self._cancel_timer(timer)
        if jobid is None:
            self._waiting.clear()
        return jobid is None or jobid is False or self._waiting.pop(jobid, None) is not None

    def clear(self) -> None:
        """Drop the waiting jobs and all results and failures; after `shutdown` accept jobs again."""
        self._waiting.clear()
        self._outcomes.clear()
        if self._is_shutdown:
            self._open()

    # Shutdown.

    def shutdown(self, timeout: float | None = None, soon: bool = False) -> bool:
        """Accept no more jobs, run the waiting jobs, cancel all timers, and wait for the threads to end.

        With `soon`, waiting jobs are dropped. Returns False if threads still run after `timeout` seconds. With
        `done_max` and without `soon`, waits until the results were taken. Raises `RuntimeError` if a job waits for its
        own pool.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        self._stop(soon)
        return all(_end(workers, deadline) for workers in (self._workers, *self._outcomes.callers))

    def join(self, timeout: float | None = None) -> bool:
        """Call `shutdown(timeout)`."""
        return self.shutdown(timeout)

    def shutdown_children(self) -> None:
        """Like `shutdown(soon=True)`, without waiting."""
        self._stop(soon=True)

    def cleanup_children(self) -> None:
        """Do nothing: the pool keeps no list of ended threads."""

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until no job waits and no job runs. Returns False if `timeout` seconds passed first."""
        return self._workers.wait_idle(timeout)

    # State.

    @property
    def children(self) -> tuple[threading.Thread, ...]:
        """The threads of the pool."""
        return tuple(self._workers._threads)

    @property
    def child_cnt(self) -> int:
        """Number of threads."""
        return len(self._workers._threads)

    @property
    def alive(self) -> int:
        """Number of threads that are alive."""
        return sum(thread.is_alive() for thread in self._workers._threads)

    @property
    def busy(self) -> int:
        """Number of running jobs."""
        return len(self._begun)

    @property
    def pending(self) -> int:
        """Number of waiting and running jobs."""
        return self._pending()

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The waiting jobs as submitted: function, done_callback, arguments, keywords."""
        return tuple(self._waiting.copy().values())

    @property
    def done(self) -> deque[Any]:
        """The results. Take them with `popleft`, which makes room under `done_max`, or with `as_completed`."""
        return self._outcomes.done

    @property
    def done_cnt(self) -> Semaphore:
        """A semaphore with a permit for each result: acquire it to wait for a result, then take it from `done`."""
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
        """Whether the pool refuses jobs because it was shut down."""
        return self._is_shutdown


def _end(workers: Workers, deadline: float | None) -> bool:
    """Shut a pool of workers down and return whether its threads ended before the deadline."""
    workers.shutdown(wait=False)
    return workers._join(None if deadline is None else max(0.0, deadline - time.monotonic()))


def _prepare(pool_reference: weakref.ref[Pool], init_callback: Callable[..., object], *init_args: Any) -> None:
    """Run the initializer in a worker thread."""
    try:
        init_callback(threading.current_thread(), *init_args)
    except BaseException as error:
        # The thread does not end after this error: waiting jobs fail with the error instead of waiting for ever.
        pool = pool_reference()
        if pool is not None:
            pool._broken = error


def Shutdown(now: bool = True) -> None:
    """Shut all pools down and wait for their threads; with `now`, waiting jobs are dropped."""
    pools = all_of(_pools)
    for pool in pools:
        pool._stop(now)
    for pool in pools:
        pool.shutdown(soon=now)


def _after_fork() -> None:
    for pool in all_of(_pools):
        pool._reset_after_fork()


# All pools by their `id`.
_pools: weakref.WeakValueDictionary[int, Pool] = weakref.WeakValueDictionary()

# `Shutdown` runs at the end of the interpreter, before the underlying pools would run all waiting jobs.
threading._register_atexit(Shutdown)  # type: ignore[attr-defined]
_forks.register(after_in_child=_after_fork)
