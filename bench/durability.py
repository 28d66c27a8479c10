"""The cost of durability, in ratios inside one run: end to end, with several threads, for the caller, and in recovery.

`python bench/durability.py [--folder PATH] [--rounds N]`, with logspool importable. Every measurement is a program of
its own; the rounds of all of them take turns, and each counts the lines of its file. The folder decides about the
disk: syncs cost nothing on tmpfs.

Exit code 1 when a stated ratio is missed or a line is not there.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import apart
import recovery
from parts import Column, Part
from results import Results
from runner import Bench, numbered
from targets import beside

#: Name -> durability, threads, records of each thread, what is timed. "raw" shows the limit of the disk: the same
#: number of lines in one write and one fdatasync, without any logging.
CASES = {
    "raw, 50 lines": ("raw", 50, 10_000, "whole"),
    "raw, 1 line": ("raw", 1, 500, "whole"),
    "process": ("process", 1, 100_000, "whole"),
    "checkpoint 50": ("checkpoint", 1, 20_000, "whole"),
    "interval": ("interval", 1, 100_000, "whole"),
    "sync, 1 thread": ("sync", 1, 1_000, "whole"),
    "sync, 16 threads": ("sync", 16, 1_000, "whole"),
    "call, memory": ("memory", 1, 200, "calls"),
    "call, process": ("process", 1, 200, "calls"),
}

#: Calls are timed in bursts that a lane takes without waiting, and with nothing queued before each.
BURSTS = 200

RECOVERY, COPY = "recovery", "cp and a sync"

RATES = Part(
    "rate",
    "Until everything is in the file, and as durable as promised",
    columns=(Column("rate", "records a second", 0), Column("of_process", "of `process`", 3)),
    compared_with={
        "checkpoint 50": "raw, 50 lines",
        "sync, 16 threads": "sync, 1 thread",
        "sync, 1 thread": "raw, 1 line",
    }.get,
    question="`checkpoint` waits for a sync every 50 records: the disk bounds it, on most disks to a small part of the "
    "rate of `process`. `raw` is the limit of the disk.",
)
CALLS = Part("calls", "One call", (Column("ns", "ns a call", 0),), compared_with=lambda _: "call, memory")
TIMES = Part("times", "Recovery", (Column("s", "s", 3),), compared_with=lambda _: COPY)

#: The targets: each has its yardstick.
TARGETS = (
    beside("checkpoint 50 beside raw, 50 lines", "checkpoint 50", "raw, 50 lines", "rate", "rate", at_least=0.5),
    beside("sync, 16 threads beside 1 thread", "sync, 16 threads", "sync, 1 thread", "rate", "rate", at_least=5),
    beside("call, process beside memory", "call, process", "call, memory", "calls", "ns", at_most=1.3),
    beside("recovery beside cp and a sync", RECOVERY, COPY, "times", "s", at_most=2),
)

RECOVERED_RECORDS = 1_000_000


def raw(lines: int, records: int, path: str) -> float:
    """Append `lines` lines at a time and sync them. Returns records a second."""
    text = b"2026-01-01 00:00:00,000 INFO bench request 10000 of somebody took 1.5 ms\n" * lines
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    begin = time.perf_counter()
    for _ in range(records // lines):
        os.write(file, text)
        os.fdatasync(file)
    return records / (time.perf_counter() - begin)


def measure(case: str, folder: str) -> float:
    """Run one case in this process. Returns records a second, or nanoseconds of a call."""
    durability, threads, records, timed = CASES[case]
    path = f"{folder}/bench.log"
    if durability == "raw":
        return raw(threads, records, path)
    import logging
    import threading

    import logspool

    logging.basicConfig(filename=path, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logspool.install(durability=durability, durability_timeout=60.0)
    log = logging.getLogger("bench")
    log.info("the first one")
    logspool.flush()
    if timed == "calls":
        bursts = []
        for _ in range(BURSTS):
            begin = time.perf_counter_ns()
            for number in range(records):
                log.info("request %d of %s took %.1f ms", number, "somebody", 1.5)
            bursts.append((time.perf_counter_ns() - begin) / records)
            logspool.flush()
        logspool.uninstall()
        # The least disturbed bursts: the collector shares two cores with all other programs.
        return statistics.median(sorted(bursts)[: BURSTS // 4])

    def work() -> None:
        for number in range(records):
            log.info("request %d of %s took %.1f ms", number, "somebody", 1.5)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    begin = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    logspool.flush()
    seconds = time.perf_counter() - begin
    stats = logspool.stats()
    late = sum(level.not_durable + sum(level.refused.values()) for level in stats.levels.values())
    with open(path, "rb") as file:
        lines = sum(1 for _ in file)
    if late or lines != threads * records + 1:
        raise SystemExit(f"{lines} lines of {threads * records + 1}, {late} calls refused or not durable")
    logspool.uninstall()
    return threads * records / seconds


class Durability(Bench):
    """The comparison of the durability modes."""

    title = "What durability costs"
    folder = "durability"
    parts = (RATES, CALLS, TIMES)
    targets = TARGETS

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the folder, which decides about the disk."""
        parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where the files are written")

    def measure(self, options: argparse.Namespace, results: Results) -> None:
        """Run the cases in turns."""
        for number in numbered(options.rounds):
            found = {}
            for name in CASES:
                with tempfile.TemporaryDirectory(dir=options.folder, prefix="durability-") as folder:
                    found[name] = apart.ask("durability", name, folder, seconds=600)
            for name, (_, _, _, timed) in CASES.items():
                if timed == "calls":
                    results.add(name, CALLS.name, number, {"ns": found[name]})
                else:
                    rate = found[name]
                    results.add(name, RATES.name, number, {"rate": rate, "of_process": rate / found["process"]})
            recovered, copied, _ = recovery.measure_in(options.folder, RECOVERED_RECORDS)
            results.add(RECOVERY, TIMES.name, number, {"s": recovered})
            results.add(COPY, TIMES.name, number, {"s": copied})

    def own(self, row: str) -> bool:
        """Say whether a row is logspool's."""
        return row != COPY and not row.startswith("raw")


if __name__ == "__main__":
    Durability().main()
