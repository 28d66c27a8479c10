"""A thread pool, its futures, and a semaphore.

    from logspool.pool import Pool

    with Pool(max_workers=4) as pool:
        future = pool.submit(pow, 2, 10)
        print(future.result())

`Pool` is a `concurrent.futures.Executor` and can be used in place of one.
"""

# Before the others: its error names the missing native module if none fits this Python.
from logspool import _native
from logspool._native import Results, Schedule, Semaphore
from logspool.pool import _timers
from logspool.pool._completed import as_completed
from logspool.pool._pool import BrokenPool, Pool
from logspool.pool._stats import Histogram, PoolStats

# Importing `typing` takes 5 ms. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from concurrent.futures import Future

    from logspool._native import Timer
else:
    from logspool._native import pool_futures

    Future, Timer = pool_futures(_timers.start)
    del pool_futures

del _native, _timers

__all__ = [
    "BrokenPool",
    "Future",
    "Histogram",
    "Pool",
    "PoolStats",
    "Results",
    "Schedule",
    "Semaphore",
    "Timer",
    "as_completed",
]
