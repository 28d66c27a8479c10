"""A thread pool, its futures, and a semaphore.

    from logspool.pool import Pool

    with Pool(max_workers=4) as pool:
        future = pool.submit(pow, 2, 10)
        print(future.result())

`Pool` is a `concurrent.futures.Executor` and can be used in place of one.
"""

from logspool.base import _interpreter
from logspool.pool._stats import Histogram, PoolStats

# Importing `typing` takes 5 ms. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING or not _interpreter.without_core:
    from logspool._native import Results, Schedule, Semaphore
    from logspool.pool import _timers
    from logspool.pool._completed import as_completed
    from logspool.pool._pool import BrokenPool, Pool

    if TYPE_CHECKING:
        from concurrent.futures import Future

        from logspool._native import Timer
    else:
        from logspool._native import pool_futures

        Future, Timer = pool_futures(_timers.start)
        del pool_futures
    del _timers
else:
    from logspool.pool._plain import BrokenPool, Future, Pool, Results, Schedule, Semaphore, Timer, as_completed

del _interpreter

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
