"""Counters of a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Histogram:
    """Histogram of the durations of jobs."""

    #: Number of recorded durations.
    count: int
    #: Sum of the recorded durations in seconds.
    sum: float
    #: Pairs of an upper bound in seconds and the number of durations less than or equal to this bound.
    buckets: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class PoolStats:
    """Counters of a pool at one moment."""

    #: Number of jobs that wait for a worker.
    depth: int
    #: Seconds that the oldest waiting job has waited.
    oldest_age: float
    #: Number of jobs that are not due yet, including jobs of schedules.
    delayed: int
    #: Number of worker threads.
    workers: int
    #: Number of workers that run a job or look for one.
    busy: int
    #: Number of jobs accepted since the pool was made. Each run of a schedule counts as one job.
    submitted: int
    #: Number of jobs without a future that raised an exception.
    failed: int
    #: Number of jobs cancelled to make room for newer ones (`overflow="drop_oldest"`).
    dropped: int
    #: Number of jobs that ran longer than their `timeout`.
    timed_out: int
    #: How often a sleeping worker was woken.
    wakes: int
    #: Histogram of the seconds that jobs waited for a worker.
    wait_seconds: Histogram
    #: Histogram of the seconds that jobs ran.
    run_seconds: Histogram


def stats_of(counts: dict[str, Any]) -> PoolStats:
    """Return the counts of native code as a `PoolStats`."""
    for name in ("wait_seconds", "run_seconds"):
        count, total, buckets = counts[name]
        counts[name] = Histogram(count, total, tuple(buckets))
    return PoolStats(**counts)
