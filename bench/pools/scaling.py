"""The gain of a second worker without the GIL, for short jobs in pure Python."""

from __future__ import annotations

import concurrent.futures
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from logspool import pool as native
from parts import Column, Part, Round, turns
from pools.part import Row, Sizes, seconds
from pools.peer import FREE_THREADED

SECONDS = 5e-6


def count_up(steps: int) -> int:
    """Do work that needs nothing but a core; return 1."""
    number = 0
    for _ in range(steps):
        number += 1
    return number // steps


def _steps() -> int:
    """Return how many steps a job of five microseconds has here."""
    steps, best = 10_000, 1.0
    for _ in range(20):
        began = time.perf_counter()
        count_up(steps)
        best = min(best, time.perf_counter() - began)
    return max(1, round(steps * SECONDS / best))


def _submit(pool: Any, steps: int) -> Callable[[int], int]:
    return lambda jobs: sum([each.result() for each in [pool.submit(count_up, steps) for _ in range(jobs)]])


def _map(pool: Any, steps: int) -> Callable[[int], int]:
    return lambda jobs: sum(pool.map(count_up, [steps] * jobs))


def _rounds(sizes: Sizes) -> Iterator[Round]:
    steps = _steps()
    executor = concurrent.futures.ThreadPoolExecutor
    with native.Pool(1) as own, native.Pool(2) as own_2, executor(1) as stock, executor(2) as stock_2:
        pairs = {
            "Pool.submit": (_submit(own, steps), _submit(own_2, steps)),
            "Pool.map": (_map(own, steps), _map(own_2, steps)),
            "ThreadPoolExecutor.submit": (_submit(stock, steps), _submit(stock_2, steps)),
        }
        rows = [Row(f"{name}, 1 worker", both[0]) for name, both in pairs.items()]
        rows += [Row(f"{name}, 2 workers", both[1]) for name, both in pairs.items()]
        while True:
            took = {row.name: seconds(row, sizes.cpu_jobs, sizes.cpu_jobs) for row in turns(rows)}
            yield {name: {"us": value / sizes.cpu_jobs * 1e6} for name, value in took.items()}


def _missing() -> str | None:
    if not FREE_THREADED:
        return "with the GIL one thread at a time runs Python code"
    if len(os.sched_getaffinity(0)) < 2:
        return "one core"
    return None


PART = Part(
    "scaling",
    "Jobs of 5 us in pure Python, without the GIL (us per job)",
    (Column("us", "us per job"),),
    reference="Pool.submit, 1 worker",
    question="The thread that gives the jobs needs a part of a core as well.",
    missing=_missing,
    measure=_rounds,
)
