"""The pool: options, threads and shutdown. Native code runs the jobs."""

from __future__ import annotations

import functools
import itertools
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, _base
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from logspool import _forks
from logspool._native import EventLoop, PoolCore, Results, View, timers_after_fork
from logspool.base import _locks, _options
from logspool.base._options import known_only
from logspool.pool import _exit, _map
from logspool.pool._stats import PoolStats, stats_of

if TYPE_CHECKING:
    import asyncio

    from logspool._native import Worker

_P = ParamSpec("_P")
_T = TypeVar("_T")
_AT_EXIT = ("finish", "cancel", "abandon")
_numbers = itertools.count()
# Maximum number of values of a `stream` that wait for the consumer. Chosen: with half as many, workers often stop and
# start again. Twice as many would only take more memory.
_STREAM_VALUES = 1000
# While the interpreter ends, it checks at this interval, in seconds, for jobs that wait for a consumer that is gone.
_POLL_SECONDS = 0.1


class BrokenPool(BrokenExecutor):
    """The pool takes no more jobs, because its initializer failed or because the process was forked."""


class Pool(PoolCore, _exit.ThreadPoolExecutor):
    """A pool of threads that run jobs.

    It is a `ThreadPoolExecutor` for code that asks for one, such as `loop.set_default_executor`, but uses none of its
    code.

    - `max_workers`: maximum number of threads. Default: the number of cores of the process plus four, at most 32. A
      thread is started when a job arrives and no thread is idle.
    - `thread_name_prefix`: prefix of the threads' names.
    - `initializer(*initargs)` is called in each thread before its first job; if it raises, the pool is broken.
      `finalizer()` is called in each thread at its end.
    - `queue_size`: maximum number of waiting jobs, 0 for no limit. `overflow` is the policy of a full queue: `"block"`
      (wait for room), `"raise"` (`queue.Full`), `"drop_oldest"` (cancel the job that waited longest) or
      `"caller_runs"`.
    - `idle_timeout`: seconds after which a thread without work ends; None means never.
    - `at_exit`: what happens when the interpreter ends. `"finish"` runs all jobs, `"cancel"` cancels the waiting jobs,
      and `"abandon"` also leaves the running jobs. The end waits at most `exit_timeout` seconds (None: without a limit)
      and reports unfinished jobs on stderr.
    - `context`: `"none"`, or `"copy"` to run each job in a copy of its caller's `contextvars` context.
    - `done_callback(result)` and `failed_callback(exception)` are called in the worker for each job that has neither a
      future nor `results` nor callbacks of its own. Without `failed_callback`, exceptions of such jobs go
      to `sys.unraisablehook`.

    Raises `ValueError` and `TypeError` for options that do not fit.
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
        if max_workers is None:
            max_workers = min(32, len(os.sched_getaffinity(0)) + 4)
        max_workers = _workers(max_workers)
        queue_size = _options.whole("queue_size", queue_size)
        if queue_size < 0:
            raise ValueError(f"queue_size is {queue_size}, expected 0 (no limit) or more")
        for name, function in (("initializer", initializer), ("finalizer", finalizer)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be a callable, not {function!r}")
        for name, value in (("overflow", overflow), ("context", context)):
            if not isinstance(value, str):
                raise TypeError(f"{name} must be text, not {value!r}")
        if at_exit not in _AT_EXIT:
            raise ValueError(f"at_exit is {at_exit!r}, expected one of {', '.join(map(repr, _AT_EXIT))}")
        self._max_workers = max_workers
        self._queue_size = queue_size
        for name, seconds in (("exit_timeout", exit_timeout), ("idle_timeout", idle_timeout)):
            if seconds is not None and not _options.seconds(name, seconds) >= 0:
                raise ValueError(f"{name} is {seconds}, expected 0 or more seconds, or None")
        self._at_exit = at_exit
        self._exit_timeout = exit_timeout
        self._number = next(_numbers)
        self._thread_name_prefix: str = thread_name_prefix or f"Pool-{self._number}"
        self._thread_numbers = itertools.count()
        self._ends = (initializer, initargs, finalizer)
        # The set is replaced, never changed, because other threads may iterate over it at any time.
        self._threads: frozenset[threading.Thread] = frozenset()
        self._threads_lock = _locks.guard()
        self._broken: str | None = None  # type: ignore[assignment]  # a bool there
        self._open(max_workers, queue_size, overflow, context, idle_timeout, done_callback, failed_callback)
        _pools[id(self)] = self

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        buffersize: int | None = None,
        ordered: bool = True,
    ) -> Iterator[Any]:
        """Return an iterator over the results of `fn` for the items of the iterables.

        The workers get the items in chunks of `chunksize`; by default the first chunks are large and the last ones have
        a single item. With `buffersize` the input is read as results are taken, at most `buffersize` items ahead.
        Without it, the input is read at once. With `ordered=False` results are returned as soon as they are ready. An
        exception of `fn` is raised in place of its result. `TimeoutError` is raised `timeout` seconds after this call.
        """
        return _map.run(self, fn, iterables, timeout, chunksize, buffersize, ordered)

    def stream(self, fn: Callable[_P, Iterable[_T]], /, *args: _P.args, **kwargs: _P.kwargs) -> Results[_T]:
        """Call a generator function in a worker and return an iterator over the values it yields.

        The worker is at most 1,000 values ahead of the consumer. It stops when the iterator is closed or dropped. An
        exception of the function is raised in place of the next value.
        """
        _options.check_callable("stream", fn)
        results: Results[_T] = Results(_STREAM_VALUES)
        self.options(results=results).push(fn, *args, **kwargs)
        return results

    @property
    def high(self) -> View:
        """Return a view of the pool whose jobs run before all others except jobs of `submit_first`."""
        return self.options(priority="high")

    @property
    def low(self) -> View:
        """Return a view of the pool whose jobs run when no other job waits."""
        return self.options(priority="low")

    def clear(self) -> int:
        """Cancel all jobs that have not begun, timers and schedules. Return how many jobs waited for a worker."""
        self._cancel_timers()
        return self.cancel()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop accepting jobs; `wait` for the accepted jobs, or cancel the jobs that have not begun.

        Jobs that are not due yet are included; schedules end. Raises `RuntimeError` if a job waits for its own pool.
        """
        self._close(bool(cancel_futures))
        if wait:
            self._join(None)

    def _join(self, timeout: float | None) -> bool:
        """Wait for the jobs and the threads. Returns False if `timeout` seconds passed first."""
        if threading.current_thread() in self._threads:
            raise RuntimeError("a job cannot wait for the end of its own pool: use shutdown(wait=False)")
        deadline = None if timeout is None else time.monotonic() + timeout

        def left() -> float | None:
            return None if deadline is None else max(0.0, deadline - time.monotonic())

        # Jobs may still wait because a worker could not be started. `resize` starts the missing workers.
        self.resize(self._max_workers)
        # The jobs are awaited before the threads: a job that just became due may still wait for a thread.
        ended = self._wait_for_end(left())
        for thread in self._threads:
            thread.join(left())
        return ended and not any(thread.is_alive() for thread in self._threads)

    def resize(self, max_workers: int) -> None:
        """Set the maximum number of threads; surplus threads end after their current job."""
        max_workers = _workers(max_workers)
        self._max_workers = max_workers
        self._resize(max_workers)

    def stats(self) -> PoolStats:
        """Return the counters of the pool."""
        return stats_of(self._counts())

    def __repr__(self) -> str:
        """Name the pool with its workers and waiting jobs."""
        counts = self.stats()
        workers = f"{counts.busy} of {counts.workers} workers busy"
        return f"<{type(self).__name__} {self._thread_name_prefix}: {workers}, {counts.depth} jobs wait>"

    def _start_worker(self, worker: Worker) -> None:
        """Start the thread of a worker. Called by native code, which removes it from the count if this raises."""
        name = f"{self._thread_name_prefix}_{next(self._thread_numbers)}"
        reference = weakref.ref(self)
        arguments = (reference, worker, *self._ends)
        thread = threading.Thread(target=_work, args=arguments, name=name, daemon=True)
        try:
            self._keep(thread)
            _running_workers[thread] = _RunningWorker(reference, worker, self._at_exit, self._exit_timeout)
            thread.start()
        except BaseException:
            # Ctrl-C may arrive after the thread has started. Then the worker stays counted, and `give_back` returns
            # False.
            if worker.give_back():
                _running_workers.pop(thread, None)
                self._forget(thread)
            raise

    def _keep(self, thread: threading.Thread) -> None:
        with self._threads_lock:
            self._threads |= {thread}

    def _forget(self, thread: threading.Thread) -> None:
        with self._threads_lock:
            self._threads -= {thread}

    @staticmethod
    def _event_loop_of(asyncio_loop: asyncio.AbstractEventLoop) -> EventLoop:
        """Return the connection to an event loop, the same object each time. Called by native code."""
        with _event_loops_lock:
            found = _event_loops.get(asyncio_loop)
            if found is None:
                found = _event_loops[asyncio_loop] = EventLoop(_call_soon(weakref.ref(asyncio_loop)))
            return found

    def _refusal(self) -> BaseException:
        """Return the exception that refuses a job. Called by native code."""
        if self._broken is not None:
            return BrokenPool(self._broken)
        if _exiting:
            return RuntimeError("cannot schedule new futures after interpreter shutdown")
        return RuntimeError("cannot schedule new futures after shutdown")


