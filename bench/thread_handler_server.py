"""The cost of `ThreadHandler` with a slow handler in a loaded server.

FastAPI under uvicorn with an onnxruntime model, closed loop, two records a request (see `bench/inference`). Rows:

    ThreadHandler, 1 ms a write     install(), ThreadHandler(StreamHandler(f)), and a write of f takes 1 ms
    ThreadHandler, stalls 200 ms    the same, and a write of f stalls for 200 ms once a second
    ThreadHandler, slow pipe        the same on a pipe that takes 1 ms a write
    QueueHandler, 1 ms a write      the standard library's QueueListener around the same handler
    none                            no logging in any slice: the noise

Each row is a server of its own. Slices with the logger lie between slices without; ratios are to the mean of both. The
rows take turns.

    python bench/prepare.py --set inference -- bench/thread_handler_server.py [--rounds N] [--seconds S] [--json FILE]

Exit code 1 when a row of ThreadHandler serves less than 0.90 of the requests without logging, when its 99th
percentile of the latency is more than 1.2 times as long, or when an account is not exact.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

# The modules of this folder are found without help.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import machine
from inference import cell, sinks

#: Least share of the requests, and largest ratio of the 99th percentile of the latency.
LEAST_SHARE, LARGEST_P99 = 0.90, 1.2

#: Each row: its title, the mode and the sink of its server, and whether it is judged.
ROWS = (
    ("ThreadHandler, 1 ms a write", "thread-slow-stream", sinks.FILE, True),
    ("ThreadHandler, stalls 200 ms", "thread-stalling-stream", sinks.FILE, True),
    ("ThreadHandler, slow pipe", "thread-installed", sinks.SLOW, True),
    ("QueueHandler, 1 ms a write", "queue-slow-stream", sinks.FILE, False),
    ("none", "none", sinks.FILE, False),
)


def measured(server: cell.Cell) -> dict[str, float]:
    """Return the ratios of one slice with the logger to the slices before and after."""
    before, logged = server.slice(logs=False), server.slice(logs=True)
    time.sleep(1.0)  # a queue of 1,000 records of 1 ms is written before the next slice
    after = server.slice(logs=False)
    none = [slice.load for slice in (before, after)]
    return {
        "share": 2 * logged.load["rate"] / sum(load["rate"] for load in none),
        "p99": 2 * logged.load["p99_ms"] / sum(load["p99_ms"] for load in none),
        "added_us": logged.cpu_us - (before.cpu_us + after.cpu_us) / 2,
    }


def is_exact(finished: dict[str, Any]) -> bool:
    """Return whether each record is accounted for."""
    offered = finished["accepted"] + finished["refused"]
    return offered == finished["offered"] and finished["accepted"] == finished["written"] + finished["dropped"]


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="rounds of all rows")
    parser.add_argument("--seconds", type=float, default=1.2, help="duration of a slice")
    parser.add_argument("--json", type=Path, help="write the raw data to this file")
    options = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {title: [] for title, *_ in ROWS}
    missed = []
    with ExitStack() as stack:
        servers = {}
        for title, mode, kind, _ in ROWS:
            sizes = cell.Sizes(seconds=options.seconds)
            servers[title] = cell.Cell(mode, "classify", kind, sizes, stack)
            servers[title].warm_up()
        for _ in range(options.rounds):
            for title, server in servers.items():
                found[title].append(measured(server))
        for title, _, _, is_judged in ROWS:
            finished = servers[title].server.ask("finish")
            if is_judged and not is_exact(finished):
                missed.append(f"{title}: {finished}")
    print(f"{'':30} {'of none':>8} {'min..max':>12} {'p99 of none':>12} {'CPU added us':>13}")
    for title, _, _, is_judged in ROWS:
        shares = [item["share"] for item in found[title]]
        share, p99, added = (
            statistics.median(item[key] for item in found[title]) for key in ("share", "p99", "added_us")
        )
        spread = f"{min(shares):.2f}..{max(shares):.2f}"
        print(f"{title:30} {share:>8.2f} {spread:>12} {p99:>12.2f} {added:>13.0f}")
        if is_judged and (share < LEAST_SHARE or p99 > LARGEST_P99):
            missed.append(
                f"{title}: {share:.2f} of none (at least {LEAST_SHARE}), p99 {p99:.2f} (at most {LARGEST_P99})"
            )
    if options.json:
        facts = {**machine.describe(), "load": os.getloadavg()[0], "seconds": options.seconds}
        options.json.write_text(json.dumps({"machine": facts, "rows": found, "missed": missed}, indent=1))
    for text in missed:
        print(f"missed: {text}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
