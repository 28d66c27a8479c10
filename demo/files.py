"""Whether two runs of the service wrote the same lines.

Times, durations, ports and process numbers differ between any two runs and are replaced; all else, the caller's
line included, has to be equal, and the lines of one order have to be in the same order.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

FILES = ("app.log", "access.log", "console.log")

_CHANGING = [
    (re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"), "TIME"),
    (re.compile(r"\d+\.\d+ ms"), "DURATION"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"process \[\d+\]"), "PROCESS"),
]
_ORDER = re.compile(r"order[s/ ]+(\d+)")


@dataclass(frozen=True)
class Comparison:
    """One file of both runs."""

    name: str
    lines: tuple[int, int]
    missing: int
    added: int
    reordered: int

    @property
    def equal(self) -> bool:
        """Say whether a reader could not tell the runs apart."""
        return not (self.missing or self.added or self.reordered)


def normalised(path: Path) -> list[str]:
    """Return the lines of a file without what differs between any two runs."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for pattern, word in _CHANGING:
        lines = [pattern.sub(word, line) for line in lines]
    return lines


def compare(first: Path, second: Path, expected_orders: range) -> list[Comparison]:
    """Compare the files of two runs; a line that no run has counts as missing from the second."""
    return [_compare(name, normalised(first / name), normalised(second / name), expected_orders) for name in FILES]


def _compare(name: str, first: list[str], second: list[str], orders: range) -> Comparison:
    missing = sum((Counter(first) - Counter(second)).values())
    added = sum((Counter(second) - Counter(first)).values())
    before, after = _by_order(first), _by_order(second)
    if name != "console.log":
        missing += sum(1 for number in orders if number not in before and number not in after)
    reordered = sum(1 for number, lines in before.items() if after.get(number, lines) != lines)
    return Comparison(name, (len(first), len(second)), missing, added, reordered)


def _by_order(lines: list[str]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for line in lines:
        match = _ORDER.search(line)
        if match:
            found[int(match[1])].append(line)
    return found
