"""Lines for people at a terminal, the same bytes whether Python or the collector writes them.

Used by `logspool.StreamHandler` where it has no formatter of its own and its stream is a terminal.
"""

from __future__ import annotations

import logging
import os
from typing import Any

_OFF = "\x1b[0m"
_DIM = "\x1b[2m"
_NAME = "\x1b[36m"

#: Lowest level and its colour, from above.
_COLOURS = (
    (logging.CRITICAL, "\x1b[1;31m"),
    (logging.ERROR, "\x1b[31m"),
    (logging.WARNING, "\x1b[33m"),
    (logging.INFO, "\x1b[32m"),
    (logging.DEBUG, "\x1b[34m"),
    (0, _DIM),
)

#: Level names are padded to this width, the length of CRITICAL.
_WIDTH = 8


class TerminalFormatter(logging.Formatter):
    """Show time of day, level, logger and message; then exception and stack as every formatter does.

    Args:
        colours: whether level and logger are coloured and the time dimmed.
    """

    default_time_format = "%H:%M:%S"
    default_msec_format = "%s.%03d"

    def __init__(self, colours: bool) -> None:
        dim, name, off = (_DIM, _NAME, _OFF) if colours else ("", "", "")
        super().__init__(f"{dim}%(asctime)s{off} %(levelname)s {name}%(name)s{off} %(message)s")
        self._colours = colours

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the first line, without touching the record."""
        level = record.levelname
        if record.levelno in logging._levelToName:
            level = self._shown(record.levelno, level)
        return str(self._fmt % {**record.__dict__, "levelname": level})  # type: ignore[operator]

    def _shown(self, number: int, name: str) -> str:
        text = name.ljust(_WIDTH)
        if not self._colours:
            return text
        colour = next((colour for lowest, colour in _COLOURS if number >= lowest), _DIM)
        return f"{colour}{text}{_OFF}"

    def _native_formatting(self, formatting: Any, utc: bool) -> Any:
        """Describe this formatter to native code; called by `_adopt`."""
        names = [
            (number, self._shown(number, name))
            for number, name in list(logging._levelToName.items())
            if type(number) is int and 0 <= number <= 0xFFFF and type(name) is str
        ]
        return formatting(
            "%",
            self._fmt,
            self.datefmt,
            self.default_time_format,
            self.default_msec_format,
            utc,
            [],
            False,
            sorted(names),
        )


_PLAIN, _COLOURED = TerminalFormatter(False), TerminalFormatter(True)


def formatter_for(stream: Any) -> TerminalFormatter | None:
    """Return the formatter for a stream, or None if the stream is no terminal.

    `NO_COLOR` and `TERM=dumb` leave the colours out.
    """
    try:
        if not stream.isatty():
            return None
    except (AttributeError, OSError, ValueError):
        return None
    return _PLAIN if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else _COLOURED
