"""A target: one promise about a figure of a run, alone or as a ratio to another figure of the same run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from results import Results

NOT_CHOSEN = "not chosen in this run"

#: A row, a part of the run, and the name of a figure.
Cell = tuple[str, str, str]


@dataclass(frozen=True)
class Verdict:
    """The result of a target; `met` is None where it could not be measured, and `value` then says why."""

    what: str
    bound: str
    value: float | str | None
    met: bool | None


@dataclass(frozen=True)
class Target:
    """One figure, alone or as a ratio to another of the same run, and its bound."""

    what: str
    figure: Cell
    over: Cell | None = None
    at_most: float | None = None
    at_least: float | None = None
    unit: str = "x"
    #: Takes the figure from those of the rounds; for a count the worst, as a median would hide one bad round.
    take: Callable[[list[float]], float] = statistics.median

    @property
    def bound(self) -> str:
        """Return the bound as it is printed."""
        sign, bound = ("<=", self.at_most) if self.at_most is not None else (">=", self.at_least)
        return f"{sign} {bound:g} {self.unit}".rstrip()

    def _value(self, results: Results) -> float | None:
        if self.over is not None and self.take is statistics.median:
            return results.ratio(self.figure, self.over)
        taken = [results.values(*cell) for cell in (self.figure, self.over) if cell is not None]
        if not all(taken):
            return None
        figure, *others = (self.take(values) for values in taken)
        return figure / others[0] if others else figure

    def judge(self, results: Results) -> Verdict:
        """Compare a run with the target."""
        value = self._value(results)
        if value is not None:
            met = value <= self.at_most if self.at_most is not None else value >= (self.at_least or 0)
            return Verdict(self.what, self.bound, value, met)
        cells = [cell[:2] for cell in (self.figure, self.over) if cell is not None]
        return unmeasured(results, self.what, self.bound, cells)


def beside(what: str, row: str, other: str, part: str, figure: str, **bound: Any) -> Target:
    """Return a target for the ratio of one figure of two rows."""
    return Target(what, (row, part, figure), over=(other, part, figure), **bound)


def count(what: str, row: str, part: str, figure: str, at_most: float = 0) -> Target:
    """Return a target for a count, which holds in a run of any length."""
    return Target(what, (row, part, figure), at_most=at_most, unit="", take=max)


def judged(results: Results, targets: Iterable[Target]) -> list[Verdict]:
    """Compare a run with each target."""
    return [target.judge(results) for target in targets]


def failures(results: Results, counts: Callable[[str], bool] = lambda cell: True) -> Verdict:
    """Judge whether something failed that `counts`."""
    failed = [f"{cell}: {reason.splitlines()[0]}" for cell, reason in results.failed.items() if counts(cell)]
    return Verdict("measurements that failed", "none", "; ".join(failed) or "none", not failed)


def unmeasured(results: Results, what: str, bound: str, cells: Iterable[tuple[str, str]]) -> Verdict:
    """Tell what failed, which misses a target, from what cannot be measured here or was not asked for."""
    cells = list(cells)
    for row, part in cells:
        for name in (f"{row} {part}", part, row):
            if name in results.failed:
                return Verdict(what, bound, results.failed[name], False)
    for row, part in cells:
        for name in (part, row, row.split(".")[0]):
            if name in results.skipped:
                return Verdict(what, bound, results.skipped[name], None)
    return Verdict(what, bound, NOT_CHOSEN, None)
