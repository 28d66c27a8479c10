"""Does an event loop stay quick while another thread logs 10,000 exceptions a second?

    stock       logging.FileHandler, synchronous: the yardstick
    logspool    the same, after logspool.install()
    idle        the same thread raises the exceptions, and logs nothing

A thread raises and logs ten exceptions of seven frames each millisecond. The event loop of the main thread wakes each
millisecond and notes how late it is. Each measurement is a process of its own; the rounds are interleaved.

    python bench/exceptions_beside_loop.py [--seconds S] [--rounds R] [--out FOLDER]

The exit code is 1 where logspool's p99 (the lowest of all rounds) is a millisecond or more, where it reached less than
nine tenths of the stated rate, or where a line is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import tempfile
import threading
import time
from pathlib import Path

import apart
from parts import Column, Part
from runner import Bench
from targets import Target, count

ROWS = ("stock", "logspool", "idle")
RATE, EACH = 10_000, 10
PERIOD = EACH / RATE

PART = Part(
    "loop",
    f"How late an event loop wakes beside a thread that logs {RATE:,} exceptions a second",
    columns=(
        Column("p99_us", "p99 us", 0),
        Column("p50_us", "p50 us", 0),
        Column("max_us", "max us", 0),
        Column("rate", "exceptions/s", 0),
    ),
)

#: The best round counts: on a virtual machine another program takes the processor for a while in most.
TARGETS = (
    Target("logspool's p99", ("logspool", PART.name, "p99_us"), at_most=1000, unit="us", take=min),
    Target(
        "exceptions a second with logspool", ("logspool", PART.name, "rate"), at_least=0.9 * RATE, unit="", take=max
    ),
)
COUNTS = tuple(count(f"lines missing, {row}", row, PART.name, "missing") for row in ROWS)


def fail(frames: int) -> None:
    """Raise in the innermost of `frames` frames."""
    if frames > 1:
        return fail(frames - 1)
    raise LookupError("no such user")


class Storm(threading.Thread):
    """Logs exceptions at the stated rate, or as fast as it can."""

    def __init__(self, logger: logging.Logger, logs: bool) -> None:
        super().__init__()
        self._logger, self._logs = logger, logs
        self.ending = False
        self.count = 0

    def run(self) -> None:
        """Raise ten at a time until `ending` is set."""
        due = time.perf_counter()
        while not self.ending:
            for _ in range(EACH):
                try:
                    fail(6)
                except LookupError:
                    if self._logs:
                        self._logger.exception("request %d failed", self.count)
                self.count += 1
            due = max(due + PERIOD, time.perf_counter() - PERIOD)
            time.sleep(max(0.0, due - time.perf_counter()))


async def delays(seconds: float) -> list[float]:
    """Sleep a millisecond again and again; return how much longer each sleep took."""
    found = []
    end = time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        await asyncio.sleep(PERIOD)
        found.append(time.perf_counter() - begin - PERIOD)
    return found


def measure(row: str, seconds: float) -> dict[str, float]:
    """Run one row in this process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.log"
        handler = logging.FileHandler(path, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s:%(lineno)d %(message)s"))
        logger = logging.getLogger("bench")
        logger.propagate = False
        logger.addHandler(handler)
        if row == "logspool":
            import logspool

            logspool.install()
        storm = Storm(logger, row != "idle")
        storm.start()
        asyncio.run(delays(0.2))
        before = storm.count
        found = sorted(asyncio.run(delays(seconds)))
        rate = (storm.count - before) / seconds
        storm.ending = True
        storm.join()
        if row == "logspool":
            logspool.flush()
        lines = path.read_bytes().count(b"LookupError: no such user\n")
    return {
        "p50_us": found[len(found) // 2] * 1e6,
        "p99_us": found[len(found) * 99 // 100] * 1e6,
        "max_us": found[-1] * 1e6,
        "rate": rate,
        "missing": storm.count - lines if row != "idle" else 0,
    }


class Exceptions(Bench):
    """The comparison of event loops beside a storm of exceptions."""

    title = "An event loop beside exceptions"
    folder = "exceptions"
    parts = (PART,)
    targets, counts = TARGETS, COUNTS

    sizes = (("seconds", 2.0, "seconds per measurement"),)
    choices = (("rows", ROWS),)

    def measure_row(self, row: str, number: int, options: argparse.Namespace) -> dict[str, float]:
        return apart.ask("exceptions_beside_loop", row, options.seconds, seconds=60 + 10 * options.seconds)


if __name__ == "__main__":
    Exceptions().main()
