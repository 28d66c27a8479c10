"""The memory of a job that waits for a worker.

Each contender has a process of its own, whose one worker is held while the jobs are given. Futures count: a program
that gives jobs keeps them; the list that holds them is there before.
"""

from __future__ import annotations

import concurrent.futures
import gc
import threading
from collections.abc import Iterator
from typing import Any

from logspool import pool as native
from parts import Column, Part, Round
from pools import alone
from pools.jobs import work
from pools.part import STOCK, Sizes, same
from pools.peer import fastthreadpool, taken

#: The argument of each job: a small number, of which there is one object for all.
NUMBER = 7


def _open(name: str, total: list[int]) -> tuple[Any, Any]:
    """Return a pool of one worker and the way to give it a job."""
    if name == "Pool.push":
        own = native.Pool(1, done_callback=lambda value: total.append(value) if value == NUMBER else None)
        return own, own.push
    if name == "Pool.submit":
        pool: Any = native.Pool(1)
    else:
        pool = concurrent.futures.ThreadPoolExecutor(1) if name == STOCK else fastthreadpool.Pool(1)
    return pool, pool.submit


def measure(name: str, count: int) -> dict[str, Any]:
    """Hold the worker, give it jobs, read the memory, let go and add up."""
    total: list[int] = []
    pool, give = _open(name, total)
    held, go_on = threading.Event(), threading.Event()

    def hold() -> int:
        held.set()
        go_on.wait()
        return 0

    give(hold)
    held.wait()
    futures: list[Any] = [None] * count
    gc.collect()
    before = alone.resident_bytes()
    for place in range(count):
        futures[place] = give(work, NUMBER)
    grown = alone.resident_bytes() - before
    go_on.set()
    if name == "Pool.push":
        pool.wait_idle()
        found = sum(total)
    elif name == "fastthreadpool.submit":
        found = taken(pool, count + 1)
    else:
        found = sum([future.result() for future in futures])
    same(f"{name}, sum of what waited", found, count * NUMBER)
    return {"bytes": grown / count, "count": count}


def _rounds(sizes: Sizes) -> Iterator[Round]:
    rows = {"Pool.submit": sizes.pending, "Pool.push": sizes.pending, STOCK: sizes.few_pending}
    if fastthreadpool is not None:
        rows["fastthreadpool.submit"] = sizes.pending
    return alone.rounds("memory", {name: (name, count) for name, count in rows.items()})


PART = Part(
    "memory",
    "Memory of a job that waits (bytes)",
    (Column("bytes", "bytes per job", 0), Column("count", "jobs that wait", 0)),
    reference=STOCK,
    most_rounds=3,
    question="Its future is counted with Pool.submit and ThreadPoolExecutor; Pool.push and fastthreadpool have none.",
    measure=_rounds,
)
