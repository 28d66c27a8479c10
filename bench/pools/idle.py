"""How long until a job starts in a pool with nothing to do, its workers asleep?

The bar is the cost of waking a thread that waits for a `threading.Lock`, which the caller releases.
"""

from __future__ import annotations

import concurrent.futures
import functools
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from logspool import pool as native
from parts import Column, Part, Round, percentile
from pools.part import STOCK, WORKERS, Sizes, same
from pools.peer import fastthreadpool

#: Seconds between two jobs; long enough for a worker to find nothing and sleep.
GAP = 300e-6
#: Jobs of one contender before the next one's turn.
TURN = 50
LOCK = "threading.Lock, released"
#: Seconds after which a job that has not started counts as lost.
PATIENCE = 10.0


class LockThread:
    """A thread that waits for a lock and then does the one job it knows."""

    def __init__(self, job: Callable[[], None]) -> None:
        self._lock, self._job, self._ended = threading.Lock(), job, False
        self._lock.acquire()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        #: Has the job done once.
        self.wake = self._lock.release

    def _run(self) -> None:
        acquire, job = self._lock.acquire, self._job
        while True:
            acquire()
            if self._ended:
                return
            job()

    def close(self) -> None:
        """End the thread."""
        self._ended = True
        self.wake()
        self._thread.join()


class Samples:
    """The moments of one contender's jobs in a round, in nanoseconds."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.called: list[int] = []
        self.started: list[int] = []

    def start(self) -> None:
        """Be the job: note the moment."""
        self.started.append(time.perf_counter_ns())

    def take(self, name: str, call: Callable[[], Any], count: int) -> None:
        """Give `count` jobs, each to an idle pool."""
        clock, sleep = time.perf_counter_ns, time.sleep
        for _ in range(count):
            sleep(GAP)
            before = clock()
            call()
            after = clock()
            self.began.append(before)
            self.called.append(after)
            while len(self.started) < len(self.began):
                sleep(GAP)
                if clock() - before > PATIENCE * 1e9:
                    same(f"{name}, started", len(self.started), len(self.began))

    def figures(self) -> dict[str, float]:
        """Return the points of both distributions in microseconds, and begin again."""
        starts = [(start - begin) / 1e3 for start, begin in zip(self.started, self.began)]
        calls = [(end - begin) / 1e3 for end, begin in zip(self.called, self.began)]
        for moments in (self.began, self.called, self.started):
            moments.clear()
        return {
            "start_p50_us": percentile(starts, 0.5),
            "start_p99_us": percentile(starts, 0.99),
            "call_p50_us": percentile(calls, 0.5),
            "call_p99_us": percentile(calls, 0.99),
        }


def _rounds(sizes: Sizes) -> Iterator[Round]:
    with native.Pool(WORKERS) as own, concurrent.futures.ThreadPoolExecutor(WORKERS) as stock:
        submits: dict[str, Any] = {"Pool.submit": own.submit, "Pool.push": own.push, STOCK: stock.submit}
        if fastthreadpool is not None:
            # Without a place for the result, as with `push`.
            peer = fastthreadpool.Pool(WORKERS)
            submits["fastthreadpool.submit"] = lambda job: peer.submit_done(job, False)
        samples = {name: Samples() for name in [LOCK, *submits]}
        thread = LockThread(samples[LOCK].start)
        calls: dict[str, Callable[[], Any]] = {LOCK: thread.wake}
        for name, submit in submits.items():
            calls[name] = functools.partial(submit, samples[name].start)
        try:
            while True:
                for _ in range(-(-sizes.single // TURN)):
                    for name in random.sample(list(calls), len(calls)):
                        samples[name].take(name, calls[name], TURN)
                yield {name: samples[name].figures() for name in calls}
        finally:
            thread.close()


PART = Part(
    "idle",
    "One job for an idle pool, 300 us after the last one (us)",
    (
        Column("start_p50_us", "until it starts: p50"),
        Column("start_p99_us", "p99"),
        Column("call_p50_us", "the call: p50"),
        Column("call_p99_us", "p99"),
    ),
    reference=LOCK,
    measure=_rounds,
)
