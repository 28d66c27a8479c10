"""The logger of finished lines, for `logspool.structlog` and `logspool.loguru`, without native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class LineLogger:
    """A logger whose methods give their text to a handler, as a record."""

    def __init__(self, handler: Any, pass_on: Callable[[Any, int, object], None]) -> None:
        self.handler = handler
        self._pass_on = pass_on

    def put(self, level: int, message: str | bytes, /) -> None:
        """Give a line with this level to the handler."""
        self._pass_on(self.handler, level, message)


def _method(level: int) -> Callable[[LineLogger, str | bytes], None]:
    return lambda self, message, /: self.put(level, message)


_LEVELS = {
    10: ("debug",),
    20: ("msg", "log", "info"),
    30: ("warn", "warning"),
    40: ("err", "error", "failure", "exception"),
    50: ("fatal", "critical"),
}

for _level, _names in _LEVELS.items():
    for _name in _names:
        setattr(LineLogger, _name, _method(_level))
