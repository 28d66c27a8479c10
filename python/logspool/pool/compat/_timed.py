"""Delayed and scheduled jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logspool.pool.compat._jobs import Job, Jobs

if TYPE_CHECKING:
    from logspool._native import Schedule, Timer


# Maximum number of seconds that a given time may be in the past. Chosen: a call on a busy machine may be this late. An
# earlier time is a mistake of the caller.
_LATE_SECONDS = 60


class TimerObj:
    """A job of `schedule` or `submit_at`, for `Pool.cancel`."""

    def __init__(self) -> None:
        #: The current timer, which waits until the job is due.
        self.timer_id: Timer[None] | Schedule | None = None
        #: The previous timer, for `submit_at` with an interval.
        self.old_timer_id: Timer[None] | Schedule | None = None
        #: Whether `Pool.cancel` cancelled the job.
        self.cancelled = False


class Timed(Jobs):
    """The part of `Pool` that runs jobs at a given time."""

    def _open(self) -> None:
        self._delayed: set[Timer[None]] = set()
        self._scheduled: dict[Timer[None] | Schedule, TimerObj] = {}
        super()._open()

    def submit_later(self, delay: float, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Timer[None]:
        """Like `submit_first`, `delay` seconds from now; returns the timer, which has `cancel()`."""
        return self._submit_later(delay, (fn, self._default, args, kwargs))

    def submit_done_later(
        self, delay: float, fn: Callable[..., Any], done_callback: Any, /, *args: Any, **kwargs: Any
    ) -> Timer[None]:
        """Like `submit_done_first`, `delay` seconds from now; returns the timer, which has `cancel()`."""
        return self._submit_later(delay, (fn, done_callback, args, kwargs))

    def submit_at(
        self, when: float | time.struct_time, interval: float, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> TimerObj:
        """Like `submit_first`, at a time of the wall clock; with `interval` above 0, repeated every `interval` seconds.

        `when`: seconds since the epoch, as from `time.time()`, or a `struct_time` of local time. A time that has just
        passed means now. Times that pass while the job still runs are skipped. Raises `ValueError` for a time more
        than a minute ago, such as a value of `time.monotonic()`.
        """
        return self._submit_at(when, interval, (fn, self._default, args, kwargs))

    def submit_done_at(
        self,
        when: float | time.struct_time,
        interval: float,
        fn: Callable[..., Any],
        done_callback: Any,
        /,
        *args: Any,
        **kwargs: Any,
    ) -> TimerObj:
        """Like `submit_at`, with a `done_callback` as in `submit_done`."""
        return self._submit_at(when, interval, (fn, done_callback, args, kwargs))

    def schedule(self, interval: float, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> TimerObj:
        """Like `submit_first`, every `interval` seconds from now on, without drift."""
        return self._schedule(interval, (fn, self._default, args, kwargs))

    def schedule_done(
        self, interval: float, fn: Callable[..., Any], done_callback: Any, /, *args: Any, **kwargs: Any
    ) -> TimerObj:
        """Like `schedule`, with a `done_callback` as in `submit_done`."""
        return self._schedule(interval, (fn, done_callback, args, kwargs))

    @property
    def delayed(self) -> tuple[Timer[None], ...]:
        """The waiting timers of `submit_later`."""
        return tuple(timer for timer in self._delayed.copy() if not timer.running())

    @property
    def scheduled(self) -> tuple[Timer[None] | Schedule, ...]:
        """The current timers (`timer_id`) of `schedule` and `submit_at`."""
        return tuple(self._scheduled.copy())

    def _submit_later(self, delay: float, job: Job) -> Timer[None]:
        timer: Timer[None] = self._give(self._workers.submit_later, delay, self._do_now, job)
        self._delayed.add(timer)
        timer.add_done_callback(self._delayed.discard)
        return timer

    def _submit_at(self, when: float | time.struct_time, interval: float, job: Job) -> TimerObj:
        if isinstance(when, time.struct_time):
            when = time.mktime(when)
        if when < time.time() - _LATE_SECONDS:
            raise ValueError(f"when is {when}, expected seconds since the epoch, not so long ago")
        timer = TimerObj()
        self._arm(timer, when, 0, interval, job)
        return timer

    def _arm(self, timer: TimerObj, first: float, steps: float, interval: float, job: Job) -> None:
        """Set the timer for the time `steps` intervals after the first one."""
        when = first + steps * interval
        armed: Timer[None] = self._give(self._workers.submit_at, when, self._tick, timer, first, steps, interval, job)
        timer.old_timer_id, timer.timer_id = timer.timer_id, armed
        self._scheduled[armed] = timer
        armed.add_done_callback(lambda _: self._scheduled.pop(armed, None))
        # A thread that called `cancel` meanwhile did not see the new timer, so it is cancelled here.
        if timer.cancelled:
            self._cancel_timer(timer)

    def _tick(self, timer: TimerObj, first: float, steps: float, interval: float, job: Job) -> None:
        if timer.cancelled:
            return
        self._do_now(job)
        if interval > 0 and not timer.cancelled:
            # The next time is computed from the first time, not from now, so that a late call does not delay the next
            # call.
            passed = (time.time() - first) // interval
            self._arm(timer, first, max(steps, passed) + 1, interval, job)

    def _schedule(self, interval: float, job: Job) -> TimerObj:
        timer = TimerObj()
        begun: Schedule = self._give(self._workers.schedule, interval, self._do_now, job)
        timer.timer_id = begun
        self._scheduled[begun] = timer
        return timer

    def _cancel_timer(self, timer: Any) -> None:
        """Cancel a timer of `submit_later`, a `TimerObj`, or the timer in its `timer_id`."""
        found = timer if isinstance(timer, TimerObj) else self._scheduled.get(timer)
        if found is not None:
            found.cancelled = True
            timer = found.timer_id
            self._scheduled.pop(timer, None)
        timer.cancel()

    def _cancel_timers(self) -> None:
        for timer in [*self._delayed.copy(), *self._scheduled.copy()]:
            self._cancel_timer(timer)

    def _stop(self, soon: bool) -> None:
        super()._stop(soon)
        self._cancel_timers()

    def _reset_after_fork(self) -> None:
        super()._reset_after_fork()
        self._delayed.clear()
        self._scheduled.clear()
