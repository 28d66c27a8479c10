"""What durability costs, in ratios inside one run: end to end, with several threads, and for the caller.

`python bench/durability.py [--folder PATH] [--rounds N]`, with logspool importable. Every measurement is a program of
its own; the rounds of all of them take turns, and each counts the lines of its file. The folder decides about the
disk: syncs cost nothing on tmpfs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Name -> durability, threads, records of each thread, what is timed. "raw" is what the disk allows: so many lines in
#: one write and one fdatasync, without any logging.
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

#: What is to be reached.
TARGETS = (
    ("checkpoint 50", "process", 0.5),
    ("checkpoint 50", "raw, 50 lines", None),
    ("raw, 50 lines", "process", None),
    ("sync, 16 threads", "sync, 1 thread", 5.0),
    ("sync, 1 thread", "raw, 1 line", None),
    ("call, process", "call, memory", None),
)


def raw(lines: int, records: int, path: str) -> float:
    """Append `lines` lines at a time and sync them. Returns records a second."""
    text = b"2026-01-01 00:00:00,000 INFO bench request 10000 of somebody took 1.5 ms\n" * lines
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    begin = time.perf_counter()
    for _ in range(records // lines):
        os.write(file, text)
        os.fdatasync(file)
    return records / (time.perf_counter() - begin)


def measure(durability: str, threads: int, records: int, timed: str, path: str) -> float:
    """Run one case in this process. Returns records a second, or nanoseconds of a call."""
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
        # The least disturbed ones: the collector shares two cores with whatever else runs.
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


def main() -> None:
    """Run the cases in turns and print medians, spread and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where the files are written")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="where every round's result goes")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        durability, threads, records, timed = CASES[options.case]
        print(measure(durability, threads, records, timed, str(options.folder / "bench.log")))
        return
    found: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(options.rounds):
        for name, results in found.items():
            with tempfile.TemporaryDirectory(dir=options.folder, prefix="durability-") as folder:
                command = [sys.executable, __file__, "--case", name, "--folder", folder]
                ran = subprocess.run(command, capture_output=True, text=True, timeout=600, env=dict(os.environ))
            if ran.returncode:
                raise SystemExit(f"{name}: {ran.stderr}")
            results.append(float(ran.stdout))
    for name, results in found.items():
        unit = "ns a call" if CASES[name][3] == "calls" else "records a second"
        middle = statistics.median(results)
        print(f"{name:<18} {middle:12,.0f} {unit} ({min(results):,.0f} to {max(results):,.0f})")
    for name, beside, target in TARGETS:
        ratio = statistics.median(found[name]) / statistics.median(found[beside])
        wanted = "" if target is None else f", {'reached' if ratio >= target else 'not reached'}: {target:g}x"
        print(f"{name} / {beside}: {ratio:.2f}x{wanted}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
