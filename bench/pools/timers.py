"""What do ten thousand jobs cost that wait for their time, and how late do they start? And a million of them?

Each contender has a process of its own. Memory counts all that the timers add, their handles too, which the program
keeps; the list that holds them and the arrays for the moments are there before.
"""

from __future__ import annotations

import concurrent.futures
import gc
import heapq
import random
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from typing import Any

from logspool import pool as native
from parts import Column, Part, Round, percentile
from pools import alone
from pools.part import WORKERS, Sizes, same
from pools.peer import fastthreadpool

CANCELLED = "Pool.submit_later, all cancelled"
#: Seconds that a job may be late before it counts as lost.
PATIENCE = 20.0


class HeapThread:
    """The plain way in Python: a heap, a condition, and one thread that also does the jobs."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[..., None], int]] = []
        self._condition, self._numbers = threading.Condition(), iter(range(10**9))
        threading.Thread(target=self._run, daemon=True).start()

    def add(self, delay: float, job: Callable[..., None], number: int) -> object:
        """Have `job` called with `number` after `delay` seconds."""
        entry = (time.monotonic() + delay, next(self._numbers), job, number)
        with self._condition:
            heapq.heappush(self._heap, entry)
            if self._heap[0] is entry:
                self._condition.notify()
        return entry

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._heap or self._heap[0][0] > time.monotonic():
                    self._condition.wait(self._heap[0][0] - time.monotonic() if self._heap else None)
                _, _, job, number = heapq.heappop(self._heap)
            job(number)


def _thread_timer(delay: float, job: Callable[..., None], number: int) -> object:
    timer = threading.Timer(delay, job, (number,))
    timer.start()
    return timer


def _busy(pool: Any) -> None:
    """Have all workers of a pool started."""
    barrier = threading.Barrier(WORKERS + 1)
    for _ in range(WORKERS):
        pool.submit(barrier.wait)
    barrier.wait()


def _open(name: str) -> Callable[[], Callable[..., object]]:
    """Prepare a contender, with the workers that it has anyway; return a function that opens it for timers."""
    if name == "heap and Condition":
        return lambda: HeapThread().add
    if name == "threading.Timer":
        return lambda: _thread_timer
    pool = native.Pool(WORKERS) if name == "Pool.submit_later" else fastthreadpool.Pool(WORKERS)
    _busy(pool)
    return lambda: pool.submit_later


def _measure_some(name: str, count: int, soonest: float, latest: float) -> dict[str, Any]:
    """Add timers, look at the process, wait until all have fired, each once."""
    dice = random.Random(count)
    delays = array("d", [dice.uniform(soonest, latest) for _ in range(count)])
    numbers, handles = list(range(count)), [None] * count
    due, fired_at, fired = array("d", bytes(8 * count)), array("d", bytes(8 * count)), bytearray(count)
    clock = time.monotonic

    def fire(number: int) -> None:
        fired_at[number] = clock()
        fired[number] += 1

    opened = _open(name)
    began = clock()
    for number in numbers:
        due[number] = clock() + delays[number]
        handles[number] = None
    loop = clock() - began
    gc.collect()
    threads, memory = alone.threads(), alone.resident_bytes()
    add: Any = opened()
    began = clock()
    for number in numbers:
        due[number] = clock() + delays[number]
        handles[number] = add(delays[number], fire, number)
    added = clock() - began
    grown, more = alone.resident_bytes() - memory, alone.threads() - threads
    pending = count - sum(fired)
    # While timers are due the main thread does not look: each look keeps the interpreter from them for a moment.
    time.sleep(max(0.0, max(due) - clock()))
    deadline = clock() + PATIENCE
    while sum(fired) < count and clock() < deadline:
        time.sleep(0.05)
    # A timer that fires twice does so by then.
    time.sleep(0.2)
    late = [(at - when) * 1e3 for at, when, times in zip(fired_at, due, fired) if times]
    return {
        "count": count,
        "add_us": (added - loop) / count * 1e6,
        "threads_more": more,
        "memory_mb": grown / 1e6,
        "pending": pending,
        "late_p50_ms": percentile(late, 0.5),
        "late_p99_ms": percentile(late, 0.99),
        "late_max_ms": max(late),
        "early": sum(each < 0 for each in late),
        "wrong": sum(times != 1 for times in fired),
    }


def _measure_many(count: int) -> dict[str, Any]:
    """Add timers that are never due, and cancel them all; count at each step."""
    calls: list[int] = []
    dice = random.Random(count)
    delays = array("d", [dice.uniform(3_600, 7_200) for _ in range(count)])
    handles: list[Any] = [None] * count
    with native.Pool(WORKERS) as pool:
        _busy(pool)
        gc.collect()
        threads, memory = alone.threads(), alone.resident_bytes()
        began = time.monotonic()
        for number in range(count):
            handles[number] = pool.submit_later(delays[number], calls.append, 0)
        added = time.monotonic() - began
        grown, more = alone.resident_bytes() - memory, alone.threads() - threads
        pending = pool.stats().delayed
        began = time.monotonic()
        cancelled = sum([handle.cancel() for handle in handles])
        took = time.monotonic() - began
        left = pool.stats().delayed
        ended = len(concurrent.futures.wait(handles[:1000], timeout=0).done)
    for what, found, expected in (
        ("delayed", pending, count),
        ("cancelled", cancelled, count),
        ("delayed after that", left, 0),
        ("called", len(calls), 0),
        ("futures that know it", ended, min(count, 1000)),
    ):
        same(f"{CANCELLED}, {what}", found, expected)
    return {
        "count": count,
        "add_us": added / count * 1e6,
        "cancel_us": took / count * 1e6,
        "threads_more": more,
        "memory_mb": grown / 1e6,
        "pending": pending,
        "wrong": count - cancelled + left + len(calls),
    }


def measure(name: str, *arguments: Any) -> dict[str, Any]:
    """Be the process of one row."""
    return _measure_many(*arguments) if name == CANCELLED else _measure_some(name, *arguments)


def _rounds(sizes: Sizes) -> Iterator[Round]:
    rows: dict[str, tuple[object, ...]] = {
        "Pool.submit_later": (sizes.timers, *sizes.delays),
        "heap and Condition": (sizes.timers, *sizes.delays),
        "threading.Timer": (sizes.few_timers, *sizes.delays),
        "fastthreadpool.submit_later": (sizes.few_timers, *sizes.delays),
        CANCELLED: (sizes.many_timers,),
    }
    if fastthreadpool is None:
        del rows["fastthreadpool.submit_later"]
    return alone.rounds("timers", {name: (name, *arguments) for name, arguments in rows.items()})


PART = Part(
    "timers",
    "Jobs that wait for their time",
    (
        Column("add_us", "us to add one"),
        Column("count", "timers", 0),
        # Fewer where some were due before the last was added: then threads and memory are of fewer timers.
        Column("pending", "pending at once", 0),
        Column("threads_more", "threads more", 0),
        Column("memory_mb", "memory MB", 1),
        Column("late_p50_ms", "late, ms: p50", 3),
        Column("late_p99_ms", "p99", 3),
        Column("late_max_ms", "max", 1),
        Column("cancel_us", "us to cancel one"),
        Column("wrong", "lost or twice", 0),
    ),
    reference="heap and Condition",
    most_rounds=5,
    question="The heap's thread does the jobs itself; the others hand them to workers, or have a thread for each.",
    measure=_rounds,
)
