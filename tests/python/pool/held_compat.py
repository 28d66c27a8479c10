"""For tests of fastthreadpool's names: a pool whose worker waits, and jobs for it."""

import threading

from logspool.pool import compat


def count_to(number):
    """Yield the numbers below `number`."""
    yield from range(number)


def fail(*args, **kwargs):
    """Raise a ValueError."""
    raise ValueError("why")


def held(**options):
    """Return a pool whose only worker waits, and the event for which it waits."""
    pool, go, begun = compat.Pool(1, **options), threading.Event(), threading.Event()
    pool.submit_done(lambda: (begun.set(), go.wait(60)), False)
    assert begun.wait(60)
    return pool, go
