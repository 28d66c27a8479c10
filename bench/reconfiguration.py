"""The cost of reconfiguring logging while a program runs: stock logging beside the same program with logspool.

`python bench/reconfiguration.py [--rounds N] [--rows NAMES] [--out FOLDER]`, with logspool importable. Every
measurement is a process of its own; stock and logspool take turns, row by row, and the side that begins changes with
the round. A figure is the mean time of an operation in one process; the table shows the median over the rounds, and
the best round. A ratio is the median of the ratios of the rounds. Afterwards the lines of the files are counted.

The exit code is 1 where a goal is missed or a line is not in its file.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import machine
from reconfiguration_rows import ROWS, Row

STOCK, OWN = "stock", "logspool"

#: The result of one round: for each row, microseconds of an operation in stock logging and in logspool.
Round = dict[str, dict[str, float]]

# Chosen: ten times the time that the slowest row needs.
ROW_SECONDS = 60.0


def measure(row: Row, variant: str, folder: Path) -> float:
    """Run one row in this process. Returns microseconds of an operation."""
    settle = _nothing
    if variant == OWN:
        import logspool

        logspool.install()
        settle = logspool.flush
    measured = row.run(folder, row.operations, settle)
    settle()
    found = sum(path.read_bytes().count(b"\n") for path in measured.files)
    if found != measured.records:
        raise SystemExit(f"{row.name}, {variant}: {found} lines of {measured.records}")
    return measured.seconds / row.operations * 1e6


def _nothing() -> None:
    """Stock logging has written a record when the call returns."""


def run_apart(name: str, variant: str) -> float:
    """Measure one row in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="logspool-bench-") as folder:
        command = [sys.executable, __file__, "--row", name, "--variant", variant, "--folder", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=ROW_SECONDS)
    if done.returncode:
        raise SystemExit(f"{name}, {variant}: {done.stderr.strip()}")
    return float(done.stdout)


def run(names: list[str], rounds: int) -> list[Round]:
    """Measure the rows in all rounds."""
    found: list[Round] = []
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        variants = (STOCK, OWN) if number % 2 == 0 else (OWN, STOCK)
        found.append({name: {variant: run_apart(name, variant) for variant in variants} for name in names})
    return found


def judge(row: Row, found: list[Round]) -> tuple[str, bool]:
    """Return the promise about a row, its measurement, and whether the promise holds."""
    own = statistics.median(figures[row.name][OWN] for figures in found)
    ratio = statistics.median(figures[row.name][OWN] / figures[row.name][STOCK] for figures in found)
    if row.at_most_us is not None:
        return f"<= {row.at_most_us:g} us", own <= row.at_most_us
    if row.at_most_ratio is not None:
        return f"<= {row.at_most_ratio:g}x of stock", ratio <= row.at_most_ratio
    speed = statistics.median(figures[row.name][STOCK] / figures[row.name][OWN] for figures in found)
    return f">= {row.at_least_speed:g}x as fast as stock", speed >= (row.at_least_speed or 0)


def table(names: list[str], found: list[Round]) -> tuple[list[str], list[str]]:
    """Return the table in Markdown, and the titles of the rows whose goal is missed."""
    lines = ["| operation | stock us (best) | logspool us (best) | logspool / stock | goal | |"]
    lines.append("|---|--:|--:|--:|---|---|")
    missed = []
    for row in (ROWS[name] for name in names):
        cells = []
        for variant in (STOCK, OWN):
            values = [figures[row.name][variant] for figures in found]
            cells.append(f"{statistics.median(values):,.1f} ({min(values):,.1f})")
        ratio = statistics.median(figures[row.name][OWN] / figures[row.name][STOCK] for figures in found)
        goal, met = judge(row, found)
        lines.append(f"| {row.title} | {' | '.join(cells)} | {ratio:.2f} | {goal} | {'met' if met else '**missed**'} |")
        if not met:
            missed.append(row.title)
    return lines, missed


def main() -> int:
    """Measure, show, keep, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", help=f"names separated by commas, of {', '.join(ROWS)}; default: all")
    parser.add_argument(
        "--out", type=Path, help="folder of the results; default: bench/runs/DATE-MACHINE/reconfiguration"
    )
    for hidden in ("--row", "--variant", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(measure(ROWS[options.row], options.variant, Path(options.folder)))
        return 0
    names = options.rows.split(",") if options.rows else list(ROWS)
    if unknown := [name for name in names if name not in ROWS]:
        parser.error(f"unknown rows: {', '.join(unknown)}; known: {', '.join(ROWS)}")
    if options.rounds < 1:
        parser.error("--rounds has to be 1 or more")
    found = run(names, options.rounds)
    lines, missed = table(names, found)
    print("\n".join(lines))
    facts = machine.describe()
    runs = machine.ROOT / ("build/bench" if options.rows else "bench/runs")
    out = options.out or runs / machine.folder_name(facts) / "reconfiguration"
    out.mkdir(parents=True, exist_ok=True)
    (out / "raw.json").write_text(json.dumps({"machine": facts, "rounds": found}, indent=1))
    head = f"{options.rounds} rounds; Python {facts['python']}, {facts['processor']}, commit {facts['commit']}."
    text = "\n".join(["# What it costs to reconfigure logging", "", head, "", *lines])
    (out / "summary.md").write_text(text + "\n")
    print(f"\nresults: {out}/summary.md, raw.json")
    if missed:
        print(f"missed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
