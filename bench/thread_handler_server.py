"""The cost of `ThreadHandler` with a slow handler in a loaded server.

FastAPI under uvicorn with an onnxruntime model, closed loop, two records a request (see `bench/inference`). Rows:

    ThreadHandler, 1 ms a write     install(), ThreadHandler(StreamHandler(f)), and a write of f takes 1 ms
    ThreadHandler, stalls 200 ms    the same, and a write of f stalls for 200 ms once a second
    ThreadHandler, slow pipe        the same on a pipe that takes 1 ms a write
    QueueHandler, 1 ms a write      the standard library's QueueListener around the same handler
    none                            no logging in any slice: the noise

Each row is a server of its own. Slices with the logger lie between slices without; ratios are to the mean of both. The
rows take turns.

    python bench/prepare.py --set inference -- bench/thread_handler_server.py [--rounds N] [--seconds S] [--out FOLDER]

Exit code 1 when a row of ThreadHandler serves less than 0.90 of the requests without logging, when its 99th
percentile of the latency is more than 1.2 times as long, or when an account is not exact.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from typing import Any

from inference import cell, sinks
from parts import Column, Part
from results import Results
from runner import Bench, numbered
from targets import Target, count

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


PART = Part(
    "server",
    "A server that logs two records a request",
    (
        Column("share", "of none"),
        Column("p99", "p99 of none"),
        Column("added_us", "CPU added us", 0),
    ),
)
JUDGED = [title for title, _, _, is_judged in ROWS if is_judged]


class Servers(Bench):
    """The comparison of handlers on threads in a server."""

    title = "ThreadHandler in a loaded server"
    folder = "thread-handler-server"
    parts = (PART,)
    sizes = (("seconds", 1.2, "duration of a slice"),)
    rounds = 7
    targets = (
        *(Target(f"requests, {row}", (row, PART.name, "share"), at_least=LEAST_SHARE) for row in JUDGED),
        *(Target(f"p99, {row}", (row, PART.name, "p99"), at_most=LARGEST_P99) for row in JUDGED),
    )
    counts = tuple(count(f"accounts that are not exact, {row}", row, "account", "wrong") for row in JUDGED)

    def measure(self, options: argparse.Namespace, results: Results) -> None:
        """Measure the rows in turns, each in a server of its own."""
        with ExitStack() as stack:
            servers = {}
            for title, mode, kind, _ in ROWS:
                servers[title] = cell.Cell(mode, "classify", kind, cell.Sizes(seconds=options.seconds), stack)
                servers[title].warm_up()
            for number in numbered(options.rounds):
                for title, server in servers.items():
                    results.add(title, PART.name, number, measured(server))
            for title in JUDGED:
                finished = servers[title].server.ask("finish")
                results.add(title, "account", 0, {"wrong": 0 if is_exact(finished) else 1, **finished})

    def own(self, row: str) -> bool:
        return row.startswith("ThreadHandler")


if __name__ == "__main__":
    Servers().main()
