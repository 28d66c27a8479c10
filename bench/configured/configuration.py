"""A configuration: how a program sets up logging, and the one call that is measured."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from case import CALL, LINE_FORMAT, Session

#: The line of the comparison with an attribute that a filter, an adapter or `extra` sets.
REQUEST_FORMAT = LINE_FORMAT.replace("%(message)s", "[%(request_id)s] %(message)s")
REQUEST_ID = "9f0c2d17"


@dataclass(frozen=True)
class Configuration:
    """One row of the table.

    `open` sets up logging as the program does and returns its logger; `finish` of the session returns after the
    handlers have received every record.
    """

    name: str
    title: str
    open: Callable[[Path], Session]
    call: str = CALL
    needs: tuple[str, ...] = ()
    once: bytes = b"\n"
    """Bytes that the file holds once for each record."""
    deferred: bool = False
    """Whether logspool is installed with `defer_formatting`."""
    moving: tuple[re.Pattern[bytes], ...] = ()
    """Matches that differ between two processes, besides the patterns that `masked.py` knows."""
    open_own: Callable[[Path], Session] | None = None
    """Sets up logspool's own module for a library, where a program uses that instead of `logspool.install()`."""
