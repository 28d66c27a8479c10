"""Show a run of the service's comparison: tables for a terminal, a summary in Markdown, a chart."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import chart
import report
from results import Results
from services import PARTS, native, stdlib, syslog
from services.ground import POSTGRES, SQLITE
from services.part import Part, own
from services.targets import judge
from tables import Table
from terminal import paint  # its folder was added by report

TITLE = "What a service for log records takes"

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


def tables(results: Results) -> list[tuple[Part, Table]]:
    """Return a table for each part that was measured, failed or could not be measured."""
    return [(part, _table(results, part)) for part in PARTS.values() if _is_shown(results, part)]


def print_all(results: Results) -> None:
    """Print everything measured."""
    print(where(results))
    for part, table in tables(results):
        print(f"\n{paint(table.title, 'bold')}")
        if part.question:
            print(paint(f"  {part.question}", "dim"))
        report.print_table(table)
        for row, words in part.work:
            print(paint(f"  {row}: {words}", "dim"))


def keep(folder: Path, results: Results) -> None:
    """Write raw results, summary and chart into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "raw.json").write_text(json.dumps(results.to_json(), indent=1))
    again(folder)


def again(folder: Path) -> Results:
    """Make chart and summary of a folder from its raw results, and return them."""
    results = Results.from_json(json.loads((folder / "raw.json").read_text()))
    (folder / "summary.md").write_text(summary(results))
    draw(folder / "plot.svg", results)
    return results


def summary(results: Results) -> str:
    """Return the whole run as Markdown."""
    parts = ["# Comparison of the service", "", where(results), ""]
    parts += ["Medians over the rounds; a ratio is taken inside each round, then its median.", ""]
    parts += [f"![{TITLE}](plot.svg)", "", "## Targets", "", *report.verdict_lines(judge(results))]
    for part, table in tables(results):
        parts += ["", f"## {table.title}", ""]
        parts += [part.question, ""] if part.question else []
        parts += report.markdown(table)
        parts += ["", "What each of them does:", ""] if part.work else []
        parts += [f"- {row}: {words}." for row, words in part.work]
    return "\n".join(parts) + "\n"


def update_readme(folder: Path, results: Results) -> None:
    """Put the picture of a run into the README."""
    place = folder.relative_to(report.ROOT)
    lines = [where(results), "", f"![{TITLE}]({place}/plot.svg)", ""]
    lines += [f"All rows, what each of them does, and targets: [{place}/summary.md]({place}/summary.md)."]
    report.put_into_readme("bench-service", lines)


def draw(path: Path, results: Results) -> None:
    """Draw one panel of eight rows; the summary has the others."""
    bars = []
    for label, part, row in CHART:
        value = results.median(row, part, "rate")
        reason = results.failed.get(part) or results.skipped.get(part, "not measured")
        bars.append(chart.Bar(label, value, reason[:60] if value is None else _short(value), own(row)))
    chart.write(path, TITLE, where(results), [chart.Panel("Records stored per second", bars)])


def where(results: Results) -> str:
    """Return the machine, versions and commit of a run, in a line."""
    facts = results.facts
    rounds = max((len(rounds) for cells in results.cells.values() for rounds in cells.values()), default=0)
    return (
        f"{facts['date']}, {facts['processor']}, {facts['cores']} cores, Python {facts['python']}, "
        f"PostgreSQL {facts['postgres']}, {facts['rsyslog']}, commit {facts['commit']}, {rounds} rounds at most."
    )


def _is_shown(results: Results, part: Part) -> bool:
    return bool(_rows(results, part)) or part.name in results.skipped or part.name in results.failed


def _rows(results: Results, part: Part) -> list[str]:
    return [row for row, cells in results.cells.items() if part.name in cells]


def _table(results: Results, part: Part) -> Table:
    rows = _rows(results, part)
    references = {row: part.compared_with(row) for row in rows}
    compares = any(references.values())
    head = ["contender", *(column.head for column in part.columns), "lowest to highest"]
    head += ["of that compared with", "lowest to highest"] if compares else []
    reason = results.skipped.get(part.name) or results.failed.get(part.name)
    if reason and not rows:
        return Table(part.title, head, [["not measured", reason] + [""] * (len(head) - 2)])
    cells, marks = [], []
    first = part.columns[0]
    # Rows that are compared with each other are neighbours, the best first.
    names = sorted(rows, key=lambda row: (str(references[row]), -(results.median(row, part.name, first.figure) or 0)))
    for row in names if compares else rows:
        values = results.values(row, part.name, first.figure)
        line = [row, *(_figure(results, row, part, column.figure, column.places) for column in part.columns)]
        line.append(f"{min(values):,.{first.places}f} to {max(values):,.{first.places}f}" if values else "")
        if compares:
            line += _ratio(results, part, row, references[row])
        if own(row):
            marks.append(len(cells))
        cells.append(line)
    if reason:
        cells.append(["broken off", reason] + [""] * (len(head) - 2))
    return Table(part.title, head, cells, frozenset(marks))


def _ratio(results: Results, part: Part, row: str, reference: str | None) -> list[str]:
    if reference is None:
        return ["", ""]
    figure = part.columns[0].figure
    pairs = zip(results.values(row, part.name, figure), results.values(reference, part.name, figure))
    ratios = [value / other for value, other in pairs if other]
    if not ratios:
        return ["", ""]
    return [f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]


def _figure(results: Results, row: str, part: Part, figure: str, places: int) -> str:
    value = results.median(row, part.name, figure)
    return "" if value is None else f"{value:,.{places}f}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
