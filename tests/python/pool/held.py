"""A pool whose only worker is busy until it is let go: what waits behind it can be looked at."""

import threading
import time

from logspool.pool import Pool


class Held:
    """A pool of one worker with the options given; `done` is for its jobs to note what they did."""

    def __init__(self, **options):
        self.go, begun, self.done = threading.Event(), threading.Event(), []
        self.pool = Pool(1, **options)
        self.pool.push(lambda: (begun.set(), self.go.wait(60)))
        assert begun.wait(60)

    def end(self):
        """Let the worker go, wait for all jobs and return what they noted."""
        self.go.set()
        self.pool.shutdown()
        return self.done


def until(condition):
    """Wait until something is so; a minute at most."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
