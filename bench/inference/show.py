"""Shows a run: tables for a terminal, a summary in Markdown, and a chart."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import chart
import report
from inference import plan, sinks
from inference.modes import MODES
from results import Results
from tables import Table
from targets import Verdict
from terminal import paint  # its folder was added by report

TITLE = "What logging leaves of an inference server"
HEAD = ["logger", "req/s, of none", "lowest to highest", "CPU added, us", "p99 ms", "p99, of none"]
HEAD += ["loop lag p99 ms", "max ms", "kept", "exact", "grown MB"]
#: Difference between slices without logging above which targets of a few per cent mean nothing.
TOO_NOISY = 0.2
NOTES = (
    "The first column is the closed loop: requests a second with the logger, divided by the mean of the slices before"
    " and after, without logging, in the same server process.",
    "CPU is that of the server process for a request, all threads together.",
    "p99 is the open loop: a fixed rate, and latency counts from the time at which a request was due.",
    "Kept: numbered records that arrived, of those logged. Exact: the logger's own counts agree with what arrived.",
    "The row `none` compares no logging with no logging: what it differs from 1 is noise.",
)


def tables(results: Results) -> list[Table]:
    """Return a table for each workload and sink."""
    found = []
    for workload, words in plan.WORKLOADS.items():
        for kind, sink in sinks.KINDS.items():
            case = plan.case(workload, kind)
            names = [name for name in MODES if results.rounds(name, case)]
            failed = [name for name in MODES if f"{name} {case}" in results.failed]
            if not names and not failed:
                continue
            rows = [_row(results, name, case) for name in names]
            rows += [_empty(name, results.failed[f"{name} {case}"]) for name in failed if name not in names]
            if kind == sinks.FILE:
                rows += [_empty(name, f"skipped: {reason}") for name, reason in results.skipped.items()]
            marks = frozenset(number for number, name in enumerate(names) if name.startswith(plan.OWN))
            found.append(Table(f"{words}; {sink}", HEAD, rows, marks))
    return found


def print_all(results: Results) -> None:
    """Print everything measured."""
    print(where(results))
    for table in tables(results):
        print(f"\n{paint(table.title, 'bold')}")
        report.print_table(table)
    for note in NOTES:
        print(paint(f"  {note}", "dim"))


def keep(folder: Path, results: Results, verdicts: list[Verdict]) -> None:
    """Write raw results, summary and chart into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "raw.json").write_text(json.dumps(results.to_json(), indent=1))
    (folder / "summary.md").write_text(summary(results, verdicts))
    draw(folder / "plot.svg", results)


def summary(results: Results, verdicts: list[Verdict]) -> str:
    """Return the whole run as Markdown."""
    parts = ["# Logging in an inference server", "", where(results), "", *(f"- {note}" for note in NOTES), ""]
    parts += [f"![{TITLE}](plot.svg)", "", "## Targets", "", *report.verdict_lines(verdicts)]
    for table in tables(results):
        parts += ["", f"## {table.title}", "", *report.markdown(table)]
    return "\n".join(parts) + "\n"


def draw(path: Path, results: Results) -> None:
    """Draw the share of requests that each logger leaves, with a good file and with the worst sink."""
    panels = []
    for workload, kind in (("classify", sinks.FILE), ("tokens", sinks.FILE), ("classify", sinks.FROZEN)):
        case = plan.case(workload, kind)
        bars = []
        for name in plan.LOGGERS:
            value = results.median(name, case, "ratio")
            if value is not None:
                bars.append(chart.Bar(MODES[name].title, value, f"{value:.2f}", name == plan.OWN))
        if bars:
            bars.sort(key=lambda bar: -(bar.value or 0))
            panels.append(chart.Panel(f"{plan.WORKLOADS[workload]}; {sinks.KINDS[kind]}", bars))
    chart.write(path, TITLE, where(results), panels)


def where(results: Results) -> str:
    """Return the machine, versions and commit of a run, in a line."""
    facts = results.facts
    return (
        f"{facts['date']}, {facts['processor']}, {facts['cores']} cores, Python {facts['python']}, "
        f"commit {facts['commit']}, load {facts['load']:.1f} at the start{_noise(results)}."
    )


def _noise(results: Results) -> str:
    spreads = [cell["none_spread"] for cases in results.cells.values() for cells in cases.values() for cell in cells]
    if not spreads:
        return ""
    middle = statistics.median(spreads)
    words = f"; slices without logging differ by {middle:.0%} (median of the servers)"
    return words + (": too noisy to judge" if middle > TOO_NOISY else "")


def _row(results: Results, name: str, case: str) -> list[str]:
    def figure(what: str, form: str) -> str:
        value = results.median(name, case, what)
        return "-" if value is None else format(value, form)

    ratios = [ratio for ratios in results.values(name, case, "ratios") for ratio in ratios]  # type: ignore[attr-defined]
    exact = results.worst(name, case, "exact")
    return [
        MODES[name].title,
        figure("ratio", ".2f"),
        f"{min(ratios):.2f} to {max(ratios):.2f}",
        figure("added_us", "+,.0f"),
        figure("p99_ms", ",.1f"),
        figure("p99_ratio", ".2f"),
        figure("lag_p99_ms", ",.1f"),
        figure("lag_max_ms", ",.0f"),
        figure("kept", ".1%") if MODES[name].writes else "-",
        "not counted" if exact is None else "yes" if exact == "yes" else "NO",
        figure("grown_mb", ".1f"),
    ]


def _empty(name: str, reason: str) -> list[str]:
    return [MODES[name].title, reason] + [""] * (len(HEAD) - 2)
