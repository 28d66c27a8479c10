"""Compare the service with the plainest things that do the same work, in one run on one machine.

Each round runs all contenders of a part one after the other, in another order each time; a ratio is taken inside a
round, and the median over the rounds counts. Records are counted at their destination: rows by SQL, lines in files.
PostgreSQL is a throwaway server that all contenders share, each with an empty database; rsyslog is a process of its own
on loopback, and left out where it is not there and cannot be installed.

    python bench/service.py [--quick] [--rounds N] [--parts NAME,NAME] [--out FOLDER]
    python bench/service.py --again FOLDER

The exit code is 1 where a target is missed or a record is lost; `--quick` judges nothing but the counts.
"""

from __future__ import annotations

import argparse
import dataclasses
import signal
import subprocess
import sys
import time

import chart
from parts import Part
from results import Results
from runner import Bench
from services import PARTS, native, rsyslog, stdlib, syslog
from services.ground import POSTGRES, SQLITE, Ground, build
from services.part import QUICK, Sizes, Wrong, own
from services.targets import COUNTS, TARGETS, judge_records
from targets import Verdict
from terminal import step  # its folder was added by report

#: The rows of the chart: (label, part, row). A row of logspool is above the plainest program for the same work.
CHART: list[tuple[str, str, str]] = [
    ("logspool's client into PostgreSQL", native.PART.name, f"{POSTGRES}: native client, 1 process"),
    ("raw COPY BINARY into PostgreSQL", native.PART.name, f"{POSTGRES}: raw COPY BINARY"),
    ("logspool's client into SQLite", native.PART.name, f"{SQLITE}: native client, 1 process"),
    ("raw inserts into SQLite", native.PART.name, f"{SQLITE}: raw inserts, 50 rows each"),
    ("200 SocketHandlers to logspool", stdlib.PART.name, "200 processes: logspool serve"),
    ("200 SocketHandlers to a Python server", stdlib.PART.name, "200 processes: Python bulk server"),
    ("syslog into PostgreSQL by logspool", syslog.PART.name, f"{syslog.ROWS}, 4 connections: logspool serve"),
    ("syslog into PostgreSQL by rsyslog", syslog.PART.name, f"{syslog.ROWS}, 4 connections: rsyslog"),
]


def measure(part: Part, ground: Ground, rounds: int, results: Results) -> None:
    """Run the rounds of one part; a round that fails ends the part, and the others continue."""
    wanted = min(rounds, part.most_rounds or rounds)
    for number in range(wanted):
        ground.place = f"{part.name}, round {number + 1} of {wanted}"
        try:
            found = part.measure(ground)
        except (Wrong, RuntimeError, OSError, subprocess.SubprocessError) as error:
            results.failed[part.name] = f"{type(error).__name__}: {error}"[:300]
            ground.say(results.failed[part.name] + "\n")
            return
        results.add_round(part.name, number, found)


class ServiceBench(Bench):
    """The comparison of the service."""

    title = "Comparison of the service"
    picture = "What a service for log records takes"
    folder = "service"
    readme = "bench-service"
    notes = ("Medians over the rounds; a ratio is taken inside each round, then its median.",)
    choices = (("parts", PARTS),)
    parts = tuple(PARTS.values())
    targets, counts = TARGETS, COUNTS
    quick = True

    def measure(self, options: argparse.Namespace, results: Results) -> None:
        """Run all parts, one after the other."""
        # A stopped run leaves no server, load or store.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        step("building the service, senders and calibrators for release")
        ground = Ground(build(), QUICK if options.quick else Sizes())
        try:
            for part in (PARTS[name] for name in options.parts):
                if reason := part.missing():
                    results.skipped[part.name] = reason
                    continue
                step(f"{part.name}: {part.title}")
                began = time.monotonic()
                measure(part, ground, options.rounds, results)
                results.process[f"seconds of {part.name}"] = time.monotonic() - began
            facts = {"postgres": ground.server_version(), "rsyslog": rsyslog.version()}
            results.facts |= {**facts, "sizes": dataclasses.asdict(ground.sizes)}
        finally:
            ground.close()

    def own(self, row: str) -> bool:
        """Say whether a row is logspool's."""
        return own(row)

    def must_work(self, cell: str) -> bool:
        """Whatever fails: ratios to it mean nothing."""
        return True

    def judge_counts(self, results: Results) -> list[Verdict]:
        """Compare the figures that hold in a run of any length, those of every row too."""
        return [*judge_records(results), *super().judge_counts(results)]

    def panels(self, results: Results) -> list[chart.Panel]:
        """Show eight rows; the summary has the others."""
        bars = [self.bar(results, label, row, part, "rate") for label, part, row in CHART]
        return [chart.Panel("Records stored per second", bars)]

    def facts_in_words(self, results: Results) -> str:
        """Return the versions of the other programs too."""
        versions = f"PostgreSQL {results.facts['postgres']}, {results.facts['rsyslog']}"
        return f"{versions}, {super().facts_in_words(results)}"


if __name__ == "__main__":
    ServiceBench().main()
