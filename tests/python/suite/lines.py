"""Counts numbered lines in log files: missing, doubled, out of order or torn ones."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

# The end of the line that tells of refused records. At the end of a program, standard error tells of those of the last
# second.
REFUSED = b" records dropped: the queue was full"
_REFUSED_AT_THE_END = re.compile(rb"^logspool: .*\(.*?\b(?:queue_full) (\d+)", re.MULTILINE)

# A busy machine may give the collector its turn so late that the queue fills up. Then a sink's line tells of that.
_QUEUE_WARNING = re.compile(rb"^the queue is (?:\d+ % )?full: ")

_NUMBERED = re.compile(rb"^(?P<who>[\w.-]+) (?P<number>\d+) end$")


@dataclass(frozen=True)
class Count:
    """Lines of the form `WHO NUMBER end`, per writer in file order; warnings that the queue fills up; other lines."""

    numbers: dict[str, list[int]]
    other: list[bytes]
    queue_warnings: list[bytes]

    def missing(self, who: str, wanted: Iterable[int]) -> list[int]:
        return sorted(set(wanted) - set(self.numbers.get(who, ())))

    def doubled(self) -> dict[str, list[int]]:
        found = {
            who: sorted(number for number, times in Counter(numbers).items() if times > 1)
            for who, numbers in self.numbers.items()
        }
        return {who: numbers for who, numbers in found.items() if numbers}

    def out_of_order(self) -> dict[str, list[int]]:
        """Return, per writer, the numbers that follow a larger one."""
        found = {}
        for who, numbers in self.numbers.items():
            late = [number for earlier, number in itertools.pairwise(numbers) if number < earlier]
            if late:
                found[who] = late
        return found

    def expect_each_once(self, wanted: Mapping[str, Iterable[int]]) -> None:
        """Fail unless each number of each writer is there once and in order, and there are no other lines."""
        missing = {who: lost[:10] for who, numbers in wanted.items() if (lost := self.missing(who, numbers))}
        assert missing == {}, f"missing: {missing}, other lines: {self.other[:10]}"
        assert self.doubled() == {}, f"doubled: {self.doubled()}"
        assert self.out_of_order() == {}, f"out of order: {self.out_of_order()}"
        assert self.other == [], f"other lines: {self.other[:10]}"


def refusals_told(lines: Iterable[bytes], err: bytes) -> int:
    """Return how many refused records the lines of a sink and the program's standard error tell of."""
    told = sum(int(line.removesuffix(REFUSED)) for line in lines if line.endswith(REFUSED))
    return told + sum(map(int, _REFUSED_AT_THE_END.findall(err)))


def count(*paths: Path) -> Count:
    """Read the files in the given order and count their lines."""
    numbers: dict[str, list[int]] = {}
    other = []
    queue_warnings = []
    for path in paths:
        for line in path.read_bytes().splitlines() if path.exists() else ():
            match = _NUMBERED.match(line)
            if match:
                numbers.setdefault(match["who"].decode(), []).append(int(match["number"]))
            elif _QUEUE_WARNING.match(line):
                queue_warnings.append(line)
            else:
                other.append(line)
    return Count(numbers, other, queue_warnings)
