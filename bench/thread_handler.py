"""Is `ThreadHandler` cheaper than its peers when every record has to arrive?

Four ways to get the same lines into a file, same formatter, same three builtin arguments, no drops:

    ThreadHandler       logspool.ThreadHandler(FileHandler), INFO blocking, queue of 1,000
    backgroundlog       backgroundlog's ThreadHandler(FileHandler), INFO blocking, queue of 1,000
    QueueListener       stdlib QueueHandler(Queue()) + QueueListener(FileHandler), unbounded
    FileHandler         stdlib, synchronous: the yardstick

Each measurement is a process of its own; rounds are interleaved, rows in random order. Caller: wall
time of the loop per record (with T threads: of all threads together per record of all). End to end:
until the last line is in the file. CPU: user and system of the whole process for both.

A second table shows what a slow handler takes from a loaded program: turns of a loop that computes, leaves the
interpreter's lock for a moment, as a server does in each system call, and logs two records. The handler is Python code
that sleeps for a millisecond a record, or does nothing:

    calls alone         NullHandler: the cost of the calls themselves
    ThreadHandler       logspool.ThreadHandler around the handler
    QueueListener       QueueHandler and QueueListener around it

All alternate with slices that log nothing, in one process; a ratio is to the mean of the slices before and after.

    python bench/thread_handler.py [--records N] [--rounds R] [--threads 1,4] [--out FOLDER]

`bench/thread_handler_server.py` does so in a server.

Exit code 1 when ThreadHandler is dearer than a peer that runs in the background (median of the
ratios of the rounds above 1.0), in caller or end-to-end wall time, or when a line is missing.
"""

from __future__ import annotations

import argparse
import logging
import logging.handlers
import os
import queue
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import apart
from parts import Column, Part, turns
from results import Results
from runner import Bench, numbered
from targets import beside, count

ROWS = ("ThreadHandler", "backgroundlog", "QueueListener", "FileHandler")
PEERS = ("backgroundlog", "QueueListener")
#: Numbers of calling threads.
THREADS = ("1", "4")
LINE = "%(asctime)s %(levelname)s %(name)s:%(lineno)d %(message)s"


def _file_handler(path: Path) -> logging.Handler:
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter(LINE))
    return handler


def _build(row: str, path: Path) -> tuple[logging.Handler, Callable[[], None]]:
    """Return the handler of a row and a function that waits until all its lines are in the file."""
    target = _file_handler(path)
    if row == "FileHandler":
        return target, target.close
    if row == "ThreadHandler":
        from logspool.thread._handler import ThreadHandler

        handler = ThreadHandler(target, blocking_levels={"INFO"}, shutdown_timeout=None)
        return handler, handler.close
    if row == "backgroundlog":
        from backgroundlog.handlers.thread_handler import ThreadHandler as Backgroundlog

        handler = Backgroundlog(target, blocking_levels={logging.INFO}, shutdown_timeout=None)
        # It has no public drain; it registers this function with atexit.
        return handler, handler._ThreadHandler__close
    records: queue.Queue = queue.Queue(-1)
    listener = logging.handlers.QueueListener(records, target)
    listener.start()

    def finish() -> None:
        listener.stop()
        target.close()

    return logging.handlers.QueueHandler(records), finish


def _log(logger: logging.Logger, count: int, start: threading.Barrier) -> None:
    start.wait()
    for number in range(count):
        logger.info("request %s took %d us, score %.3f", "abcdef", number, 2.5)


def measure(row: str, records: int, threads: int) -> dict[str, float]:
    """Run one row in this process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.log"
        handler, finish = _build(row, path)
        logger = logging.getLogger("bench")
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(handler)
        logger.info("warm up %s", row)

        each = records // threads
        start = threading.Barrier(threads + 1)
        callers = [threading.Thread(target=_log, args=(logger, each, start)) for _ in range(threads)]
        for caller in callers:
            caller.start()
        cpu = time.process_time()
        start.wait()
        begun = time.perf_counter()
        for caller in callers:
            caller.join()
        called = time.perf_counter()
        finish()
        ended = time.perf_counter()
        cpu = time.process_time() - cpu
        with open(path, encoding="utf-8") as file:
            lines = sum(1 for _ in file) - 1
    count = each * threads
    return {
        "caller_ns": (called - begun) / count * 1e9,
        "end_to_end_ns": (ended - begun) / count * 1e9,
        "cpu_ns": cpu / count * 1e9,
        "missing": abs(count - lines),
    }


class _Handler(logging.Handler):
    """A handler of Python code that takes `seconds` for each record."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.setFormatter(logging.Formatter(LINE))

    def emit(self, record: logging.LogRecord) -> None:
        self.format(record)
        if self.seconds:
            time.sleep(self.seconds)


