"""Shared by the comparisons of pools and of services: the results of a round, and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass

#: The result of one round: for each row its figures by name, or its error.
Round = dict[str, "dict[str, float] | str"]


@dataclass(frozen=True)
class Column:
    """One figure of a part's table."""

    figure: str
    head: str
    places: int = 2


def percentile(values: list[float], part: float) -> float:
    """Return a point of a distribution."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
