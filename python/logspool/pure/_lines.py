"""The logger of finished lines, for `logspool.structlog` and `logspool.loguru`, without native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _method(level: int) -> Callable[[Any, str | bytes], None]:
    """Make the method of a level."""

    def write(self: Any, message: str | bytes, /) -> None:
        self.put(level, message)

    return write


class LineLogger:
    """A logger whose methods give their text to a handler, as a record."""

    def __init__(self, handler: Any, pass_on: Callable[[Any, int, object], None]) -> None:
        self.handler = handler
        self._pass_on = pass_on

    def put(self, level: int, message: str | bytes, /) -> None:
        """Give a line with this level to the handler."""
        self._pass_on(self.handler, level, message)

    debug = _method(10)
    msg = log = info = _method(20)
    warn = warning = _method(30)
    err = error = failure = exception = _method(40)
    fatal = critical = _method(50)
