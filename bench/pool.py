"""What a job costs in a pool of two workers: logspool's against the standard library's and fastthreadpool.

All contenders run in one process, in turns, each round in another order; a ratio is taken inside a round, and the
median over the rounds counts. Every sum is checked. `work` is a Python function that returns its argument.

    python bench/pool.py [--jobs N] [--rounds R] [--json FILE]

Exit code 1 when a stated ratio is missed or a sum is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import json
import multiprocessing.pool
import platform
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logspool import pool as native

try:
    import fastthreadpool
except ImportError as error:
    fastthreadpool = None
    print(f"without fastthreadpool: {error}", file=sys.stderr)

WORKERS = 2
PAIRS = 200_000


def work(number: int) -> int:
    """Be the least a job in Python can do."""
    return number


@dataclass
class Row:
    """One contender: does `jobs` jobs and returns the sum of their results."""

    name: str
    run: Callable[[int], int]
    #: Share of the jobs; slow ones do fewer.
    share: float = 1.0


def rows() -> list[Row]:
    """Make all contenders; their pools stay for the whole run."""
    own, stock = native.Pool(WORKERS), concurrent.futures.ThreadPoolExecutor(WORKERS)
    simple = multiprocessing.pool.ThreadPool(WORKERS)
    done: list[int] = []

    def loop(jobs: int) -> int:
        results = []
        for number in range(jobs):
            results.append(work(number))
        return sum(results)

    def submit(pool: Any) -> Callable[[int], int]:
        def run(jobs: int) -> int:
            return sum([future.result() for future in [pool.submit(work, number) for number in range(jobs)]])

        return run

    def completed(pool: Any, as_completed: Callable[..., Any]) -> Callable[[int], int]:
        def run(jobs: int) -> int:
            return sum([future.result() for future in as_completed([pool.submit(work, n) for n in range(jobs)])])

        return run

    def push(jobs: int) -> int:
        done.clear()
        for number in range(jobs):
            own.push(done.append, number)
        own.wait_idle()
        return sum(done)

    def gather(call: Callable[[int], Any]) -> Callable[[int], int]:
        async def main(jobs: int) -> int:
            return sum(await asyncio.gather(*[call(number) for number in range(jobs)]))

        return lambda jobs: asyncio.run(main(jobs))

    def in_executor(number: int) -> Any:
        return asyncio.get_running_loop().run_in_executor(stock, work, number)

    found = [
        Row("for loop", loop),
        Row("Pool.submit", submit(own)),
        Row("Pool.push", push),
        Row("Pool.map", lambda jobs: sum(own.map(work, range(jobs)))),
        Row("as_completed, native", completed(own, native.as_completed)),
        Row("as_completed, stdlib's on Pool", completed(own, concurrent.futures.as_completed), 0.1),
        Row("Pool.run, gather", gather(lambda number: own.run(work, number)), 0.2),
        Row("ThreadPoolExecutor.submit", submit(stock), 0.2),
        Row("ThreadPoolExecutor.map", lambda jobs: sum(stock.map(work, range(jobs))), 0.2),
        Row("as_completed, stdlib", completed(stock, concurrent.futures.as_completed), 0.1),
        Row("run_in_executor, gather", gather(in_executor), 0.2),
        Row("ThreadPool.map_async", lambda jobs: sum(simple.map_async(work, range(jobs)).get())),
    ]
    if fastthreadpool is not None:
        found += peer_rows()
    return found


def peer_rows() -> list[Row]:
    """Make the rows of fastthreadpool: its submit returns nothing, results come in a list."""
    peer = fastthreadpool.Pool(WORKERS)

    def results(jobs: int) -> int:
        # Its own `wait_idle` returns before all results are there.
        while len(peer.done) < jobs:
            time.sleep(0)
        total = sum(peer.done)
        peer.done.clear()
        return total

    def submit(jobs: int) -> int:
        for number in range(jobs):
            peer.submit(work, number)
        return results(jobs)

    def map_(jobs: int) -> int:
        peer.map(work, range(jobs), unpack_args=False)
        return results(jobs)

    return [Row("fastthreadpool.submit", submit), Row("fastthreadpool.map", map_)]


def semaphores() -> dict[str, float]:
    """Return microseconds of a pair of acquire and release, the loop subtracted."""
    kinds = {"threading.Semaphore": threading.Semaphore(1), "Semaphore": native.Semaphore(1)}
    if fastthreadpool is not None:
        kinds["fastthreadpool.Semaphore"] = fastthreadpool.Semaphore(1)
    found = {}
    for name, semaphore in kinds.items():
        acquire, release = semaphore.acquire, semaphore.release
        began = time.perf_counter()
        for _ in range(PAIRS):
            pass
        empty = time.perf_counter()
        for _ in range(PAIRS):
            acquire()
            release()
        found[name] = (time.perf_counter() - empty - (empty - began)) / PAIRS * 1e6
    return found


#: (what, numerator, denominator, "<=" or ">=", limit): ratios of medians of rounds.
TARGETS = [
    ("submit and result against ThreadPoolExecutor", "ThreadPoolExecutor.submit", "Pool.submit", ">=", 15.0),
    ("submit and result against fastthreadpool.submit", "fastthreadpool.submit", "Pool.submit", ">=", 1.5),
    ("push against fastthreadpool.submit", "fastthreadpool.submit", "Pool.push", ">=", 5.0),
    ("map against the for loop", "Pool.map", "for loop", "<=", 1.3),
    ("map against ThreadPool.map_async", "Pool.map", "ThreadPool.map_async", "<=", 1.0),
    ("map against fastthreadpool.map", "Pool.map", "fastthreadpool.map", "<=", 1.0),
    (
        "stdlib's as_completed, on Pool against its own",
        "as_completed, stdlib's on Pool",
        "as_completed, stdlib",
        "<=",
        1.0,
    ),
    ("gather of run against run_in_executor", "run_in_executor, gather", "Pool.run, gather", ">=", 10.0),
    ("semaphore against threading's", "threading.Semaphore", "Semaphore", ">=", 30.0),
    ("semaphore against fastthreadpool's", "fastthreadpool.Semaphore", "Semaphore", ">=", 1.2),
]
#: Microseconds that a job costs more with `as_completed` than with `result`.
COMPLETION_LIMIT = 0.5


def measure(jobs: int, rounds: int) -> list[dict[str, float]]:
    """Return microseconds per job of each row, by round."""
    contenders, found = rows(), []
    for number in range(rounds + 1):
        times = {}
        for row in random.sample(contenders, len(contenders)):
            count = int(jobs * row.share)
            began = time.perf_counter()
            total = row.run(count)
            times[row.name] = (time.perf_counter() - began) / count * 1e6
            if total != count * (count - 1) // 2:
                raise SystemExit(f"{row.name}: sum {total}, expected {count * (count - 1) // 2}")
        times.update(semaphores())
        # The first round starts threads.
        if number:
            found.append(times)
            print(f"\rround {number} of {rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def report(found: list[dict[str, float]]) -> bool:
    """Print table and targets; return whether all that were measured are met."""
    reference = "ThreadPoolExecutor.submit"
    print(f"Python {platform.python_version()}, {WORKERS} workers, {len(found)} rounds; microseconds per job\n")
    print(f"{'':32} {'median':>8} {'best':>8} {'against ' + reference:>34}")
    for name in sorted(found[0], key=lambda each: statistics.median(times[each] for times in found)):
        values = [times[name] for times in found]
        ratio = statistics.median(times[reference] / times[name] for times in found)
        print(f"{name:32} {statistics.median(values):8.3f} {min(values):8.3f} {ratio:33.1f}x")
    print("\nTargets")
    met = True
    for what, above, below, sign, limit in TARGETS:
        if above not in found[0] or below not in found[0]:
            print(f"  not measured  {what}")
            continue
        ratio = statistics.median(times[above] / times[below] for times in found)
        good = ratio >= limit if sign == ">=" else ratio <= limit
        met &= good
        print(f"  {'met' if good else 'MISSED':12}  {what}: {ratio:.3g} ({sign} {limit:g} x)")
    more = statistics.median(times["as_completed, native"] - times["Pool.submit"] for times in found)
    good = more <= COMPLETION_LIMIT
    print(f"  {'met' if good else 'MISSED':12}  native as_completed over submit: {more:.3g} (<= {COMPLETION_LIMIT} us)")
    return met and good


def main() -> None:
    """Measure, report, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", type=Path, help="keep the figures of all rounds here")
    options = parser.parse_args()
    found = measure(options.jobs, options.rounds)
    if options.json:
        options.json.write_text(json.dumps({"python": platform.python_version(), "rounds": found}, indent=1))
    raise SystemExit(0 if report(found) else 1)


if __name__ == "__main__":
    main()
