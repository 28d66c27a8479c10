"""Formats lines for people at a terminal. Python and the collector write the same bytes.

Used by `logspool.StreamHandler` if the handler has no formatter and its stream is a terminal.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from logspool.adoption import _own_classes

_OFF = "\x1b[0m"
_DIM = "\x1b[2m"
_NAME = "\x1b[36m"

#: Pairs of a lowest level and the colour of this level and the levels above, from the highest pair down.
_COLOURS = (
    (logging.CRITICAL, "\x1b[1;31m"),
    (logging.ERROR, "\x1b[31m"),
    (logging.WARNING, "\x1b[33m"),
    (logging.INFO, "\x1b[32m"),
    (logging.DEBUG, "\x1b[34m"),
    (0, _DIM),
)

#: Control characters but tab and line end, as `logspool_record::format::control` defines them, and what is shown.
_ESCAPES = {number: f"\\x{number:02x}" for number in (*range(9), *range(11, 32), *range(127, 160))}
_ESCAPES[ord("\r")] = "\\r"
_ESCAPES |= {number: f"\\u{number:04x}" for number in (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_ALL_ESCAPES = {**_ESCAPES, ord("\n"): "\\n"}

#: Level names are padded to this width, the length of CRITICAL.
_WIDTH = 8


class TerminalFormatter(logging.Formatter):
    """Show the time of day, level, logger and message, followed by exception and stack as in every formatter.

    Control characters of message, exception and stack are escaped, so that no text of a record controls the terminal.

    Args:
        colours: whether level and logger are coloured and the time dimmed.
    """

    default_time_format = "%H:%M:%S"
    default_msec_format = "%s.%03d"

    def __init__(self, colours: bool) -> None:
        dim, name, off = (_DIM, _NAME, _OFF) if colours else ("", "", "")
        super().__init__(f"{dim}%(asctime)s{off} %(levelname)s {name}%(name)s{off} %(escaped)s")
        self._colours = colours

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the first line, without changing the record."""
        level = record.levelname
        if record.levelno in logging._levelToName:
            level = self._shown(record.levelno, level)
        escaped = record.message.translate(_ALL_ESCAPES)
        return str(self._fmt % {**record.__dict__, "levelname": level, "escaped": escaped})  # type: ignore[operator]

    def format(self, record: logging.LogRecord) -> str:
        """Return the whole text of a record."""
        text = super().format(record)
        if not (record.exc_text or record.stack_info):
            return text
        first = len(self.formatMessage(record))
        return text[:first] + text[first:].translate(_ESCAPES)

    def _shown(self, number: int, name: str) -> str:
        text = name.ljust(_WIDTH)
        if not self._colours:
            return text
        colour = next((colour for lowest, colour in _COLOURS if number >= lowest), _DIM)
        return f"{colour}{text}{_OFF}"

    def _native_formatting(self, formatting: Any, utc: bool) -> Any:
        """Describe this formatter to native code; called by `adoption._formatters`."""
        from logspool.adoption.known._styled import Derived, Styled

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
            Styled([("escaped", Derived("escaped message"))]),
        )


_own_classes.own_formatters.append(TerminalFormatter)

_PLAIN, _COLOURED = TerminalFormatter(False), TerminalFormatter(True)


def formatter_for(stream: Any) -> TerminalFormatter | None:
    """Return the formatter for a stream, or None if the stream is no terminal.

    If `NO_COLOR` or `TERM=dumb` is set in the environment, the formatter uses no colours.
    """
    try:
        if not stream.isatty():
            return None
    except (AttributeError, OSError, ValueError):
        return None
    return _PLAIN if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else _COLOURED
