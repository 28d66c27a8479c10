"""Threads for the work that a program pushes aside: a pool, its futures, a semaphore.

    from logspool.pool import Pool

    with Pool(max_workers=4) as pool:
        future = pool.submit(pow, 2, 10)
        print(future.result())

`Pool` is a `concurrent.futures.Executor`; what takes one takes it.
"""

from logspool._native import Semaphore
from logspool.pool._completed import as_completed
from logspool.pool._pool import BrokenPool, Pool, PoolStats

# `typing` itself costs 5 ms to import; checkers know this name by its spelling.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from concurrent.futures import Future
else:
    from logspool._native import pool_future

    Future = pool_future()
    del pool_future

__all__ = ["BrokenPool", "Future", "Pool", "PoolStats", "Semaphore", "as_completed"]
