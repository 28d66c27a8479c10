"""Opens the handler to which loggers of other packages give finished lines."""

from __future__ import annotations

import logging
import os
from typing import Any

from logspool import _native
from logspool.handlers._handlers import FileHandler


def open_handler(
    owner: str, output: str | os.PathLike[str] | logging.Handler, options: dict[str, Any], *, filtering: str
) -> logging.Handler:
    """Return the handler for an output, as `LoggerFactory` and `sink` take it; `filtering` says how to choose records.

    Raises:
        TypeError, ValueError: the output is neither a path nor a fitting handler, or an option does not fit.
    """
    if isinstance(output, (str, os.PathLike)):
        options.setdefault("encoding", "utf-8")
        handler: logging.Handler = FileHandler(output, **options)
    elif not isinstance(output, logging.Handler):
        raise TypeError(
            f"{owner}: output must be a path or a handler, as logspool.StreamHandler(sys.stdout), not {output!r}"
        )
    elif options:
        raise TypeError(f"{owner}: give {', '.join(options)} to the handler instead")
    else:
        handler = output
    if handler.formatter is not None:
        raise ValueError(
            f"{owner}: the handler has a formatter, but it gets finished lines; call handler.setFormatter(None)"
        )
    if handler.level or handler.filters:
        raise ValueError(f"{owner}: level and filters of the handler have no effect; use {filtering}")
    handler.setFormatter(logging.Formatter("%(message)s"))
    return handler


def line_logger(name: str, handler: logging.Handler, mend: str) -> _native.LineLogger:
    """Return the logger that queues lines for a handler. `mend` says how to make lines that are text."""

    def pass_on(handler: logging.Handler, level: int, text: object) -> None:
        """Give the handler a record with the text. Native code calls this if it cannot queue a line."""
        if isinstance(text, (bytes, bytearray)):
            text = text.decode("utf-8", "surrogateescape")
        if not isinstance(text, str):
            raise TypeError(f"a line must be str or bytes, not {type(text).__qualname__}: {mend}")
        handler.handle(logging.LogRecord(name, level, "(unknown file)", 0, text, None, None))

    return _native.LineLogger(handler, pass_on)
