"""Pools under fastthreadpool's names for tests: one whose worker waits, and what its jobs do."""

import threading

from logspool.pool import compat


def count_to(number):
    """Yield the numbers below one."""
    yield from range(number)


def fail(*args, **kwargs):
    """Raise."""
    raise ValueError("why")


def held(**options):
    """Return a pool whose only worker waits, and the event for which it waits."""
    pool, go, begun = compat.Pool(1, **options), threading.Event(), threading.Event()
    pool.submit_done(lambda: (begun.set(), go.wait(60)), False)
    assert begun.wait(60)
    return pool, go
