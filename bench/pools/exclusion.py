"""Does a semaphore of one permit ever let two threads in?

Four threads add one to a number, and give way between reading and writing it. If a second thread is inside, it reads
the same number, and one addition is lost. The row without a semaphore shows that this is seen.
Each contender has a process of its own.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from logspool import pool as native
from parts import Column, Part, Round
from pools import alone
from pools.part import Sizes
from pools.peer import fastthreadpool

THREADS = 4
NONE = "no semaphore"
#: Seconds; CPython's own five milliseconds leave most rounds undisturbed.
SWITCH_INTERVAL = 1e-5
#: On a busy machine the others may not be running at any of the short moments: now and then one is long.
LONG_EVERY = 100
LONG_SECONDS = 1e-4


def _semaphore(name: str) -> Any:
    if name == NONE:
        return None
    if name == "fastthreadpool.Semaphore":
        return fastthreadpool.Semaphore(1)
    return native.Semaphore(1) if name == "Semaphore" else threading.Semaphore(1)


def measure(name: str, count: int) -> dict[str, Any]:
    """Add one `count` times and say how many additions are gone."""
    semaphore = _semaphore(name)
    acquire = semaphore.acquire if semaphore else contextlib.nullcontext
    release = semaphore.release if semaphore else contextlib.nullcontext
    sleep, number = time.sleep, [0]
    barrier = threading.Barrier(THREADS + 1)

    def add(times: int) -> None:
        barrier.wait()
        for round_number in range(times):
            acquire()
            seen = number[0]
            sleep(0 if round_number % LONG_EVERY else LONG_SECONDS)
            number[0] = seen + 1
            release()

    sys.setswitchinterval(SWITCH_INTERVAL)
    threads = [threading.Thread(target=add, args=(count // THREADS,), daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    barrier.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    done = count // THREADS * THREADS
    return {"us": took / done * 1e6, "count": done, "violations": done - number[0]}


def _rounds(sizes: Sizes) -> Iterator[Round]:
    rows = {"Semaphore": sizes.guarded, "threading.Semaphore": sizes.few_guarded, NONE: sizes.few_guarded}
    if fastthreadpool is not None:
        rows["fastthreadpool.Semaphore"] = sizes.few_guarded
    return alone.rounds("exclusion", {name: (name, count) for name, count in rows.items()})


PART = Part(
    "exclusion",
    f"A semaphore of one permit and {THREADS} threads that give way inside",
    (Column("violations", "two inside", 0), Column("count", "rounds", 0), Column("us", "us per round", 1)),
    most_rounds=1,
    measure=_rounds,
)
