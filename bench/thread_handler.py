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

    python bench/thread_handler.py [--records N] [--rounds R] [--threads 1,4] [--json FILE]

`bench/thread_handler_server.py` does so in a server.

Exit code 1 when ThreadHandler is dearer than a peer that runs in the background (median of the
ratios of the rounds above 1.0), in caller or end-to-end wall time, or when a line is missing.
"""

from __future__ import annotations

import argparse
import json
import logging
import logging.handlers
import os
import platform
import queue
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

ROWS = ("ThreadHandler", "backgroundlog", "QueueListener", "FileHandler")
PEERS = ("backgroundlog", "QueueListener")
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


def measure(row: str, records: int, threads: int) -> dict[str, float | int]:
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
        "lines": lines,
        "expected": count,
    }


def _measure_apart(row: str, records: int, threads: int) -> dict[str, float | int]:
    command = [sys.executable, __file__, "--row", row, "--records", str(records)]
    command += ["--threads", str(threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=600, check=True)
    return json.loads(done.stdout)


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


def measure_loaded(rounds: int, seconds: float) -> dict[str, list[float]]:
    """Return for each row the shares that it leaves of the turns without logging."""
    logger = logging.getLogger("bench.loaded")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    shares: dict[str, list[float]] = {row: [] for row in LOADED_ROWS}
    _turns(seconds, None)
    for _ in range(rounds):
        for row in random.sample(LOADED_ROWS, len(LOADED_ROWS)):
            before = _turns(seconds, None)
            handler, end = _loaded_handler(row)
            logger.addHandler(handler)
            found = _turns(seconds, logger)
            logger.removeHandler(handler)
            end()
            shares[row].append(2 * found / (before + _turns(seconds, None)))
    return shares


def _report_loaded(shares: dict[str, list[float]]) -> None:
    alone = statistics.median(shares["calls alone"])
    print("\na loaded program, two records a turn: turns a second of those without logging; median of the rounds")
    print(f"{'':22} {'of none':>8} {'min..max':>12} {'of calls alone':>15}")
    for row, values in shares.items():
        middle = statistics.median(values)
        spread = f"{min(values):.2f}..{max(values):.2f}"
        print(f"{row:22} {middle:>8.2f} {spread:>12} {middle / alone:>15.2f}")


def _ratios(runs: list[dict], peers: list[dict], key: str) -> list[float]:
    return [run[key] / peer[key] for run, peer in zip(runs, peers)]


def _report(threads: int, table: dict[str, list[dict]]) -> bool:
    """Print one table; returns whether the stated ratios hold."""
    print(f"\n{threads} thread(s), {len(table[ROWS[0]])} rounds; ratios: ThreadHandler / row, median of rounds")
    print(
        f"{'':14} {'caller ns':>10} {'min..max':>15} {'end to end':>10} {'min..max':>15}"
        f" {'CPU ns':>8} {'lines':>15} {'caller':>7} {'e2e':>6} {'CPU':>6}"
    )
    holds = True
    own = table["ThreadHandler"]
    for row, runs in table.items():
        cells = []
        for key in ("caller_ns", "end_to_end_ns"):
            values = [run[key] for run in runs]
            spread = f"{min(values):.0f}..{max(values):.0f}"
            cells.append(f"{statistics.median(values):>10.0f} {spread:>15}")
        cpu = statistics.median(run["cpu_ns"] for run in runs)
        lines = min(run["lines"] for run in runs)
        expected = runs[0]["expected"]
        complete = all(run["lines"] == run["expected"] for run in runs)
        ratio = {key: statistics.median(_ratios(own, runs, key)) for key in ("caller_ns", "end_to_end_ns", "cpu_ns")}
        print(
            f"{row:14} {cells[0]} {cells[1]} {cpu:>8.0f} {f'{lines}/{expected}':>15}"
            f" {ratio['caller_ns']:>7.2f} {ratio['end_to_end_ns']:>6.2f} {ratio['cpu_ns']:>6.2f}"
        )
        holds = holds and complete
        if row in PEERS and max(ratio["caller_ns"], ratio["end_to_end_ns"]) > 1.0:
            print(f"  missed: ThreadHandler is dearer than {row}")
            holds = False
    return holds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=20_000, help="records per measurement")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds")
    parser.add_argument("--threads", default="1,4", help="numbers of calling threads")
    parser.add_argument("--json", type=Path, help="write the raw data to this file")
    parser.add_argument("--row", choices=ROWS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(measure(options.row, options.records, int(options.threads))))
        return 0

    raw: dict[str, dict[str, list[dict]]] = {}
    holds = True
    for threads in (int(word) for word in options.threads.split(",")):
        table: dict[str, list[dict]] = {row: [] for row in ROWS}
        for _ in range(options.rounds):
            for row in random.sample(ROWS, len(ROWS)):
                table[row].append(_measure_apart(row, options.records, threads))
        raw[str(threads)] = table
        holds = _report(threads, table) and holds
    loaded = measure_loaded(options.rounds, 0.3)
    _report_loaded(loaded)
    if options.json:
        machine = {
            "python": sys.version,
            "platform": platform.platform(),
            "cpus": os.cpu_count(),
            "load": os.getloadavg(),
            "records": options.records,
        }
        options.json.write_text(json.dumps({"machine": machine, "runs": raw, "loaded": loaded}, indent=1))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
