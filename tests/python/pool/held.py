"""A pool whose only worker is blocked until the test releases it, so that a test can check queued jobs."""

import threading
import time

from logspool.pool import Pool


class Held:
    """A pool of one worker with the given options; its jobs append their results to `done`."""

    def __init__(self, **options):
        self.go, begun, self.done = threading.Event(), threading.Event(), []
        self.pool = Pool(1, **options)
        self.pool.push(lambda: (begun.set(), self.go.wait(60)))
        assert begun.wait(60)

    def end(self):
        """Release the worker, wait for all jobs and return `done`."""
        self.go.set()
        self.pool.shutdown()
        return self.done


def until(condition):
    """Wait until a condition is true, for a minute at most."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
