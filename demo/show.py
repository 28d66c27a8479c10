"""The output of the demo: one table on the terminal and one picture."""

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import chart
from files import Comparison
from terminal import paint


@dataclass(frozen=True)
class Measured:
    """One run of the service under load."""

    requests: int
    wall_seconds: float
    cpu_seconds: float
    request_seconds: list[float]
    call_ns: list[int]


@dataclass(frozen=True)
class Row:
    """One figure of both halves; `better` says which direction is good, `plot` in which panel it is drawn."""

    title: str
    unit: str
    values: tuple[float, float | None]
    better: str = "less"
    digits: int = 0


def rows(stock: list[Measured], ours: list[Measured]) -> list[Row]:
    """Return the figures, medians over the rounds."""

    def row(title: str, unit: str, pick: object, better: str = "less", digits: int = 0) -> Row:
        sides = [[pick(measured) for measured in side] for side in (stock, ours)]  # type: ignore[operator]
        second = statistics.median(sides[1]) if sides[1] else None
        return Row(title, unit, (statistics.median(sides[0]), second), better, digits)

    return [
        row("requests a second", "", lambda run: run.requests / run.wall_seconds, "more"),
        row("CPU of the service per request", "us", lambda run: run.cpu_seconds / run.requests * 1e6),
        row("a request, p50", "ms", lambda run: point(run.request_seconds, 0.5) * 1e3, digits=2),
        row("a request, p99", "ms", lambda run: point(run.request_seconds, 0.99) * 1e3, digits=2),
        row("a logging call, p50", "us", lambda run: point(run.call_ns, 0.5) / 1e3, digits=2),
        row("a logging call, p99", "us", lambda run: point(run.call_ns, 0.99) / 1e3, digits=2),
        row("a logging call, p99.9", "us", lambda run: point(run.call_ns, 0.999) / 1e3, digits=2),
    ]


def point(values: list[float] | list[int], part: float) -> float:
    """Return the quantile `part` of the values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def print_table(figures: list[Row], comparisons: list[Comparison], rounds: int) -> None:
    """Print both halves side by side."""
    print(f"\n  {paint('The same service, the same load', 'bold')} (medians, rounds: {rounds})\n")
    print(paint(f"  {'':36}{'as it is':>14}{'with logspool':>16}{'':>4}change", "dim"))
    for row in figures:
        print(f"  {row.title:36}{_number(row, 0):>14}{_number(row, 1):>16}    {_change(row)}")
    print()
    for comparison in comparisons:
        title, (first, second) = f"lines in {comparison.name}", comparison.lines
        print(f"  {title:36}{first:>14,}{second:>16,}    {_same(comparison)}")
    if not comparisons:
        print(f"  {'lines':36}{'':>14}{paint('skipped', 'yellow'):>16}")


def draw(path: Path, figures: list[Row], where: str) -> None:
    """Draw the figures as pairs of bars."""
    panels = []
    for row in figures:
        bars = [chart.Bar("as it is", row.values[0], _number(row, 0))]
        bars.append(chart.Bar("with logspool", row.values[1], _number(row, 1), ours=True))
        panels.append(chart.Panel(row.title, bars))
    chart.write(path, "A web service under load, without and with logspool", where, panels)


def _number(row: Row, side: int) -> str:
    value = row.values[side]
    return "skipped" if value is None else f"{value:,.{row.digits}f} {row.unit}".rstrip()


def _change(row: Row) -> str:
    first, second = row.values
    if second is None or not first or not second:
        return paint("skipped: logspool is not installed", "yellow")
    gain = first / second if row.better == "less" else second / first
    words = f"{gain:.1f}x better" if gain >= 1.5 else f"{(second / first - 1) * 100:+.0f} %"
    return paint(words, "green") if gain > 1.02 else paint(words, "red") if gain < 0.98 else paint(words, "dim")


def _same(comparison: Comparison) -> str:
    if comparison.equal:
        return paint("all there, same shape and order", "green")
    return paint(
        f"{comparison.missing} missing, {comparison.added} added, {comparison.reordered} reordered", "bold", "red"
    )
