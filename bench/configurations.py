"""The gain of programs that configure logging in many ways: each row stock, and with `logspool.install()`.

`python bench/configurations.py [--records N] [--turns N] [--rows NAMES] [--quick] [--out FOLDER]`, with logspool
importable. Every measurement is a process of its own with one thread. Stock and logspool take turns, and the side
that begins changes with the turn. The lines of both files are counted, and their bytes compared without times and
numbers of processes and threads.

The exit code is 1 where a line is missing or differs, or a stated ratio is missed; `--quick` judges the lines alone.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import compare
import machine
import report
from configured import CONFIGURATIONS, show
from configured.configuration import Configuration
from configured.masked import difference
from configured.measure import VARIANTS, file_of, measure, measure_apart
from configured.targets import judge, judge_lines
from results import Results
from terminal import fail, paint  # its folder was added by report

# Chosen: the slowest row takes a second; half as many records double the spread of the fast rows.
RECORDS, TURNS = 20_000, 5
QUICK_RECORDS = 500


def run_turn(configuration: Configuration, number: int, records: int, results: Results) -> None:
    """Measure a row once in each variant, and compare the files."""
    with tempfile.TemporaryDirectory(prefix="logspool-bench-", dir=os.environ.get("LOGSPOOL_BENCH_DIR")) as name:
        folder = Path(name)
        for variant in VARIANTS if number % 2 == 0 else VARIANTS[::-1]:
            found = measure_apart(Path(__file__), configuration, variant, records, folder)
            if isinstance(found, str):
                results.failed[configuration.name] = found
                return
            results.add(configuration.name, variant, number, found)
        stock, own = (file_of(folder, variant).read_bytes() for variant in VARIANTS)
    differs = difference(stock, own, configuration.moving)
    if differs:
        results.failed[configuration.name] = differs


def run(names: list[str], turns: int, records: int) -> Results:
    """Measure the rows in all turns; a row that failed once is not measured again."""
    results = Results({**machine.describe(), "records": records, "turns": turns})
    for name in names:
        reason = compare.why_not(CONFIGURATIONS[name])
        if reason:
            results.skipped[name] = reason
    for number in range(turns):
        print(f"turn {number + 1} of {turns}", file=sys.stderr, flush=True)
        for name in names:
            if name not in results.skipped and name not in results.failed:
                run_turn(CONFIGURATIONS[name], number, records, results)
    return results


def main() -> None:
    """Measure, show, keep, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, help=f"records of a measurement; default: {RECORDS:,}")
    parser.add_argument("--turns", type=int, default=TURNS, help="the best of so many counts")
    parser.add_argument("--rows", help=f"names separated by commas, of {', '.join(CONFIGURATIONS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="one turn of few records, kept in build/bench")
    parser.add_argument(
        "--out", type=Path, help="folder of the results; default: bench/runs/DATE-MACHINE/configurations"
    )
    for hidden in ("--row", "--variant", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    records = options.records or (QUICK_RECORDS if options.quick else RECORDS)
    if options.row:
        found = measure(CONFIGURATIONS[options.row], options.variant, records, Path(options.folder))
        print(json.dumps(found))
        return
    names = options.rows.split(",") if options.rows else list(CONFIGURATIONS)
    if unknown := [name for name in names if name not in CONFIGURATIONS]:
        raise fail(f"unknown: {', '.join(unknown)} (rows: {', '.join(CONFIGURATIONS)})", 2)
    if options.turns < 1 or records < 1:
        raise fail("--turns and --records have to be 1 or more", 2)
    results = run(names, 1 if options.quick else options.turns, records)
    whole = not (options.quick or options.rows or options.records)
    default = machine.ROOT / ("bench/runs" if whole else "build/bench")
    folder = (options.out or default / machine.folder_name(results.facts) / "configurations").resolve()
    verdicts = [judge_lines(results)] if options.quick else [judge_lines(results), *judge(results, names)]
    show.keep(folder, results, names, verdicts)
    print(f"\n{paint(show.TITLE, 'bold')}: {show.where(results)}")
    report.print_table(show.table(results, names))
    print("", *show.details(results), sep="\n")
    if options.quick:
        print("\na quick run judges the lines alone; waiting for the last record is most of its time end to end")
    report.print_verdicts(verdicts)
    print(f"\nresults: {folder}/summary.md, raw.json, plot.svg")
    if whole and options.out is None:
        show.update_readme(folder, results, names)
    missed = [verdict for verdict in verdicts if verdict.met is False]
    if missed:
        raise fail(f"{len(missed)} targets missed: {'; '.join(verdict.what for verdict in missed)}")


if __name__ == "__main__":
    main()
