"""The output of a run: tables for a terminal and in Markdown, verdicts, and the parts of the README between marks."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from targets import Verdict

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from terminal import paint  # noqa: E402


@dataclass(frozen=True)
class Table:
    """A title, a head and rows of words; `marks` names the rows that are our own."""

    title: str
    head: list[str]
    rows: list[list[str]]
    marks: frozenset[int] = frozenset()


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


def verdict_lines(verdicts: list[Verdict]) -> list[str]:
    """Return the targets of a run as a table in Markdown."""
    lines = ["| target | bound | measured | |", "|---|---|---|---|"]
    for verdict in verdicts:
        word = {True: "met", False: "**missed**", None: "not measured"}[verdict.met]
        lines.append(f"| {verdict.what} | {verdict.bound} | {_value(verdict)} | {word} |")
    return lines


def put_into_readme(mark: str, lines: list[str]) -> None:
    """Replace the text between two marks of the README, where it has them."""
    path = ROOT / "README.md"
    begin, end = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    block = "\n".join([begin, "", *lines, "", end])
    path.write_text(pattern.sub(lambda _: block, path.read_text()))


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


def markdown(table: Table) -> list[str]:
    """Return the lines of one table."""
    lines = [f"| {' | '.join(table.head)} |", "|---|" + "--:|" * (len(table.head) - 1)]
    return lines + [f"| {' | '.join(row)} |" for row in table.rows]


def _aligned(row: list[str], widths: list[int]) -> list[str]:
    return [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]


def _value(verdict: Verdict) -> str:
    if verdict.value is None:
        return "-"
    if isinstance(verdict.value, str):
        return verdict.value
    return f"{verdict.value:,.0f}" if verdict.value >= 100 else f"{verdict.value:.3g}"
