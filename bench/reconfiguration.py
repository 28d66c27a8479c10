"""The cost of reconfiguring logging while a program runs: stock logging beside the same program with logspool.

`python bench/reconfiguration.py [--rounds N] [--rows NAMES] [--out FOLDER]`, with logspool importable. Every
measurement is a process of its own; stock and logspool take turns, row by row, and the side that begins changes with
the round. A figure is the mean time of an operation in one process; the table shows the median over the rounds. A
ratio is the median of the ratios of the rounds. Afterwards the lines of the files are counted.

The exit code is 1 where a goal is missed or a line is not in its file.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import apart
from parts import Column, Part
from reconfiguration_rows import ROWS, Row
from runner import Bench, alternating
from targets import Target

STOCK, OWN = "stock", "logspool"

# Chosen: ten times the time that the slowest row needs.
ROW_SECONDS = 60.0

PART = Part(
    "reconfiguration",
    "One operation, us",
    columns=(
        Column("logspool_us", "logspool, us", 1),
        Column("stock_us", "stock, us", 1),
        Column("ratio", "logspool / stock"),
    ),
)


def measure(name: str, variant: str, folder: str) -> float:
    """Run one row in this process. Returns microseconds of an operation."""
    row, settle = ROWS[name], _nothing
    if variant == OWN:
        import logspool

        logspool.install()
        settle = logspool.flush
    measured = row.run(Path(folder), row.operations, settle)
    settle()
    found = sum(path.read_bytes().count(b"\n") for path in measured.files)
    if found != measured.records:
        raise SystemExit(f"{found} lines of {measured.records}")
    return measured.seconds / row.operations * 1e6


def _nothing() -> None:
    """Stock logging has written a record when the call returns."""


def target(row: Row) -> Target:
    """Return the promise about a row."""
    if row.at_most_us is not None:
        return Target(row.title, (row.name, PART.name, "logspool_us"), at_most=row.at_most_us, unit="us")
    if row.at_most_ratio is not None:
        return Target(row.title, (row.name, PART.name, "ratio"), at_most=row.at_most_ratio, unit="x of stock")
    return Target(row.title, (row.name, PART.name, "speed"), at_least=row.at_least_speed, unit="x as fast as stock")


class Reconfiguration(Bench):
    """The comparison of what a reconfiguration costs."""

    title = "What it costs to reconfigure logging"
    folder = "reconfiguration"
    choices = (("rows", ROWS),)
    parts = (PART,)
    targets = tuple(target(row) for row in ROWS.values())

    def measure_row(self, row: str, number: int, options: argparse.Namespace) -> dict[str, float]:
        """Measure a row in both variants, each in a process of its own."""
        found = {}
        for variant in alternating((STOCK, OWN), number):
            with tempfile.TemporaryDirectory(prefix="logspool-bench-") as folder:
                found[variant] = apart.ask("reconfiguration", row, variant, folder, seconds=ROW_SECONDS)
        stock, own = found[STOCK], found[OWN]
        return {"stock_us": stock, "logspool_us": own, "ratio": own / stock, "speed": stock / own}

    def must_work(self, cell: str) -> bool:
        return True


if __name__ == "__main__":
    Reconfiguration().main()
