"""The targets of a run of the pool's comparison, as data: each line is one promise, judged within the run."""

from __future__ import annotations

from pools import timers
from pools.compress import SLICES, WAITED
from pools.exclusion import NONE
from pools.idle import LOCK
from pools.part import STOCK
from targets import Target, count


def _ratio(
    what: str,
    part: str,
    above: str,
    below: str,
    *,
    figure: str = "us",
    at_most: float | None = None,
    at_least: float | None = None,
) -> Target:
    return Target(what, (above, part, figure), over=(below, part, figure), at_most=at_most, at_least=at_least)


TARGETS = [
    _ratio("submit and result against ThreadPoolExecutor", "jobs", STOCK, "Pool.submit", at_least=15),
    _ratio("submit and result against fastthreadpool", "jobs", "fastthreadpool.submit", "Pool.submit", at_least=1.5),
    _ratio("push against fastthreadpool", "jobs", "fastthreadpool.submit", "Pool.push", at_least=5),
    _ratio("map against the for loop", "jobs", "Pool.map", "for loop", at_most=1.3),
    _ratio("map against ThreadPool.map_async", "jobs", "Pool.map", "ThreadPool.map_async", at_most=1),
    _ratio("map against fastthreadpool.map", "jobs", "Pool.map", "fastthreadpool.map", at_most=1),
    Target(
        "native as_completed over submit and result",
        ("as_completed, native", "jobs", "over_submit_us"),
        at_most=0.5,
        unit="us",
    ),
    _ratio(
        "stdlib's as_completed, on Pool against its own",
        "jobs",
        "as_completed, stdlib's on Pool",
        "as_completed, stdlib",
        at_most=1,
    ),
    _ratio("gather of run against run_in_executor", "jobs", "run_in_executor, gather", "Pool.run, gather", at_least=10),
    _ratio("semaphore against threading's", "semaphores", "threading.Semaphore", "Semaphore", at_least=30),
    _ratio("semaphore against fastthreadpool's", "semaphores", "fastthreadpool.Semaphore", "Semaphore", at_least=1.2),
    _ratio(
        "until a job starts, p50, against a wake by Lock",
        "idle",
        "Pool.submit",
        LOCK,
        figure="start_p50_us",
        at_most=1.2,
    ),
    _ratio("compress, submit and wait against threads over slices", "compress", WAITED, SLICES, at_most=1.03),
    _ratio("compress, map against threads over slices", "compress", "Pool.map", SLICES, at_most=1.03),
    _ratio(
        "jobs of 5 us without the GIL, 2 workers against 1",
        "scaling",
        "Pool.submit, 1 worker",
        "Pool.submit, 2 workers",
        at_least=1.6,
    ),
    Target("adding a timer", ("Pool.submit_later", "timers", "add_us"), at_most=1, unit="us"),
    Target(
        "memory of pending timers, handles included", ("Pool.submit_later", "timers", "memory_mb"), at_most=3, unit="MB"
    ),
    Target("lateness of timers, p99", ("Pool.submit_later", "timers", "late_p99_ms"), at_most=0.5, unit="ms"),
    Target("memory of a job that waits, submit", ("Pool.submit", "memory", "bytes"), at_most=256, unit="bytes"),
    Target("memory of a job that waits, push", ("Pool.push", "memory", "bytes"), at_most=256, unit="bytes"),
]

COUNTS = [
    count("threads that pending timers add", "Pool.submit_later", "timers", "threads_more", 1),
    count("timers lost or fired twice", "Pool.submit_later", "timers", "wrong"),
    count("timers fired early", "Pool.submit_later", "timers", "early"),
    count("many timers, not pending, not cancelled or fired", timers.CANCELLED, "timers", "wrong"),
    count("rounds with two inside a Semaphore", "Semaphore", "exclusion", "violations"),
    # Without a semaphore the same check has to find violations, or it proves nothing.
    Target("the same without a semaphore", (NONE, "exclusion", "violations"), at_least=1, unit="", take=max),
]
