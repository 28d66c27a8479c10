"""The results of a run: one list of rounds for each case and mode, and the medians over them."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import apart


@dataclass
class Results:
    """Everything measured in one run, and why the rest was not."""

    facts: dict[str, Any]
    cells: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    process: dict[str, float] = field(default_factory=dict)

    def add(self, case: str, mode: str, number: int, result: dict[str, Any]) -> None:
        """Keep one measurement of the round of this number."""
        self.cells.setdefault(case, {}).setdefault(mode, []).append({"round": number, **result})

    def add_round(self, part: str, number: int, rows: dict[str, dict[str, float] | str]) -> None:
        """Keep a round of a part: the figures of each row, or what went wrong."""
        for row, figures in rows.items():
            if isinstance(figures, str):
                self.failed[f"{row} {part}"] = figures
            else:
                self.add(row, part, number, figures)

    def take(self, case: str, mode: str, number: int, measure: Callable[[], dict[str, Any]]) -> None:
        """Measure a cell, and keep its figures or what went wrong; a cell that failed is not measured again."""
        cell = f"{case} {mode}"
        if cell in self.failed:
            return
        try:
            self.add(case, mode, number, measure())
        except apart.Failed as error:
            self.failed[cell] = str(error)

    def rounds(self, case: str, mode: str) -> list[dict[str, Any]]:
        """Return the measurements of a cell, in the order they ran."""
        return self.cells.get(case, {}).get(mode, [])

    def values(self, case: str, mode: str, name: str) -> list[float]:
        """Return one figure of each measurement of a cell."""
        return [result[name] for result in self.rounds(case, mode) if name in result]

    def median(self, case: str, mode: str, name: str) -> float | None:
        """Return the median of one figure, None where it was not measured."""
        values = self.values(case, mode, name)
        return statistics.median(values) if values else None

    def spread(self, case: str, mode: str, name: str) -> float | None:
        """Return half the distance between the extremes, as a part of the median."""
        values = self.values(case, mode, name)
        middle = statistics.median(values) if values else 0
        return (max(values) - min(values)) / 2 / middle if middle else None

    def ratio(self, over: tuple[str, str, str], under: tuple[str, str, str]) -> float | None:
        """Return the median of the ratios within each round, pair by pair where both were measured as often."""
        ratios: list[float] = []
        for upper, lower in self._common_rounds(over, under):
            if len(upper) != len(lower):
                upper, lower = [statistics.median(upper)], [statistics.median(lower)]
            ratios += [figure / other for figure, other in zip(upper, lower) if other]
        return statistics.median(ratios) if ratios else None

    def _common_rounds(
        self, first: tuple[str, str, str], second: tuple[str, str, str]
    ) -> Iterator[tuple[list[float], list[float]]]:
        """Yield the measurements of two figures in each round that has both."""
        figures, others = self._by_round(*first), self._by_round(*second)
        for number, values in figures.items():
            if number in others:
                yield values, others[number]

    def _by_round(self, case: str, mode: str, name: str) -> dict[int, list[float]]:
        """Return the measurements of one figure in each round; a kept run without numbers has one for each round."""
        measured: dict[int, list[float]] = {}
        for position, result in enumerate(self.rounds(case, mode)):
            if name in result:
                measured.setdefault(result.get("round", position), []).append(result[name])
        return measured

    def worst(self, case: str, mode: str, name: str) -> Any:
        """Return the worst answer of all rounds: the largest count, or the first word that is not `yes`."""
        values = self.values(case, mode, name)
        if not values:
            return None
        if isinstance(values[0], str):
            return next((value for value in values if value != "yes"), "yes")
        return max(values)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the file of raw results."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Results:
        """Read back what `to_json` gave."""
        return cls(**data)
