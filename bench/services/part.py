"""What the parts of the service's comparison share: the sizes of a round, and how they wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

#: The names of other programs' rows begin with these, after the words before a colon.
OTHERS = ("raw ", "Python bulk server", "rsyslog", "CPython", "nobody")

#: Seconds that a contender may take. Chosen: ten times the time that the slowest needs.
DEADLINE = 300.0


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


class Wrong(Exception):
    """A contender that failed, or did other work than it was given: its time means nothing."""


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
