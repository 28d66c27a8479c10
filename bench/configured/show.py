"""Shows a run of the configurations: a table, a summary in Markdown, a picture of the caller's ratios."""

import json
import statistics
from pathlib import Path

import chart
import report
from configured import CONFIGURATIONS
from configured.measure import OWN, STOCK, VARIANTS
from configured.targets import best, ratio
from results import Results
from tables import Table
from targets import Verdict

TITLE = "What people configure"
FIGURES = (("caller_ns", "caller's CPU"), ("end_to_end_ns", "end to end"), ("total_cpu_ns", "total CPU"))
NOTE = (
    "Nanoseconds per record, the best of all turns; a ratio is stock logging's figure over logspool's. "
    "The caller's CPU is that of the logging thread, end to end ends when all lines are in the file, "
    "total CPU is that of all threads of the process."
)


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
    return Table(TITLE, [*head, "path"], rows)


def keep(folder: Path, results: Results, names: list[str], verdicts: list[Verdict]) -> None:
    """Write raw results, summary and picture of a run into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "raw.json").write_text(json.dumps(results.to_json(), indent=1))
    (folder / "summary.md").write_text("\n".join(_summary(results, names, verdicts)) + "\n")
    draw(folder / "plot.svg", results, names)


def update_readme(folder: Path, results: Results, names: list[str]) -> None:
    """Put the picture of a run into the README."""
    place = folder.relative_to(report.ROOT)
    median = _median([found for name in names if (found := ratio(results, name, "caller_ns"))])
    lines = [f"{where(results)} The median of {len(names)} configurations is {median} x.", ""]
    lines += [f"![{TITLE}]({place}/plot.svg)", ""]
    lines += [f"All rows, until in the file and total CPU, and targets: [{place}/summary.md]({place}/summary.md)."]
    report.put_into_readme("bench-configurations", lines)


def draw(path: Path, results: Results, names: list[str]) -> None:
    """Draw the ratio of the caller's CPU of each row."""
    bars = []
    for name in names:
        value, missing = ratio(results, name, "caller_ns"), _missing(results, name)
        words = (missing or f"{value or 0:.3g}").splitlines()[0][:60]
        bars.append(
            chart.Bar(CONFIGURATIONS[name].title, None if missing else value, words, bool(value and value >= 1))
        )
    bars.sort(key=lambda bar: (bar.value is None, -(bar.value or 0)))
    panel = chart.Panel("The caller's CPU per record: stock logging / logspool (logarithmic)", bars, logarithmic=True)
    chart.write(path, TITLE, where(results), [panel])


def where(results: Results) -> str:
    """Return the facts of a run in one line."""
    facts = results.facts
    return (
        f"{facts['date']}, {facts['processor']}, {facts['cores']} cores, Python {facts['python']}, "
        f"commit {facts['commit']}, {facts['records']:,} records, turns: {facts['turns']}."
    )


def details(results: Results) -> list[str]:
    """Return what went wrong in each failed row, and why calls left the native path."""
    lines = []
    for name, words in results.failed.items():
        lines += [f"{name} failed:", *(f"    {line}" for line in words.splitlines())]
    for name, variants in results.cells.items():
        for reason in sorted({reason for found in variants.get(OWN, []) for reason in found["reasons"].values()}):
            lines.append(f"{name}: {reason}")
    return lines


def _summary(results: Results, names: list[str], verdicts: list[Verdict]) -> list[str]:
    parts = [f"# {TITLE}", "", where(results), "", NOTE, "", "![The caller's ratios](plot.svg)", ""]
    parts += [*report.markdown(table(results, names)), "", "## Targets", ""]
    parts += report.verdict_lines(verdicts)
    found = details(results)
    return [*parts, "", "## Paths and failures", "", "```", *found, "```"] if found else parts


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
