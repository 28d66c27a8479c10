"""What a pool counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Histogram:
    """Durations of jobs, counted by their length."""

    #: How many were counted.
    count: int
    #: Their sum in seconds.
    sum: float
    #: Upper bounds in seconds, each with the number of durations at or below it.
    buckets: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class PoolStats:
    """What a pool holds and has done, at one moment."""

    #: Jobs that wait for a worker.
    depth: int
    #: Seconds that the oldest of them has waited.
    oldest_age: float
    #: Jobs that are not due yet, schedules included.
    delayed: int
    #: Worker threads.
    workers: int
    #: Workers that do a job or look for one.
    busy: int
    #: Jobs taken so far; each run of a schedule counts.
    submitted: int
    #: Jobs without a future that raised.
    failed: int
    #: Jobs that gave way to newer ones (`overflow="drop_oldest"`).
    dropped: int
    #: Jobs that ran longer than their `timeout`.
    timed_out: int
    #: Times a sleeping worker was woken.
    wakes: int
    #: How long jobs waited for a worker.
    wait_seconds: Histogram
    #: How long they ran.
    run_seconds: Histogram


def stats_of(counts: dict[str, Any]) -> PoolStats:
    """Return the native counts under their names."""
    for name in ("wait_seconds", "run_seconds"):
        count, total, buckets = counts[name]
        counts[name] = Histogram(count, total, tuple(buckets))
    return PoolStats(**counts)
