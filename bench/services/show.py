"""Show a run of the service's comparison: tables for a terminal, a summary in Markdown, a chart."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import chart
import report
from results import Results
from services import PARTS, fresh, native, once, stdlib, syslog
from services.ground import POSTGRES, SQLITE
from services.part import Part, Sizes, own
from services.targets import judge
from tables import Table
from terminal import paint  # its folder was added by report

TITLE = "What a service for log records takes"

#: The chart: (title, part, figure, what the names of its rows begin with).
PANELS: list[tuple[str, str, str, str]] = [
    (f"logspool's client into {POSTGRES}, exactly once (records/s)", native.PART.name, "rate", f"{POSTGRES}:"),
    (f"logspool's client into {SQLITE}, exactly once (records/s)", native.PART.name, "rate", f"{SQLITE}:"),
    (f"The price of exactly once, {POSTGRES} (records/s)", once.PART.name, "rate", f"{POSTGRES}, 1 "),
    *(
        (
            f"{clients} processes with SocketHandler, into file and PostgreSQL (records/s)",
            stdlib.PART.name,
            "rate",
            f"{clients} ",
        )
        for clients in Sizes.clients
    ),
    ("Syslog over 4 TCP connections, into a file (lines/s)", syslog.PART.name, "rate", f"{syslog.FILE}, 4 "),
    ("Syslog over 4 TCP connections, into PostgreSQL (lines/s)", syslog.PART.name, "rate", f"{syslog.ROWS}, 4 "),
    ("Until a query finds a record, at half load (p99, ms)", fresh.PART.name, "p99_ms", ""),
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
    """Draw what was measured of the panels."""
    panels = []
    for title, part, figure, begin in PANELS:
        bars = []
        for row in _rows(results, PARTS[part]):
            value = results.median(row, part, figure)
            if row.startswith(begin) and value is not None:
                bars.append(chart.Bar(row.removeprefix(begin).split(": ")[-1].strip(), value, _short(value), own(row)))
        # The best stands on top: where time counts, the shortest.
        bars.sort(key=lambda bar: bar.value or 0, reverse=figure == "rate")
        if bars:
            panels.append(chart.Panel(title, bars))
    chart.write(path, TITLE, where(results), panels)


def where(results: Results) -> str:
    """Return what the figures of a run belong to, in a line."""
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
    # Those that are compared stand together, the best first.
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
