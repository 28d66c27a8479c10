"""A part of the service's comparison: contenders that do the same work, one after the other, in each round."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rounds import Column, Round

if TYPE_CHECKING:
    from services.ground import Ground

#: The names of other programs' rows begin with these, after the words before a colon.
OTHERS = ("raw ", "Python bulk server", "rsyslog", "CPython", "nobody")

#: Seconds that a contender may take. Chosen: ten times the time that the slowest needs.
DEADLINE = 300.0

Item = TypeVar("Item")


@dataclass(frozen=True)
class Sizes:
    """How much work each part does in a round."""

    #: Records of the native client and of the handlers of the standard library.
    records: int = 500_000
    #: Records of senders without Python: with fewer, a round of them is too short to differ from noise.
    many_records: int = 1_000_000
    datagrams: int = 100_000
    clients: tuple[int, ...] = (20, 200)
    processes: tuple[int, ...] = (1, 2, 4)
    connections: tuple[int, ...] = (1, 4)
    #: rsyslog needs 4 s for 100,000 rows.
    syslog_rows: int = 200_000
    pickles: int = 200_000
    probes: int = 200
    stored: int = 5_000_000
    silent: int = 200
    silence_seconds: float = 10.0
    stopped_seconds: float = 5.0
    waiting_bytes: int = 32 << 20
    bombers: int = 1_000
    alone_seconds: float = 5.0
    #: Of the readers: records that are there before, seconds of a measurement, honest questions alone, hostile clients.
    readers_stored: int = 2_000_000
    readers_seconds: float = 10.0
    honest: int = 50
    scans: int = 64
    unread: int = 600
    followers: int = 500


QUICK = Sizes(
    records=20_000,
    many_records=50_000,
    datagrams=2_000,
    clients=(4, 20),
    syslog_rows=2_000,
    pickles=5_000,
    probes=10,
    stored=50_000,
    silent=20,
    silence_seconds=1.0,
    stopped_seconds=1.0,
    waiting_bytes=2 << 20,
    bombers=50,
    alone_seconds=1.0,
    readers_stored=50_000,
    readers_seconds=1.0,
    honest=5,
    scans=32,
    unread=60,
    followers=100,
)


@dataclass(frozen=True)
class Part:
    """One question, the contenders that answer it and the columns of the answer."""

    name: str
    title: str
    #: Does one round.
    measure: Callable[[Ground], Round]
    columns: tuple[Column, ...]
    #: The row that each row is compared with by its first column, if any; None for a row without comparison.
    compared_with: Callable[[str], str | None] = lambda row: None
    #: Rounds at most, for a part that takes long and spreads little.
    most_rounds: int | None = None
    #: The comparison in words, for a reader who sees it for the first time.
    question: str = ""
    #: The work of each contender: (how the name of its row begins or ends, fields and durability).
    work: tuple[tuple[str, str], ...] = ()
    #: Why the part cannot be measured here.
    missing: Callable[[], str | None] = lambda: None


class Wrong(Exception):
    """A contender that failed, or did other work than it was given: its time means nothing."""


def turns(items: Iterable[Item]) -> list[Item]:
    """Return contenders in another order each time, so that no one always follows the same one."""
    every = list(items)
    return random.sample(every, len(every))


def own(row: str) -> bool:
    """Say whether a row is logspool's."""
    return not row.rsplit(": ", 1)[-1].startswith(OTHERS)


def wait(what: str, is_so: Callable[[], bool], *, pause: float = 0.005, seconds: float = DEADLINE) -> None:
    """Look again and again until something is so."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise Wrong(f"{what}: not within {seconds:.0f} s")
        time.sleep(pause)
