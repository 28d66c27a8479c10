"""Compare logspool with stock logging and other loggers, in one run on one machine.

Every cell (a case in a mode) runs in a process of its own, and the rounds are interleaved: all cells once, then all
again, so that a slow minute of the machine meets everybody.
The exit code is 1 where a target is missed, or in a whole run not measured; `--quick` judges nothing.
"""

import argparse
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import apart
import chart
import process_costs
import thawed_pipe
from case import BURST, DISABLED, LATENCY, PACED, THREADS, THROUGHPUT, Case
from cases import CASES
from cases.tables import all_tables
from cases.targets import TARGETS, judge_lines, judge_process
from report import Table
from results import Results
from runner import Bench, say
from targets import Verdict
from terminal import note  # its folder was added by report

MODES = (THROUGHPUT, LATENCY, PACED, THREADS, BURST, DISABLED)

# Chosen: half as many make the spread of the fast rows twice as wide, twice as many double a run of a quarter hour.
RECORDS = {THROUGHPUT: 100_000, LATENCY: 50_000, PACED: 5_000, THREADS: 100_000, BURST: 100_000, DISABLED: 200_000}
SLOW_RECORDS = {**RECORDS, THROUGHPUT: 20_000, LATENCY: 10_000, THREADS: 20_000}
QUICK_RECORDS = {THROUGHPUT: 2_000, LATENCY: 2_000, PACED: 250, THREADS: 2_000, BURST: 5_000, DISABLED: 5_000}

# Compared with each other, and over in 25 to 60 ms each: a round measures these cells REPEATS times, in turns. Chosen:
# with five rounds 25 pairs, whose median moves by some hundredths; five pairs were off by a tenth and more.
REPEATED = {("logspool", THROUGHPUT), ("logspool-json", THROUGHPUT), ("logspool", THREADS)}
REPEATS = 5

# Chosen: ten times the time that the slowest cell needs.
CELL_SECONDS = 60.0


README_CASES = ["logspool", "logspool-handler", "stdlib-file", "stdlib-queue"]
README_CASES += ["backgroundlog", "picologging", "loguru", "logust", "spydlog"]
#: The rows of the chart.
PLOT_CASES = [name for name in README_CASES if name != "logspool-handler"]


def why_not(case: Case) -> str | None:
    """Return why a case cannot run here, None where it can."""
    reasons = apart.install_reasons()
    for module in case.needs:
        package = module.split(".")[0]
        try:
            found = find_spec(module) is not None
        except ImportError:
            found = False
        if not found:
            matching = [reason for name, reason in reasons.items() if name.replace("-", "_").startswith(package)]
            return (matching or [f"{package} is not installed"])[0]
    return None


def run_cell(case: Case, mode: str, records: int) -> dict[str, Any]:
    """Measure one cell in a fresh process; return its figures."""
    seconds = dict(case.limits).get(mode, CELL_SECONDS)
    variables = apart.variables()
    result = apart.ask("worker", case.name, mode, records, function="figures", seconds=seconds, variables=variables)
    if "p50_ns" in result:
        result["p50_net_ns"] = result["p50_ns"] - result["empty_p50_ns"]
    return dict(result)


class Compare(Bench):
    """The comparison of loggers."""

    title = "Comparison of loggers"
    picture = "What a log record costs"
    folder = ""
    readme = "bench"
    notes = (
        "Medians over the rounds, with half the distance between the extremes.",
        *(f"{case.title}: {case.note}." for case in CASES.values() if case.note),
    )
    choices = (("cases", CASES), ("modes", MODES))
    targets = TARGETS
    quick = strict = True

    def measure(self, options: argparse.Namespace, results: Results) -> None:
        """Run all rounds."""
        chosen = []
        for case in (CASES[name] for name in options.cases):
            reason = why_not(case)
            if reason:
                results.skipped[case.name] = reason
            else:
                chosen.append(case)
        cells = [(case, mode) for mode in options.modes for case in chosen if mode in case.modes]
        if not options.quick:
            cells += (REPEATS - 1) * [(case, mode) for case, mode in cells if (case.name, mode) in REPEATED]
        began, total = time.monotonic(), options.rounds * len(cells)
        for number in range(options.rounds):
            for place, (case, mode) in enumerate(cells, number * len(cells)):
                _progress(place, total, began, f"round {number + 1}: {case.name} {mode}")
                records = (QUICK_RECORDS if options.quick else SLOW_RECORDS if case.slow else RECORDS)[mode]
                results.take(case.name, mode, number, partial(run_cell, case, mode, records))
        if find_spec("logspool") and "logspool" in options.cases:
            _progress(total, total, began, "idle and import")
            try:
                results.process |= {**process_costs.measure(options.quick), **thawed_pipe.measure(options.quick)}
            except subprocess.CalledProcessError as error:
                note(f"idle and import: {error.stderr.strip().splitlines()[-1:]}")

    def judge_counts(self, results: Results) -> list[Verdict]:
        """A quick run judges nothing."""
        return []

    def judge(self, results: Results) -> list[Verdict]:
        """Compare a run with all targets."""
        return [*super().judge(results), *judge_process(results), *judge_lines(results)]

    def tables(self, results: Results) -> list[tuple[Table, list[str]]]:
        """Return every table of the run."""
        return [(table, []) for table in all_tables(results)]

    def panels(self, results: Results) -> list[chart.Panel]:
        """Show the caller's CPU per record in eight rows; the summary has the other figures."""
        bars = []
        for name in PLOT_CASES:
            bar = self.bar(results, CASES[name].title.strip("*"), name, THROUGHPUT, "caller_cpu_ns")
            lost = results.worst(name, THROUGHPUT, "lost")
            bars.append(replace(bar, text=f"{bar.text} ({lost:,} lost)") if lost else bar)
        bars.sort(key=lambda bar: (bar.value is None, bar.value or 0))
        return [chart.Panel("The caller's CPU per record (ns, logarithmic)", bars, logarithmic=True)]

    def readme_lines(self, results: Results, place: Path) -> list[str]:
        """Return the main figures and the picture."""
        head = [
            "case",
            "caller's CPU",
            "p99.9 of a call",
            "until in the file",
            "4 threads",
            "lines lost",
            "caller's line",
        ]
        lines = [f"| {' | '.join(head)} |", "|---|" + "--:|" * (len(head) - 2) + "---|"]
        for name in README_CASES:
            figures = [
                results.median(name, THROUGHPUT, "caller_cpu_ns"),
                results.median(name, LATENCY, "p999_ns"),
                results.median(name, THROUGHPUT, "end_to_end_ns"),
                results.median(name, THREADS, "end_to_end_ns"),
            ]
            if figures[0] is None:
                continue
            words = [f"{figure:,.0f} ns" if figure is not None else "-" for figure in figures]
            if f"{name} {THREADS}" in results.failed:
                words[-1] = results.failed[f"{name} {THREADS}"].split(":")[0]
            words += [str(results.worst(name, THROUGHPUT, "lost")), str(results.worst(name, THROUGHPUT, "caller_line"))]
            lines.append(f"| {CASES[name].title} | {' | '.join(words)} |")
        return [*lines, "", *super().readme_lines(results, place)]


def _progress(done: int, total: int, began: float, words: str) -> None:
    if sys.stderr.isatty():
        left = (time.monotonic() - began) / done * (total - done) if done else 0
        say(f"{done * 100 // total:3d} %  {left / 60:4.1f} min left  {words}")


if __name__ == "__main__":
    Compare().main()