LOADED_ROWS = ("calls alone", "ThreadHandler", "ThreadHandler, 1 ms", "QueueListener", "QueueListener, 1 ms")


def _loaded_handler(row: str) -> tuple[logging.Handler, Callable[[], object]]:
    """Return the handler of a row and a function that ends it without its queued records."""
    if row == "calls alone":
        return logging.NullHandler(), lambda: None
    inner = _Handler(0.001 if row.endswith("1 ms") else 0)
    if row.startswith("ThreadHandler"):
        from logspool.thread._handler import ThreadHandler

        handler = ThreadHandler(inner, shutdown_timeout=10)
        return handler, handler.close
    records: queue.Queue = queue.Queue(-1)
    listener = logging.handlers.QueueListener(records, inner)
    listener.start()

    def end() -> None:
        records.queue.clear()
        listener.stop()

    return logging.handlers.QueueHandler(records), end


def _turns(seconds: float, logger: logging.Logger | None) -> float:
    """Return the turns a second of the loaded loop, with two records in each turn or without."""
    data = os.urandom(2048)
    begun = time.perf_counter()
    turns = 0
    while (now := time.perf_counter()) - begun < seconds:
        for _ in range(4):
            sum(range(1500))
            zlib.crc32(zlib.compress(data, 1))  # leaves the lock
        if logger is not None:
            logger.info("request %s took %d us, score %.3f", "abcdef", turns, 2.5)
            logger.info("request %s has class %d, score %.3f", "abcdef", turns, 2.5)
        turns += 1
    return turns / (now - begun)


def measure_loaded(seconds: float) -> dict[str, float]:
    """Return for each row the share that it leaves of the turns without logging."""
    logger = logging.getLogger("bench.loaded")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    shares = {}
    _turns(seconds, None)
    for row in turns(LOADED_ROWS):
        before = _turns(seconds, None)
        handler, end = _loaded_handler(row)
        logger.addHandler(handler)
        found = _turns(seconds, logger)
        logger.removeHandler(handler)
        end()
        shares[row] = 2 * found / (before + _turns(seconds, None))
    return shares


PARTS = {
    threads: Part(
        f"{threads} threads",
        f"Calling threads: {threads} (ns per record)",
        (
            Column("caller_ns", "caller", 0),
            Column("end_to_end_ns", "end to end", 0),
            Column("cpu_ns", "CPU", 0),
            Column("missing", "lines missing", 0),
        ),
        reference="ThreadHandler",
    )
    for threads in THREADS
}
LOADED = Part(
    "loaded",
    "A loaded program, two records a turn: turns a second of those without logging",
    (Column("share", "of none"),),
    compared_with=lambda _: "calls alone",
)


class ThreadHandlers(Bench):
    """The comparison of handlers on threads."""

    title = "ThreadHandler and its peers"
    folder = "thread-handler"
    sizes = (("records", 20_000, "records per measurement"),)
    choices = (("threads", THREADS),)
    parts = (*PARTS.values(), LOADED)
    rounds = 7
    targets = tuple(
        beside(
            f"ThreadHandler beside {peer}, {words}, {part.name}", "ThreadHandler", peer, part.name, figure, at_most=1
        )
        for part in PARTS.values()
        for peer in PEERS
        for figure, words in (("caller_ns", "caller"), ("end_to_end_ns", "end to end"))
    )
    counts = tuple(
        count(f"lines missing, {row}, {part.name}", row, part.name, "missing")
        for part in PARTS.values()
        for row in ROWS
    )

    def measure(self, options: argparse.Namespace, results: Results) -> None:
        """Measure the rows in random order, then the loaded program."""
        for number in numbered(options.rounds):
            for threads in options.threads:
                for row in turns(ROWS):
                    ask = partial(apart.ask, "thread_handler", row, options.records, int(threads), seconds=600)
                    results.take(row, PARTS[threads].name, number, ask)
            for row, share in measure_loaded(0.3).items():
                results.add(row, LOADED.name, number, {"share": share})

    def own(self, row: str) -> bool:
        return row.startswith("ThreadHandler")

    def must_work(self, cell: str) -> bool:
        return True


if __name__ == "__main__":
    ThreadHandlers().main()
