"""The interface of fastthreadpool on top of `logspool.pool`: change the import, keep the program.

    from logspool.pool import compat as fastthreadpool

    pool = fastthreadpool.Pool()
    pool.map(abs, range(-5, 5))
    pool.shutdown()
    print(sum(pool.done))

New programs use `logspool.pool.Pool`, whose jobs cost less and have futures.
"""

from logspool.base import _interpreter

if _interpreter.without_core:
    raise ImportError(str(_interpreter.refusal("logspool.pool.compat")))

from logspool._native import Semaphore
from logspool.pool.compat._jobs import PoolStopped
from logspool.pool.compat._outcomes import PoolCallback
from logspool.pool.compat._pool import Pool, Shutdown
from logspool.pool.compat._timed import TimerObj

__all__ = ["Pool", "PoolCallback", "PoolStopped", "Semaphore", "Shutdown", "TimerObj"]
