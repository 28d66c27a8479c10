"""Rotating handlers of logspool's own: several processes may log to one file and rotate it.

A module beside `_handlers`, because `logging.handlers` takes long to import.
"""

from __future__ import annotations

import logging.handlers
from typing import TYPE_CHECKING, Any

from logspool import _adopt, _handlers, _install

if TYPE_CHECKING:
    from datetime import time


def _checked(compress: str | None, errors: str | None) -> str | None:
    if compress not in (None, "gzip", "zstd"):
        raise ValueError(f"compress must be None, 'gzip' or 'zstd', not {compress!r}")
    if compress is not None and errors not in (None, "strict"):
        raise ValueError(f"compress={compress!r} and errors={errors!r}: stock logging would write the file")
    return compress


class RotatingFileHandler(_adopt.SharedRotation, logging.handlers.RotatingFileHandler):
    """A `logging.handlers.RotatingFileHandler` whose file several processes may write and rotate.

    Works with and without `logspool.install()`. If another process has already rotated the file, a process only
    switches to the new file; no line is lost or torn.

    Args:
        filename, mode, maxBytes, backupCount, encoding, delay, errors: as in `logging.handlers.RotatingFileHandler`.
        compress: "gzip" or "zstd" makes `app.log.1.gz` or `app.log.1.zst` of each backup, beside the logging; None
            leaves it as it is. All processes that rotate the file must use the same value.
        options: those of `logspool.install()`; a process has one queue; the options of its first handler apply.

    Raises:
        OSError: the file cannot be opened.
        TypeError, ValueError, RuntimeError: as `logspool.install()`; ValueError for another `compress`, or one together
            with `errors`, which leave the file to stock logging.
    """

    def __init__(
        self,
        filename: Any,
        mode: str = "a",
        maxBytes: int = 0,
        backupCount: int = 0,
        encoding: str | None = None,
        delay: bool = False,
        errors: str | None = None,
        *,
        compress: str | None = None,
        **options: Any,
    ) -> None:
        _install.stand_alone(RotatingFileHandler, options)
        self._compress = _checked(compress, errors)
        super().__init__(filename, mode, maxBytes, backupCount, encoding, delay, errors)


class TimedRotatingFileHandler(_adopt.SharedRotation, logging.handlers.TimedRotatingFileHandler):
    """A `logging.handlers.TimedRotatingFileHandler` whose file several processes may write and rotate.

    Works with and without `logspool.install()`. The processes agree on the time of the next rotation, and a single
    process rotates for all.

    Args:
        filename, when, interval, backupCount, encoding, delay, utc, atTime, errors: as in
            `logging.handlers.TimedRotatingFileHandler`.
        compress: as with `RotatingFileHandler`: `app.log.2026-11-22.gz`.
        options: those of `logspool.install()`; a process has one queue; the options of its first handler apply.

    Raises:
        OSError: the file cannot be opened.
        TypeError, ValueError, RuntimeError: as `logspool.install()`; ValueError for another `compress`, or one together
            with `errors`, which leave the file to stock logging.
    """

    def __init__(
        self,
        filename: Any,
        when: str = "h",
        interval: int = 1,
        backupCount: int = 0,
        encoding: str | None = None,
        delay: bool = False,
        utc: bool = False,
        atTime: time | None = None,
        errors: str | None = None,
        *,
        compress: str | None = None,
        **options: Any,
    ) -> None:
        _install.stand_alone(TimedRotatingFileHandler, options)
        self._compress = _checked(compress, errors)
        super().__init__(filename, when, interval, backupCount, encoding, delay, utc, atTime, errors)


_METHODS = {**_handlers.STREAM_METHODS, "emit": "BaseRotatingHandler", "close": "FileHandler"}

for _cls in (RotatingFileHandler, TimedRotatingFileHandler):
    _turning = {"doRollover": _cls.__name__, "shouldRollover": _cls.__name__}
    _handlers.make_native(_cls, {**_METHODS, **_turning})
