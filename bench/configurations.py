"""The gain of programs that configure logging in many ways: each row stock, and with `logspool.install()`.

`python bench/configurations.py [--records N] [--turns N] [--rows NAMES] [--quick] [--out FOLDER]`, with logspool
importable. Every measurement is a process of its own with one thread. Stock and logspool take turns, and the side
that begins changes with the turn. The lines of both files are counted, and their bytes compared without times and
numbers of processes and threads.

The exit code is 1 where a line is missing or differs, or a stated ratio is missed; `--quick` judges the lines alone.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path

import apart
import chart
import compare
from configured import CONFIGURATIONS
from configured.configuration import Configuration
from configured.masked import difference
from configured.measure import OWN, STOCK, VARIANTS, file_of, measure_apart
from configured.targets import best, judge, ratio
from report import Table
from results import Results
from runner import Bench, alternating, numbered
from targets import Verdict

# Chosen: the slowest row takes a second; half as many records double the spread of the fast rows.
RECORDS, TURNS = 20_000, 5
QUICK_RECORDS = 500

FIGURES = (("caller_ns", "caller's CPU"), ("end_to_end_ns", "end to end"), ("total_cpu_ns", "total CPU"))


def run_turn(configuration: Configuration, number: int, records: int, results: Results) -> None:
    """Measure a row once in each variant, and compare the files."""
    with tempfile.TemporaryDirectory(prefix="logspool-bench-", dir=os.environ.get("LOGSPOOL_BENCH_DIR")) as name:
        folder = Path(name)
        for variant in alternating(VARIANTS, number):
            try:
                found = measure_apart(configuration, variant, records, folder)
            except apart.Failed as error:
                results.failed[configuration.name] = f"{variant} {error}"
                return
            results.add(configuration.name, variant, number, found)
        stock, own = (file_of(folder, variant).read_bytes() for variant in VARIANTS)
    differs = difference(stock, own, configuration.moving)
    if differs:
        results.failed[configuration.name] = differs


def run(names: list[str], turns: int, records: int, results: Results) -> None:
    """Measure the rows in all turns; a row that failed once is not measured again."""
    results.facts |= {"records": records, "turns": turns}
    for name in names:
        if reason := compare.why_not(CONFIGURATIONS[name]):
            results.skipped[name] = reason
    for number in numbered(turns, "turn"):
        for name in names:
            if name not in results.skipped and name not in results.failed:
                run_turn(CONFIGURATIONS[name], number, records, results)


class Configurations(Bench):
    """The comparison of configurations with stock logging."""

    title = picture = "What people configure"
    folder = "configurations"
    readme = "bench-configurations"
    notes = (
        "Nanoseconds per record, the best of all turns; a ratio is stock logging's figure over logspool's.",
        "The caller's CPU is that of the logging thread, end to end ends when all lines are in the file, total CPU is "
        "that of all threads of the process.",
    )
    choices = (("rows", CONFIGURATIONS),)
    sizes = (("records", RECORDS, "records of a measurement"),)
    rounds, rounds_option = TURNS, "turns"
    quick = True

    def measure(self, options: argparse.Namespace, results: Results) -> None:
        """Measure all chosen rows."""
        records = QUICK_RECORDS if options.quick and options.records == RECORDS else options.records
        run(options.rows, options.rounds, records, results)

    def must_work(self, cell: str) -> bool:
        """Each row needs all lines, equal to the lines of stock logging."""
        return True

    def judge(self, results: Results) -> list[Verdict]:
        """Compare with the stated ratios."""
        return [*self.judge_counts(results), *judge(results, names_of(results))]

    def tables(self, results: Results) -> list[tuple[Table, list[str]]]:
        """Return the table, and why calls left the native path."""
        reasons = {
            f"{name}: {reason}"
            for name, variants in results.cells.items()
            for found in variants.get(OWN, [])
            for reason in found["reasons"].values()
        }
        return [(table(results, names_of(results)), sorted(reasons))]

    def panels(self, results: Results) -> list[chart.Panel]:
        """Show the ratio of the caller's CPU of each row."""
        bars = []
        for name in names_of(results):
            value, missing = ratio(results, name, "caller_ns"), _missing(results, name)
            words = (missing or f"{value or 0:.3g}").splitlines()[0][:60]
            bars.append(
                chart.Bar(CONFIGURATIONS[name].title, None if missing else value, words, bool(value and value >= 1))
            )
        bars.sort(key=lambda bar: (bar.value is None, -(bar.value or 0)))
        return [
            chart.Panel("The caller's CPU per record: stock logging / logspool (logarithmic)", bars, logarithmic=True)
        ]

    def readme_lines(self, results: Results, place: Path) -> list[str]:
        """Return the median and the picture."""
        ratios = [found for name in names_of(results) if (found := ratio(results, name, "caller_ns"))]
        median = f"The median of {len(names_of(results))} configurations is {_median(ratios)} x."
        return [median, "", *super().readme_lines(results, place)]

    def facts_in_words(self, results: Results) -> str:
        """Return the size of the run."""
        return f"{results.facts['records']:,} records, turns: {results.facts['turns']}"


def names_of(results: Results) -> list[str]:
    """Return the rows of a run: measured, failed and skipped, in the order of the table."""
    known = results.cells.keys() | results.failed.keys() | results.skipped.keys()
    return [name for name in CONFIGURATIONS if name in known]


def table(results: Results, names: list[str]) -> Table:
    """Return a row for each configuration, the median of the ratios, and the number of ratios below 1."""
    head = ["configuration"]
    for _, title in FIGURES:
        head += [f"{title}: {STOCK}", OWN, "ratio"]
    rows = [_row(results, name, len(head)) for name in names]
    ratios = [[found for name in names if (found := ratio(results, name, figure))] for figure, _ in FIGURES]
    for words, summarise in (("median ratio", _median), ("ratios below 1.0", _below_one)):
        rows.append([words])
        for values in ratios:
            rows[-1] += ["", "", summarise(values)]
        rows[-1].append("")
    return Table(Configurations.title, [*head, "path"], rows)


def _row(results: Results, name: str, width: int) -> list[str]:
    title, missing = CONFIGURATIONS[name].title, _missing(results, name)
    if missing:
        return [title, missing.splitlines()[0], *[""] * (width - 1)]
    row = [title]
    for figure, _ in FIGURES:
        row += [f"{best(results, name, variant, figure) or 0:,.0f}" for variant in VARIANTS]
        row.append(f"{ratio(results, name, figure) or 0:.2f}")
    return [*row, _path(results.rounds(name, OWN)[-1]["paths"])]


def _missing(results: Results, name: str) -> str | None:
    if name in results.failed:
        return f"failed: {results.failed[name]}"
    return f"skipped: {results.skipped[name]}" if name in results.skipped else None


def _path(paths: dict[str, int]) -> str:
    """Return the path that the calls took, with shares if they took several."""
    taken = {name.replace("_", " "): count for name, count in paths.items() if count}
    total = sum(taken.values())
    if len(taken) == 1:
        return next(iter(taken))
    return ", ".join(f"{name} {count / total:.0%}" for name, count in taken.items()) or "none"


def _median(values: list[float]) -> str:
    return f"{statistics.median(values):.2f}" if values else ""


def _below_one(values: list[float]) -> str:
    return str(sum(value < 1 for value in values))


if __name__ == "__main__":
    Configurations().main()