def _workers(count: Any) -> int:
    """Check and return the maximum number of threads of a pool."""
    count = _options.whole("max_workers", count)
    if count <= 0:
        raise ValueError(f"max_workers must be greater than 0, not {count}")
    return count


def _call_soon(reference: weakref.ref[asyncio.AbstractEventLoop]) -> Callable[[Callable[[], object]], None]:
    """Return a function that wakes an event loop without keeping it alive: the table of loops has weak keys."""

    def call_soon(function: Callable[[], object]) -> None:
        asyncio_loop = reference()
        if asyncio_loop is not None:
            asyncio_loop.call_soon_threadsafe(function)

    return call_soon


class _RunningWorker(NamedTuple):
    """Facts about a worker thread that the end of the interpreter needs when the thread's pool no longer exists."""

    pool: weakref.ref[Pool]
    worker: Worker
    at_exit: str
    exit_timeout: float | None


def _let_threads_switch() -> None:
    """Give the interpreter a chance to switch threads: it checks for requests when a Python function runs."""
    for _ in (0, 1):
        pass


def _work(
    pool_reference: weakref.ref[Pool],
    worker: Worker,
    initializer: Callable[..., object] | None,
    initargs: tuple[Any, ...],
    finalizer: Callable[[], object] | None,
) -> None:
    """Run a worker thread from start to end."""
    if not worker.begin():
        return
    try:
        if initializer is not None:
            try:
                initializer(*initargs)
            except BaseException:
                _base.LOGGER.critical("Exception in initializer:", exc_info=True)
                reason = "A thread initializer failed, the thread pool is not usable anymore"
                pool = pool_reference()
                if pool is not None:
                    pool._broken = reason
                del pool
                worker.give_up(BrokenPool(reason))
                return
        worker.run(threading.current_thread().name, _let_threads_switch)
        if finalizer is not None:
            finalizer()
    finally:
        pool = pool_reference()
        if pool is not None:
            pool._forget(threading.current_thread())
        _running_workers.pop(threading.current_thread(), None)


