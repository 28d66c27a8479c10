"""A case of the comparison: how to open a logger, the one call that is measured, how its lines look."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The same work for everybody: this line, made from this template and three arguments.
LINE_FORMAT = "%(asctime)s %(levelname)s %(name)s:%(lineno)d %(message)s"
TEMPLATE = "user %s did %d in %.3f ms"
CALL = 'log.info("user %s did %d in %.3f ms", name, i, ms)'
DISABLED_CALL = 'log.debug("user %s did %d in %.3f ms", name, i, ms)'
PREFORMATTED_CALL = 'log.info("user %s did %d in %.3f ms" % (name, i, ms))'
LOGGER_NAME = "bench"

_MESSAGE = r"user (?P<thread>\w+) did (?P<index>\d+) in 0\.250 ms"
STOCK_LAYOUT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO bench:(?P<line>\d+) " + _MESSAGE)
# A layout of its own still has to hold the message, and the caller's line where the peer can print it.
OWN_LAYOUT_WITH_LINE = re.compile(r".*?INFO\s+\S*:(?P<line>\d+) " + _MESSAGE)
OWN_LAYOUT = re.compile(r".*?" + _MESSAGE)
JSON_LAYOUT = re.compile(r"\{(?=.*?\"(?:lineno|line)\": ?(?P<line>\d+)).*?" + _MESSAGE + r".*\}")

THROUGHPUT, LATENCY, PACED, THREADS, BURST, DISABLED = "throughput", "latency", "paced", "threads", "burst", "disabled"


@dataclass
class Session:
    """An open logger on one file.

    `finish` returns when every line that will ever come is in the closed file; where a peer has no way to wait for
    that, it returns the moment of the last line (`time.perf_counter_ns`) that it saw.
    """

    log: Any
    finish: Callable[[], int | None]
    refused: Callable[[], int] = lambda: 0


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    title: str
    group: str
    open: Callable[[Path], Session]
    call: str = CALL
    needs: tuple[str, ...] = ()
    layout: re.Pattern[str] = STOCK_LAYOUT
    modes: tuple[str, ...] = (THROUGHPUT, LATENCY, PACED)
    slow: bool = False
    note: str = ""
    limits: tuple[tuple[str, float], ...] = ()
    """Seconds after which a mode of this case is ended and reported as hanging, where it is known to hang."""


def when_file_rests(path: Path, seconds: float = 1.0) -> int:
    """Wait until a file has not grown for `seconds` and return when it was last written, by its own time stamp."""
    size, grown = -1, time.monotonic()
    while time.monotonic() - grown < seconds:
        now = path.stat().st_size
        if now != size:
            size, grown = now, time.monotonic()
        time.sleep(0.02)
    return time.perf_counter_ns() - (time.time_ns() - path.stat().st_mtime_ns)
