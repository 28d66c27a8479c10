"""The cost of durability, in ratios inside one run: end to end, with several threads, for the caller, and in recovery.

`python bench/durability.py [--folder PATH] [--rounds N]`, with logspool importable. Every measurement is a program of
its own; the rounds of all of them take turns, and each counts the lines of its file. The folder decides about the
disk: syncs cost nothing on tmpfs.

Exit code 1 when a stated ratio is missed or a line is not there.
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

import machine
import recovery

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

#: The targets: a least ratio, or for times a greatest. Each has its yardstick; rows without a bound are shown because
#: they explain the others. `checkpoint` waits for a sync every 50 records: the disk bounds it, on most disks to a small
#: part of the rate of `process`.
TARGETS = (
    ("checkpoint 50", "raw, 50 lines", 0.5),
    ("checkpoint 50", "process", None),
    ("raw, 50 lines", "process", None),
    ("sync, 16 threads", "sync, 1 thread", 5.0),
    ("sync, 1 thread", "raw, 1 line", None),
    ("call, process", "call, memory", 1.3),
    (RECOVERY, COPY, 2.0),
)

#: Figures of which less is better.
TIMES = {name for name, case in CASES.items() if case[3] == "calls"} | {RECOVERY, COPY}

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


def show(found: dict[str, list[float]]) -> tuple[list[str], bool]:
    """Return the lines of the summary, and whether every bound holds."""
    lines = []
    for name, results in found.items():
        unit = "s" if name in (RECOVERY, COPY) else "ns a call" if name in TIMES else "records a second"
        digits = ".3f" if unit == "s" else ",.0f"
        middle, least, most = (format(pick(results), digits) for pick in (statistics.median, min, max))
        lines.append(f"{name:<18} {middle:>12} {unit} ({least} to {most})")
    holds = True
    for name, beside, bound in TARGETS:
        ratio = statistics.median(one / other for one, other in zip(found[name], found[beside], strict=True))
        verdict = ""
        if bound is not None:
            met = ratio <= bound if name in TIMES else ratio >= bound
            holds = holds and met
            verdict = f", {'met' if met else 'missed'}: {'<=' if name in TIMES else '>='} {bound:g}x"
        lines.append(f"{name} / {beside}: {ratio:.2f}x{verdict}")
    return lines, holds


def main() -> int:
    """Run the cases in turns and print medians, spread and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where the files are written")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="folder of the results; default: bench/runs/DATE-MACHINE/durability")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        durability, threads, records, timed = CASES[options.case]
        print(measure(durability, threads, records, timed, str(options.folder / "bench.log")))
        return 0
    if options.rounds < 1:
        parser.error("--rounds has to be 1 or more")
    found: dict[str, list[float]] = {name: [] for name in (*CASES, RECOVERY, COPY)}
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
        for name in CASES:
            with tempfile.TemporaryDirectory(dir=options.folder, prefix="durability-") as folder:
                command = [sys.executable, __file__, "--case", name, "--folder", folder]
                ran = subprocess.run(command, capture_output=True, text=True, timeout=600, env=dict(os.environ))
            if ran.returncode:
                raise SystemExit(f"{name}: {ran.stderr}")
            found[name].append(float(ran.stdout))
        recovered, copied, _ = recovery.measure_in(options.folder, RECOVERED_RECORDS)
        found[RECOVERY].append(recovered)
        found[COPY].append(copied)
    lines, holds = show(found)
    print("\n".join(lines))
    facts = machine.describe()
    out = options.out or machine.ROOT / "bench" / "runs" / machine.folder_name(facts) / "durability"
    out.mkdir(parents=True, exist_ok=True)
    (out / "raw.json").write_text(json.dumps({"machine": facts, "rounds": found}, indent=1))
    head = f"{options.rounds} rounds; Python {facts['python']}, {facts['processor']}, commit {facts['commit']}."
    text = "\n".join(lines)
    (out / "summary.md").write_text(f"# What durability costs\n\n{head}\n\n```text\n{text}\n```\n")
    print(f"\nresults: {out}/summary.md, raw.json")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