def by_name() -> list[tuple[str, Pool]]:
    """Return all pools under unique names: pools with the same prefix get a number appended."""
    pools = sorted(all_of(_pools), key=lambda pool: pool._number)
    seen: dict[str, int] = {}
    named = []
    for pool in pools:
        prefix = pool._thread_name_prefix
        seen[prefix] = seen.get(prefix, 0) + 1
        named.append((prefix if seen[prefix] == 1 else f"{prefix}#{seen[prefix]}", pool))
    return named


def start_worker(pool_id: int) -> None:
    """Start a worker of the pool with this id. Called by the thread that waits for timers."""
    for pool in all_of(_pools):
        if pool._id() == pool_id:
            pool._add_worker()


def all_of(pools: weakref.WeakValueDictionary[int, _T]) -> list[_T]:
    """Return the pools of a table. Safe while other threads add pools: iterating over the table would raise."""
    return [pool for reference in pools.valuerefs() if (pool := reference()) is not None]


# All pools by their `id`.
_pools: weakref.WeakValueDictionary[int, Pool] = weakref.WeakValueDictionary()
# All running worker threads. The references are strong, because the end of the interpreter has to wait for these
# threads: otherwise it would stop them in the middle of a job.
_running_workers: dict[threading.Thread, _RunningWorker] = {}
_event_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, EventLoop] = weakref.WeakKeyDictionary()
_event_loops_lock = _locks.guard()
_exiting = False


