"""Show a run: tables for a terminal, a summary in Markdown, a chart, and the part of the README between its marks.

`python bench/report.py bench/runs/FOLDER` makes them again from the raw results.
"""

import json
import re
import sys
from pathlib import Path

import chart
from case import LATENCY, THREADS, THROUGHPUT
from cases import CASES
from results import Results
from tables import Table, all_tables
from targets import Verdict, judge

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from terminal import paint

ROOT = Path(__file__).resolve().parent.parent
README_CASES = ["logspool", "logspool-handler", "stdlib-file", "stdlib-queue"]
README_CASES += ["backgroundlog", "picologging", "loguru", "logust", "spydlog"]
#: The rows of the chart.
PLOT_CASES = [name for name in README_CASES if name != "logspool-handler"]


def print_tables(results: Results) -> None:
    """Print everything measured, aligned."""
    for table in all_tables(results):
        print(f"\n{paint(table.title, 'bold')}")
        print_table(table)
    for case in CASES.values():
        if case.note:
            print(paint(f"{case.title}: {case.note}", "dim"))


def print_verdicts(verdicts: list[Verdict]) -> None:
    """Print each target with its result."""
    print(f"\n{paint('Targets', 'bold')}")
    for verdict in verdicts:
        word = {
            True: paint("met         ", "green"),
            False: paint("MISSED      ", "bold", "red"),
            None: paint("not measured", "yellow"),
        }[verdict.met]
        print(f"  {word}  {verdict.what}: {_value(verdict)} ({verdict.bound})")


def write(folder: Path, results: Results) -> None:
    """Write raw results, summary and chart of a run into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "raw.json").write_text(json.dumps(results.to_json(), indent=1))
    (folder / "summary.md").write_text(summary(results))
    draw(folder / "plot.svg", results)


def summary(results: Results) -> str:
    """Return the whole run as Markdown."""
    parts = ["# Comparison of loggers", "", _where(results), ""]
    parts += ["Medians over the rounds, with half the distance between the extremes.", ""]
    parts += ["## Targets", "", *verdict_lines(judge(results))]
    for table in all_tables(results):
        parts += ["", f"## {table.title}", "", *markdown(table)]
    notes = [f"- {case.title}: {case.note}." for case in CASES.values() if case.note]
    return "\n".join([*parts, "", "## Notes", "", *notes]) + "\n"


def verdict_lines(verdicts: list[Verdict]) -> list[str]:
    """Return the targets of a run as a table in Markdown."""
    lines = ["| target | bound | measured | |", "|---|---|---|---|"]
    for verdict in verdicts:
        word = {True: "met", False: "**missed**", None: "not measured"}[verdict.met]
        lines.append(f"| {verdict.what} | {verdict.bound} | {_value(verdict)} | {word} |")
    return lines


def draw(path: Path, results: Results) -> None:
    """Draw the caller's CPU per record in one panel of eight rows; the summary has the other figures."""
    bars = []
    for name in PLOT_CASES:
        value, lost = results.median(name, THROUGHPUT, "caller_cpu_ns"), results.worst(name, THROUGHPUT, "lost")
        words = "" if value is None else f"{value:,.0f}" + (f" ({lost:,} lost)" if lost else "")
        reason = results.skipped.get(name) or results.failed.get(f"{name} {THROUGHPUT}", "not measured")
        ours = name.startswith("logspool")
        bars.append(chart.Bar(CASES[name].title.strip("*"), value, words or reason[:60], ours))
    bars.sort(key=lambda bar: (bar.value is None, bar.value or 0))
    panel = chart.Panel("The caller's CPU per record (ns, logarithmic)", bars, logarithmic=True)
    chart.write(path, "What a log record costs", _where(results), [panel])


def update_readme(folder: Path, results: Results) -> None:
    """Put the main figures of a run between the marks of the README."""
    place = folder.relative_to(ROOT)
    head = ["case", "caller's CPU", "p99.9 of a call", "until in the file", "4 threads", "lines lost", "caller's line"]
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
    block = [_where(results), "", *lines, "", f"![What a log record costs]({place}/plot.svg)", ""]
    block += [f"All rows, peers and targets: [{place}/summary.md]({place}/summary.md)."]
    put_into_readme("bench", block)


def put_into_readme(mark: str, lines: list[str]) -> None:
    """Replace the text between two marks of the README, where it has them."""
    path = ROOT / "README.md"
    begin, end = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    block = "\n".join([begin, "", *lines, "", end])
    path.write_text(pattern.sub(lambda _: block, path.read_text()))


def _where(results: Results) -> str:
    facts = results.facts
    cells = (cell for modes in results.cells.values() for cell in modes.values())
    rounds = 1 + max((result["round"] for cell in cells for result in cell), default=-1)
    return (
        f"{facts['date']}, {facts['processor']}, {facts['cores']} cores, Python {facts['python']}, "
        f"commit {facts['commit']}, {rounds} rounds."
    )


def _value(verdict: Verdict) -> str:
    if verdict.value is None:
        return "-"
    if isinstance(verdict.value, str):
        return verdict.value
    return f"{verdict.value:,.0f}" if verdict.value >= 100 else f"{verdict.value:.3g}"


def print_table(table: Table) -> None:
    """Print one table, aligned."""
    # A row of words instead of figures runs over the columns.
    long = {number for number, row in enumerate(table.rows) if len(row) > 2 and not any(row[2:])}
    sized = [table.head, *(row for number, row in enumerate(table.rows) if number not in long)]
    widths = [max(len(row[column]) for row in sized) for column in range(len(table.head))]
    widths[0] = max(len(row[0].strip("*")) for row in [table.head, *table.rows])
    print("  " + paint("  ".join(_aligned(table.head, widths)), "dim"))
    for number, row in enumerate(table.rows):
        plain = [row[0].strip("*"), *row[1:]]
        cells = [plain[0].ljust(widths[0]), plain[1]] if number in long else _aligned(plain, widths)
        line = "  " + "  ".join(cells)
        print(paint(line, "bold", "green") if number in table.marks and number not in long else line)


def _aligned(row: list[str], widths: list[int]) -> list[str]:
    return [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]


def markdown(table: Table) -> list[str]:
    """Return the lines of one table."""
    lines = [f"| {' | '.join(table.head)} |", "|---|" + "--:|" * (len(table.head) - 1)]
    return lines + [f"| {' | '.join(row)} |" for row in table.rows]


def main() -> None:
    """Make summary, chart and the README's part again."""
    folder = Path(sys.argv[1]).resolve()
    results = Results.from_json(json.loads((folder / "raw.json").read_text()))
    write(folder, results)
    if folder.parent == ROOT / "bench" / "runs":
        update_readme(folder, results)
    print_tables(results)
    print_verdicts(judge(results))


if __name__ == "__main__":
    main()
