"""Counters of a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Histogram:
    """Histogram of the durations of jobs."""

    #: Number of durations.
    count: int
    #: Their sum in seconds.
    sum: float
    #: Upper bounds in seconds, each with the number of durations at or below it.
    buckets: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class PoolStats:
    """Counters of a pool at one moment."""

    #: Jobs that wait for a worker.
    depth: int
    #: Seconds that the oldest waiting job has waited.
    oldest_age: float
    #: Jobs that are not due yet, schedules included.
    delayed: int
    #: Worker threads.
    workers: int
    #: Workers that run a job or look for one.
    busy: int
    #: Jobs accepted since the pool was made; each run of a schedule counts.
    submitted: int
    #: Jobs without a future that raised.
    failed: int
    #: Jobs cancelled to make room for newer ones (`overflow="drop_oldest"`).
    dropped: int
    #: Jobs that ran longer than their `timeout`.
    timed_out: int
    #: Times a sleeping worker was woken.
    wakes: int
    #: Waiting time of jobs, in seconds.
    wait_seconds: Histogram
    #: Running time of jobs, in seconds.
    run_seconds: Histogram


def stats_of(counts: dict[str, Any]) -> PoolStats:
    """Return the native counts under their names."""
    for name in ("wait_seconds", "run_seconds"):
        count, total, buckets = counts[name]
        counts[name] = Histogram(count, total, tuple(buckets))
    return PoolStats(**counts)
