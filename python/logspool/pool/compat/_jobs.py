"""The part of the pool that accepts jobs and runs them in workers."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from inspect import isgeneratorfunction
from types import GeneratorType
from typing import Any

from logspool.base import _locks
from logspool.pool._pool import BrokenPool
from logspool.pool._pool import Pool as Workers
from logspool.pool.compat._outcomes import Outcomes

#: A job: function, `done_callback`, positional arguments, keyword arguments.
Job = tuple[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]]


class PoolStopped(RuntimeError):
    """The pool accepts no more jobs, because it was shut down."""


class Jobs:
    """The part of `Pool` that accepts jobs and runs them."""

    def __init__(self, outcomes: Outcomes, open_workers: Callable[[], Workers], *, default: bool) -> None:
        #: The `done_callback` of jobs that have no `done_callback` of their own.
        self._default = default
        self._outcomes, self._open_workers = outcomes, open_workers
        self._numbers = itertools.count(1)
        self._next_number = _next_of(self._numbers)
        # The waiting jobs by id. A job stays here until a worker removes it. If a worker does not find its job here,
        # the job was cancelled.
        self._waiting: dict[int, Job] = {}
        self._begun: set[int] = set()
        self._open()

    def _open(self) -> None:
        self._is_shutdown = self._skipping = False
        self._broken: BaseException | None = None
        self._workers = self._open_workers()
        self._outcomes.open()

    def _submit(self, give: Callable[..., Any], job: Job) -> int:
        number = self._next_number()
        self._waiting[number] = job
        try:
            self._give(give, self._run, number)
        except BaseException:
            self._waiting.pop(number, None)
            raise
        return number

    def _give(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method of the worker pool. If it refuses the job, raise an exception with the reason."""
        if self._broken is not None:
            raise BrokenPool("init_callback failed, the pool is not usable anymore") from self._broken
        try:
            return method(*arguments)
        except RuntimeError as error:
            if self._is_shutdown:
                raise PoolStopped("the pool was shut down; clear() opens it again") from error
            raise

    def _pending(self) -> int:
        # The waiting jobs are counted first, because a job is added to the running jobs before it leaves the waiting
        # jobs.
        waiting = len(self._waiting)
        return waiting + len(self._begun)

    def _stop(self, soon: bool) -> None:
        self._is_shutdown = True
        self._workers.shutdown(wait=False)
        if soon:
            self._skipping = True
            self._waiting.clear()
            self._outcomes.done.lift(self._workers._max_workers)

    def _reset_after_fork(self) -> None:
        self._next_number = _next_of(self._numbers)
        self._waiting.clear()
        self._begun.clear()

    # The methods below run in the workers.

    def _run(self, number: int, due: Job | None = None) -> None:
        self._begun.add(number)
        try:
            job = due or self._waiting.pop(number, None)
            if job is None:
                return
            if self._broken is None:
                self._do(number, *job)
            else:
                self._outcomes.failure(number, self._broken, *job[2:])
        finally:
            self._begun.discard(number)
            if not (self._waiting or self._begun):
                self._outcomes.wake()

    def _do_now(self, job: Job) -> None:
        self._run(self._next_number(), job)

    def _do(self, number: int, fn: Callable[..., Any], take: Any, args: Any, kwargs: dict[str, Any]) -> None:
        try:
            value = fn(*args, **kwargs)
            values = value if isinstance(value, GeneratorType) and isgeneratorfunction(fn) else (value,)
            for each in values:
                if take is True:
                    self._outcomes.result(number, each)
                elif take:
                    take(each)
        except BaseException as error:
            self._outcomes.failure(number, error, args, kwargs)

    def _do_part(self, fn: Callable[..., Any], items: list[Any], take: Any, unpack: bool | None) -> None:
        """Run a part of a `map`."""
        for item in items:
            if self._skipping:
                break
            unpacked = isinstance(item, (tuple, list)) if unpack is None else unpack
            # The item is unpacked inside the call of `_do`: an item that cannot be unpacked is then a failure of this
            # item.
            self._do(0, fn, take, item if unpacked else (item,), {})


def _next_of(numbers: Iterator[int]) -> Callable[[], int]:
    """Return a thread-safe function that returns the next number; no number is returned twice."""
    if sys.version_info >= (3, 14) or not hasattr(sys, "_is_gil_enabled") or sys._is_gil_enabled():
        return numbers.__next__
    lock = _locks.guard()

    def next_number() -> int:
        with lock:
            return next(numbers)

    return next_number
