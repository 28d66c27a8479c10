"""Shared code of the tests of ThreadHandler: handlers that a test can hold, waits, child programs."""

import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import logspool

#: Seconds after which a wait for a condition fails: ten times the longest wait on a busy machine.
DEADLINE = 30.0


class ListHandler(logging.Handler):
    """Keeps its records in order."""

    def __init__(self):
        super().__init__()
        self.records = []
        self.flushes = 0
        self.closed = 0

    def emit(self, record):
        self.records.append(record)

    def flush(self):
        self.flushes += 1

    def close(self):
        self.closed += 1
        super().close()

    @property
    def messages(self):
        return [record.getMessage() for record in self.records]


class HeldHandler(ListHandler):
    """Waits inside `emit` until `go` is set."""

    def __init__(self):
        super().__init__()
        self.entered = threading.Event()
        self.go = threading.Event()

    def emit(self, record):
        self.entered.set()
        assert self.go.wait(DEADLINE)
        super().emit(record)


def new_logger(name, handler):
    """Return a new logger, outside the tree of loggers, with `handler` as its only handler."""
    logger = logging.Logger(name, logging.DEBUG)
    logger.addHandler(handler)
    return logger


def hold(logger, held):
    """Log one record and wait until `held` handles it."""
    logger.info("in hand")
    assert held.entered.wait(DEADLINE)


def wait_until(condition):
    """Wait until `condition()` is true."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.001)


def assert_balanced(stats):
    """Check the two equations of the accounting."""
    assert stats.offered == stats.accepted + stats.refused_total
    assert stats.accepted == stats.written + stats.queued + stats.dropped_total
    assert stats.queued >= 0


def child_environment():
    """Return an environment in which a child imports the same logspool and this module."""
    environment = dict(os.environ)
    # The path with which the package was imported; it may contain links.
    package_parent = str(Path(logspool.__file__).parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(
        [package_parent, str(Path(__file__).parent), environment.get("PYTHONPATH", "")]
    )
    return environment


def run_python(source, *arguments, check=True):
    """Run a program in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", source, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE,
        env=child_environment(),
    )
    assert not check or done.returncode == 0, done.stderr
    return done
