"""The parts of a comparison: contenders that do the same work, in turns, and the tables that show them."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from report import Table
from results import Results

#: The result of one round: for each row its figures by name, or its error.
Round = dict[str, "dict[str, float] | str"]

Item = TypeVar("Item")


@dataclass(frozen=True)
class Column:
    """One figure of a part's table."""

    figure: str
    head: str
    places: int = 2


@dataclass(frozen=True)
class Part:
    """One question, the contenders that answer it and the columns of the answer."""

    name: str
    title: str
    columns: tuple[Column, ...]
    #: Does one round, or yields round after round; then closing it ends the contenders' threads.
    measure: Callable[[Any], Any] = lambda _: {}
    #: The row whose first figure is divided by that of each row: for figures of which less is better.
    reference: str | None = None
    #: The row by whose first figure that of a row is divided; None for a row without comparison.
    compared_with: Callable[[str], str | None] = lambda row: None
    #: Rounds at most, for a part that takes long and spreads little.
    most_rounds: int | None = None
    #: The comparison in words, for a reader who sees it for the first time.
    question: str = ""
    #: The work of each contender: (how the name of its row begins or ends, fields and durability).
    work: tuple[tuple[str, str], ...] = ()
    #: Why the part cannot be measured here.
    missing: Callable[[], str | None] = lambda: None

    def ratios(self, results: Results, row: str) -> list[float]:
        """Return the ratios of the rounds of a row to those of the row that it is compared with."""
        figure = self.columns[0].figure
        other = self.reference or self.compared_with(row)
        values = results.values(row, self.name, figure)
        others = results.values(other, self.name, figure) if other else []
        pairs = zip(others, values) if self.reference else zip(values, others)
        return [over / under for over, under in pairs if under]

    def notes(self) -> list[str]:
        """Return the sentences below the table."""
        return [*([self.question] if self.question else []), *(f"{row}: {words}." for row, words in self.work)]

    def table(self, results: Results, own: Callable[[str], bool]) -> Table | None:
        """Return the table, None where nothing was measured, failed or was impossible. `own` names logspool's rows."""
        measured = [row for row, cells in results.cells.items() if self.name in cells]
        end = f" {self.name}"
        failed = {cell.removesuffix(end): why for cell, why in results.failed.items() if cell.endswith(end)}
        reason = results.skipped.get(self.name) or results.failed.get(self.name)
        if not (measured or failed or reason):
            return None
        compares = any(self.reference or self.compared_with(row) for row in measured)
        head = ["contender", *(column.head for column in self.columns), "lowest to highest"]
        head += [f"{self.reference} / this" if self.reference else "of that compared with"] if compares else []
        head += ["lowest to highest"] if compares else []
        if compares:
            measured.sort(key=lambda row: self._place(results, row))
        rows = [self._row(results, row, compares) for row in measured]
        empty = [""] * (len(head) - 2)
        rows += [[row, why.splitlines()[0], *empty] for row, why in failed.items() if row not in measured]
        rows += [["broken off" if measured else "not measured", reason, *empty]] if reason else []
        return Table(self.title, head, rows, frozenset(n for n, row in enumerate(rows) if own(row[0])))

    def _place(self, results: Results, row: str) -> tuple[str, float]:
        """Rows that are compared with each other are neighbours, the best first."""
        value = results.median(row, self.name, self.columns[0].figure) or 0
        return str(self.reference or self.compared_with(row)), value if self.reference else -value

    def _row(self, results: Results, row: str, compares: bool) -> list[str]:
        cells = [row]
        for column in self.columns:
            value = results.median(row, self.name, column.figure)
            cells.append("" if value is None else f"{value:,.{column.places}f}")
        values, places = results.values(row, self.name, self.columns[0].figure), self.columns[0].places
        cells.append(f"{min(values):,.{places}f} to {max(values):,.{places}f}" if values else "")
        ratios = self.ratios(results, row)
        if ratios:
            cells += [_short(statistics.median(ratios)), f"{_short(min(ratios))} to {_short(max(ratios))}"]
        elif compares:
            cells += ["", ""]
        return cells


def percentile(values: list[float], part: float) -> float:
    """Return a point of a distribution."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def turns(items: Iterable[Item]) -> list[Item]:
    """Return contenders in another order each time, so that no one always follows the same one."""
    every = list(items)
    return random.sample(every, len(every))


def _short(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"
