"""loguru through logspool's queue: a sink that queues each line.

    from loguru import logger
    import logspool.loguru

    logger.remove()
    logger.add(logspool.loguru.sink("app.log"))

The file has the bytes that loguru's own file sink writes, for every format, with exceptions and `serialize`. While the
only handler is such a sink, usual calls also skip the record that loguru makes: those without exception and without
`opt` or `patch`, for a format of time, level, name, function, line and message, without a filter and without colours.
For this, `Logger._log` is replaced while a sink is open.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Any, NamedTuple

import loguru
from loguru import _datetime, _handler, _logger, _simple_sinks

from logspool.handlers import _line_output
from logspool.handlers._loguru_formats import LineFormat, line_format

__all__ = ["Sink", "sink"]


def sink(output: str | os.PathLike[str] | logging.Handler, **options: Any) -> Sink:
    """Make a sink for `logger.add`. `logger.remove` writes everything queued and closes it.

    Args:
        output: path of a file, which `logspool.FileHandler` opens, or a handler without formatter, level and filters,
            such as `logspool.RotatingFileHandler(...)`.
        options: of `logspool.FileHandler`, for a path. Options of loguru's file sink are those of handlers here:
            `maxBytes` instead of `rotation`, for example.

    Raises:
        TypeError, ValueError: the output is neither, or an option does not fit; the text says what to change.
    """
    handler = _line_output.open_handler("sink", output, options, filtering="level= and filter= of logger.add")
    if isinstance(handler, logging.StreamHandler):
        # loguru's lines end with their own terminator.
        handler.terminator = ""
    made = Sink(handler)
    _taken_over.add(made)
    return made


class Sink:
    """A sink for `logger.add`, made by `sink`."""

    #: loguru draws exceptions with characters of this encoding, as it does for its own files.
    encoding = "utf8"

    def __init__(self, handler: logging.Handler) -> None:
        #: The handler that writes the lines.
        self.handler = handler
        self._put = _line_output.line_logger("loguru", handler, "loguru's Message is").put

    def isatty(self) -> bool:
        """Return False: lines have no colours unless `logger.add` asks for them."""
        return False

    def write(self, message: Any) -> None:
        """Queue a message of loguru. Called by loguru."""
        self._put(min(message.record["level"].no, _MAX_LEVEL), str(message))

    def stop(self) -> None:
        """Write everything queued and close the output. Called by `logger.remove`."""
        self.handler.close()
        _taken_over.discard(self)


#: Levels of the queue have 16 bits.
_MAX_LEVEL = 0xFFFF

#: The options of a logger on which `opt` was not called: exception, depth, record, lazy, colors, raw. Their place in
#: loguru's tuple of options.
_PLAIN_OPTIONS = (None, 0, False, False, False, False)

_stock_log: Any = loguru.logger.__class__._log  # type: ignore[attr-defined]
_stock_now: Any = _logger.aware_now
_stock_clock: Any = _datetime.datetime_

#: True if this is a release of loguru whose calls are known.
_known = (
    _stock_log.__code__.co_varnames[:7] == ("self", "level", "from_decorator", "options", "message", "args", "kwargs")
    and vars(loguru)["__version__"].split(".")[:2] == ["0", "7"]
    and sys.implementation.name == "cpython"
)


class _TakenOver(set[Any]):
    """The open sinks. While there is one, `Logger._log` is replaced."""

    def add(self, made: Sink) -> None:
        super().add(made)
        cls: Any = type(loguru.logger)
        if _known and cls._log is _stock_log:
            cls._log = _log

    def discard(self, made: object) -> None:
        super().discard(made)
        cls: Any = type(loguru.logger)
        if not self and cls._log is _log:
            cls._log = _stock_log


_taken_over = _TakenOver()


class _Shortcut(NamedTuple):
    """How usual calls queue a line without a record."""

    #: The lowest level of the only handler.
    lowest: int
    format: LineFormat
    #: Queues a line with its level.
    put: Any


#: The dict of handlers that was examined last, and the shortcut for it; None if loguru has to make the record. loguru
#: replaces the dict after each change.
_examined: tuple[Any, _Shortcut | None] = (None, None)

#: The second that was formatted last, its format, the time zone's names then, and its text with the mark.
_second: tuple[int, LineFormat | None, Any, str] = (-1, None, None, "")

#: The fractions of a second in three digits: it is faster to look one up than to make it.
_THREE_DIGITS = tuple(f"{number:03d}" for number in range(1000))

#: The options found plain last: each logger of loguru passes one tuple to all its calls. Those with values of `bind`
#: are not kept, because they would keep the values alive.
_plain: Any = None


def _are_plain(options: Any) -> bool:
    """Return whether these are the options of a logger on which neither `opt` nor `patch` was called."""
    global _plain
    found = options[:6] == _PLAIN_OPTIONS and not options[7]
    if found and not options[-1]:
        _plain = options
    return found


def _examine(handlers: Any) -> tuple[Any, _Shortcut | None]:
    """Return the shortcut for these handlers, in the form of `_examined`."""
    global _examined
    shortcut = None
    only = next(iter(handlers.values())) if len(handlers) == 1 else None
    if type(only) is _handler.Handler and "emit" not in vars(only):
        stream = only._sink
        output = stream._stream if type(stream) is _simple_sinks.StreamSink else None
        plain = not (only._is_formatter_dynamic or only._colorize or only._serialize or only._enqueue or only._filter)
        if type(output) is Sink and plain and "write" not in vars(output):
            format = line_format(only._decolorized_format)
            if format is not None:
                shortcut = _Shortcut(only._levelno, format, output._put)
    _examined = handlers, shortcut
    return _examined


def _shown_time(now: int, format: LineFormat) -> str:
    """Return a time in nanoseconds since the epoch in local time."""
    global _second
    seconds, rest = divmod(now, 1_000_000_000)
    last, shown_by, zone, shown = _second
    if last != seconds or zone is not time.tzname or shown_by is not format:
        zone = time.tzname
        shown = time.strftime(format.seconds, time.localtime(seconds)) + format.mark
        _second = seconds, format, zone, shown
    if format.digits == 3:
        return shown + _THREE_DIGITS[rest // 1_000_000]
    return f"{shown}{rest // 1_000:06d}" if format.digits else shown


def _log(
    self: Any, level: Any, from_decorator: bool, options: Any, message: Any, args: tuple[Any, ...], kwargs: Any
) -> None:
    """Do what `Logger._log` does. Usual calls queue their line without a record."""
    core = self._core
    handlers = core.handlers
    _, shortcut = _examined if _examined[0] is handlers else _examine(handlers)
    if (
        shortcut is not None
        and (options is _plain or _are_plain(options))
        and core.patcher is None
        and _logger.aware_now is _stock_now
        and _datetime.datetime_ is _stock_clock
    ):
        frame = sys._getframe(2)
        try:
            name = frame.f_globals["__name__"]
            _, level_name, level_no, _ = core.levels_lookup[level]
            is_enabled = core.enabled[name]
        except (KeyError, TypeError):
            # The first call of a module, a wrong level, or a module without a name.
            name = None
        if type(name) is str:
            if level_no < core.min_level or not is_enabled:
                return
            # The time is taken before the message is made, as by loguru.
            now = time.time_ns()
            text = message.format(*args, **kwargs) if args or kwargs else str(message)
            lowest, format, put = shortcut
            if level_no >= lowest:
                line = format.template.format(
                    _shown_time(now, format), level_name, level_no, name, frame.f_code.co_name, frame.f_lineno, text
                )
                put(level_no if level_no < _MAX_LEVEL else _MAX_LEVEL, line)
            return
    # loguru looks for the caller; this function is one more frame.
    exception, depth, *others = options
    _stock_log(self, level, from_decorator, (exception, depth + 1, *others), message, args, kwargs)
