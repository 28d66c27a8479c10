"""The time that redaction adds to the caller's time of one record.

Processes take turns: one without rules, one with 10 keys and 5 patterns. A batch has to fit into the first ring of a
lane, 32 KiB: in a longer batch calls wait for room, and the writer decides how long. A figure is the median over the
batches, in nanoseconds a call. The lines are counted at the end.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import tempfile
import time
from pathlib import Path

import apart
from parts import Column, Part
from runner import Bench
from targets import Target

#: Nanoseconds that redaction may add to a call.
MOST_NS = 1000

KINDS = ("text", "JSON")

PART = Part(
    "rules",
    "A call with 10 keys and 5 patterns, and without, ns",
    columns=(Column("added", "added", 0), Column("without", "without", 0), Column("with", "with rules", 0)),
)

RULES = {"redact_keys": ["default"], "redact_patterns": ["default"]}

FIELDS = {"customer": "ada", "amount": 12.5, "route": "/shops/{shop}/items/{item}"}


def measure(folder: str, kind: str, rules: bool, batches: int, calls: int) -> float:
    """Return the median nanoseconds of a call; run in a process of its own."""
    import logspool

    formatter = logspool.JSONFormatter() if kind == "JSON" else logging.Formatter("%(asctime)s %(message)s")
    path = Path(folder) / f"{kind}-{rules}-{os.getpid()}.log"
    handler = logging.FileHandler(path)
    handler.setFormatter(formatter)
    log = logging.getLogger("bench")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    logspool.install(**(RULES if rules else {}))
    times = []
    for _ in range(batches):
        began = time.perf_counter_ns()
        if kind == "JSON":
            for number in range(calls):
                log.info("order %d paid by %s from %s", number, "ada", "Paris", extra=FIELDS)
        else:
            for number in range(calls):
                log.info("order %d paid by %s from %s", number, "ada", "Paris")
        times.append((time.perf_counter_ns() - began) / calls)
        logspool.flush()
    written = sum(1 for _ in path.open())
    if written != batches * calls:
        raise SystemExit(f"{written} of {batches * calls} lines were written")
    if rules and logspool.stats().rules["rewritten"]:
        raise SystemExit("a record without secrets was changed")
    return statistics.median(times)


class Rules(Bench):
    """The comparison of calls with rules and without."""

    title = "What redaction costs"
    folder = "rules"
    rounds_option = "turns"
    parts = (PART,)
    targets = tuple(
        Target(f"added to a call, {kind}", (kind, PART.name, "added"), at_most=MOST_NS, unit="ns") for kind in KINDS
    )

    sizes = (("batches", 200, "batches of a measurement"), ("calls", 50, "calls in a batch"))
    choices = (("rows", KINDS),)

    def measure_row(self, row: str, number: int, options: argparse.Namespace) -> dict[str, float]:
        sizes = options.batches, options.calls
        with tempfile.TemporaryDirectory() as folder:
            without, ruled = (apart.ask("rules", folder, row, rules, *sizes) for rules in (False, True))
        return {"without": without, "with": ruled, "added": ruled - without}

    def must_work(self, cell: str) -> bool:
        return True


if __name__ == "__main__":
    Rules().main()
