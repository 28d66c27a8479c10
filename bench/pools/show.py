"""Show a run of the pool's comparison: tables for a terminal, a summary in Markdown, a chart for each Python."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import chart
import report
from pools import PARTS
from pools.part import STOCK, WORKERS, Part, own
from pools.targets import judge
from results import Results
from tables import Table
from terminal import paint  # its folder was added by report

#: The rows of the chart: jobs, queued or with their result taken.
CHART = (
    *("Pool.push", "Pool.submit", "as_completed, native", "Pool.run, gather"),
    *("fastthreadpool.submit", STOCK, "as_completed, stdlib", "run_in_executor, gather"),
)


def tables(results: Results) -> list[Table]:
    """Return a table for each part that was measured or could not be."""
    return [_table(results, part) for part in PARTS.values() if _rows(results, part) or part.name in results.skipped]


def print_all(results: Results) -> None:
    """Print everything measured."""
    print(where(results))
    for part, table in zip(_shown(results), tables(results)):
        print(f"\n{paint(table.title, 'bold')}")
        report.print_table(table)
        if part.note:
            print(paint(f"  {part.note}", "dim"))
    for name, reason in results.skipped.items():
        print(paint(f"{name}: {reason}", "yellow"))


def keep(folder: Path, tag: str, results: Results) -> None:
    """Write raw results and chart of one Python into the folder, and the summary of all results there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{tag}.json").write_text(json.dumps(results.to_json(), indent=1))
    again(folder)


def again(folder: Path) -> None:
    """Make charts and summary of a folder from its raw results."""
    parts = ["# Comparison of thread pools", ""]
    parts += ["Medians over the rounds; a quotient is taken inside each round, then its median.", ""]
    for tag in _tags(folder):
        results = _read(folder / f"{tag}.json")
        draw(folder / f"{tag}.svg", results)
        parts += _summary(tag, results)
    (folder / "summary.md").write_text("\n".join(parts))


def update_readme(folder: Path) -> None:
    """Put the picture of a folder into the README: of the Python for which most peers have wheels."""
    tags = _tags(folder)
    tag = "3.12" if "3.12" in tags else tags[0]
    place = folder.relative_to(report.ROOT)
    lines = [where(_read(folder / f"{tag}.json")), "", f"![What a thread pool costs]({place}/{tag}.svg)", ""]
    lines += [f"All rows, interpreters and targets: [{place}/summary.md]({place}/summary.md)."]
    report.put_into_readme("bench-pool", lines)


def draw(path: Path, results: Results) -> None:
    """Draw the cost of a job in one panel of eight rows; the summary has the other figures."""
    bars = []
    for row in CHART:
        value = results.median(row, "jobs", "us")
        reason = results.failed.get(f"{row} jobs") or results.skipped.get(row.split(".")[0], "not measured")
        if value is not None and value <= 0:
            # The loop that is subtracted took longer: too few rounds, or a busy machine.
            value, reason = None, "less than the loop around it"
        bars.append(chart.Bar(row, value, reason[:60] if value is None else f"{value:.3g}", own(row)))
    bars.sort(key=lambda bar: (bar.value is None, bar.value or 0))
    panel = chart.Panel("A job, queued or with its result taken (us, logarithmic)", bars, logarithmic=True)
    chart.write(path, "What a thread pool costs", where(results), [panel])


def where(results: Results) -> str:
    """Return the machine, versions and commit of a run, in a line."""
    facts = results.facts
    rounds = max((len(rounds) for cells in results.cells.values() for rounds in cells.values()), default=0)
    gil = "" if facts["gil"] else " without the GIL"
    return (
        f"{facts['date']}, {facts['processor']}, {facts['cores']} cores, Python {facts['python']}{gil}, "
        f"commit {facts['commit']}, {WORKERS} workers, {rounds} rounds."
    )


def _tags(folder: Path) -> list[str]:
    tags = [path.stem for path in folder.glob("*.json")]
    return sorted(tags, key=lambda tag: [[int(number) for number in tag.rstrip("t").split(".")], tag])


def _read(path: Path) -> Results:
    return Results.from_json(json.loads(path.read_text()))


def _summary(tag: str, results: Results) -> list[str]:
    parts = [f"## Python {tag}", "", where(results), ""]
    parts += [f"{name}: {reason}.  " for name, reason in results.skipped.items()]
    parts += ["", f"![What a thread pool costs]({tag}.svg)", "", "### Targets", ""]
    parts += report.verdict_lines(judge(results))
    for part, table in zip(_shown(results), tables(results)):
        parts += ["", f"### {table.title}", "", *report.markdown(table)]
        parts += ["", part.note] if part.note else []
    return [*parts, "", ""]


def _shown(results: Results) -> list[Part]:
    return [part for part in PARTS.values() if _rows(results, part) or part.name in results.skipped]


def _rows(results: Results, part: Part) -> list[str]:
    measured = [row for row, cells in results.cells.items() if part.name in cells]
    failed = [cell.removesuffix(f" {part.name}") for cell in results.failed if cell.endswith(f" {part.name}")]
    return measured + [row for row in failed if row not in measured]


def _table(results: Results, part: Part) -> Table:
    head = ["contender", *(column.head for column in part.columns), "lowest to highest"]
    head += [f"{part.reference} / this", "lowest to highest"] if part.reference else []
    if part.name in results.skipped:
        return Table(part.title, head, [["not measured", results.skipped[part.name]] + [""] * (len(head) - 2)])
    figure = part.columns[0].figure
    names = _rows(results, part)
    names.sort(key=lambda row: (results.median(row, part.name, figure) is None, results.median(row, part.name, figure)))
    rows = []
    for row in names:
        if f"{row} {part.name}" in results.failed:
            rows.append([row, results.failed[f"{row} {part.name}"]] + [""] * (len(head) - 2))
            continue
        values = results.values(row, part.name, figure)
        places = part.columns[0].places
        cells = [_figure(results, row, part, column.figure, column.places) for column in part.columns]
        cells.append(f"{min(values):,.{places}f} to {max(values):,.{places}f}")
        if part.reference:
            pairs = zip(results.values(part.reference, part.name, figure), values)
            ratios = [reference / value for reference, value in pairs if value]
            cells.append(_short(statistics.median(ratios)) if ratios else "")
            cells.append(f"{_short(min(ratios))} to {_short(max(ratios))}" if ratios else "")
        rows.append([row, *cells])
    marks = frozenset(number for number, row in enumerate(rows) if own(row[0]))
    return Table(part.title, head, rows, marks)


def _figure(results: Results, row: str, part: Part, figure: str, places: int) -> str:
    value = results.median(row, part.name, figure)
    return "" if value is None else f"{value:,.{places}f}"


def _short(ratio: float) -> str:
    return f"{ratio:.3f}" if ratio < 2 else f"{ratio:.1f}"
