"""The targets of a run of the pool's comparison, as data: each line is one promise, judged within the run."""

from __future__ import annotations

from pools import timers
from pools.compress import SLICES, WAITED
from pools.exclusion import NONE
from pools.idle import LOCK
from pools.part import STOCK
from targets import Target, beside, count

TARGETS = [
    beside("submit and result against ThreadPoolExecutor", STOCK, "Pool.submit", "jobs", "us", at_least=15),
    beside(
        "submit and result against fastthreadpool", "fastthreadpool.submit", "Pool.submit", "jobs", "us", at_least=1.5
    ),
    beside("push against fastthreadpool", "fastthreadpool.submit", "Pool.push", "jobs", "us", at_least=5),
    beside("map against the for loop", "Pool.map", "for loop", "jobs", "us", at_most=1.3),
    beside("map against ThreadPool.map_async", "Pool.map", "ThreadPool.map_async", "jobs", "us", at_most=1),
    beside("map against fastthreadpool.map", "Pool.map", "fastthreadpool.map", "jobs", "us", at_most=1),
    Target(
        "native as_completed over submit and result",
        ("as_completed, native", "jobs", "over_submit_us"),
        at_most=0.5,
        unit="us",
    ),
    beside(
        "stdlib's as_completed, on Pool against its own",
        "as_completed, stdlib's on Pool",
        "as_completed, stdlib",
        "jobs",
        "us",
        at_most=1,
    ),
    beside(
        "gather of run against run_in_executor",
        "run_in_executor, gather",
        "Pool.run, gather",
        "jobs",
        "us",
        at_least=10,
    ),
    beside("semaphore against threading's", "threading.Semaphore", "Semaphore", "semaphores", "us", at_least=30),
    beside(
        "semaphore against fastthreadpool's", "fastthreadpool.Semaphore", "Semaphore", "semaphores", "us", at_least=1.2
    ),
    beside("until a job starts, p50, against a wake by Lock", "Pool.submit", LOCK, "idle", "start_p50_us", at_most=1.2),
    beside("compress, submit and wait against threads over slices", WAITED, SLICES, "compress", "us", at_most=1.03),
    beside("compress, map against threads over slices", "Pool.map", SLICES, "compress", "us", at_most=1.03),
    beside(
        "jobs of 5 us without the GIL, 2 workers against 1",
        "Pool.submit, 1 worker",
        "Pool.submit, 2 workers",
        "scaling",
        "us",
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