def _end_all() -> None:
    """End all pools. Called at the end of the interpreter, before it waits for threads."""
    global _exiting
    _exiting = True
    pools = all_of(_pools)
    for pool in pools:
        # The end of a program does not wait for jobs that are not due yet.
        pool._cancel_timers()
        pool.shutdown(wait=False, cancel_futures=pool._at_exit != "finish")
    # Threads whose pool was garbage-collected. Such a pool accepts no more jobs.
    alone = {thread: each for thread, each in _running_workers.copy().items() if each.pool() is None}
    for each in alone.values():
        if each.at_exit != "finish":
            each.worker.cancel()
    # The timeouts of all pools begin at the same moment, not one after the other.
    began = time.monotonic()
    for pool in pools:
        if pool._at_exit == "abandon" or _ended(pool._join, pool._exit_timeout, began):
            continue
        counts = pool.stats()
        undone = f"{counts.busy} jobs that run and {counts.depth} that wait are left undone"
        _report_unfinished(repr(pool), pool._exit_timeout, undone)
    for thread, each in alone.items():
        if each.at_exit == "abandon" or _ended(functools.partial(_join_thread, thread), each.exit_timeout, began):
            continue
        undone = "its pool has no references left and leaves jobs undone"
        _report_unfinished(f"the thread {thread.name}", each.exit_timeout, undone)


def _ended(join: Callable[[float], bool], timeout: float | None, began: float) -> bool:
    """Wait with `join` until `timeout` seconds after `began`; release jobs that wait for a consumer that is gone."""
    while True:
        left = _seconds_left(timeout, began)
        if join(min(left, _POLL_SECONDS)):
            return True
        if left == 0:
            return False
        _forget_takers(began)


def _seconds_left(timeout: float | None, began: float) -> float:
    return math.inf if timeout is None else max(0.0, began + timeout - time.monotonic())


def _join_thread(thread: threading.Thread, timeout: float) -> bool:
    thread.join(timeout)
    return not thread.is_alive()


def _forget_takers(began: float) -> None:
    """Release jobs that wait for room in `Results` if no thread is left that could take a value."""
    this = threading.current_thread()
    # Daemon threads, and pools with `at_exit="abandon"`, do not delay the end of the program.
    others = [thread for thread in threading.enumerate() if thread is not this and not thread.daemon]
    if not all(_is_idle(thread) for thread in others):
        return
    awaited = [
        each.worker
        for each in _running_workers.copy().values()
        if each.at_exit != "abandon" and _seconds_left(each.exit_timeout, began) > 0
    ]
    if all(worker.waits_for_takers() for worker in awaited):
        for worker in awaited:
            worker.forget_takers()


def _is_idle(thread: threading.Thread) -> bool:
    """Return whether a thread belongs to an executor of the standard library and has no work.

    Such a thread ends after the calling thread if its module was imported first. No thread is left to give it work.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    threads: Any = sys.modules.get("concurrent.futures.thread")
    if threads is not None and (queue := threads._threads_queues.get(thread)) is not None:
        # A waiting worker is in a C function of its queue, so its innermost Python frame is `_worker`.
        return frame is not None and frame.f_code is threads._worker.__code__ and queue.empty()
    processes: Any = sys.modules.get("concurrent.futures.process")
    if processes is None or not isinstance(thread, processes._ExecutorManagerThread):
        return False
    while frame is not None and frame.f_code is not thread.wait_result_broken_or_wakeup.__code__:
        frame = frame.f_back
    # If the frame is another function, the thread runs callbacks of finished work.
    return frame is not None and not thread.pending_work_items


def _report_unfinished(what: str, timeout: float | None, undone: str) -> None:
    print(f"logspool: {what} did not end within exit_timeout={timeout} s: {undone}", file=sys.stderr)


def _reset_after_fork() -> None:
    """Reset the pools in a forked child to no threads and no jobs. Takes no lock, because a lost thread may hold it."""
    reason = BrokenPool("the process was forked while this job waited; it is done in the parent")
    timers_after_fork(reason)
    for each in _running_workers.values():
        each.worker.fail_after_fork(reason)
    _running_workers.clear()
    for pool in all_of(_pools):
        pool._threads = frozenset()
        pool._after_fork(reason, pool._max_workers, pool._queue_size)


_exit.end_all.append(_end_all)
_forks.register(after_in_child=_reset_after_fork)
