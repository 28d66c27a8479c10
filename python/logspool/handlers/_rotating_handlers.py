"""Logspool's own rotating handlers: several processes may log to one file and rotate it.

They are in a module separate from `_handlers`, because importing `logging.handlers` takes long.
"""

from __future__ import annotations

import logging.handlers
from typing import TYPE_CHECKING, Any

from logspool.adoption import _own_classes
from logspool.base import _interpreter
from logspool.handlers import _handlers
from logspool.process import _install

if TYPE_CHECKING:
    from datetime import time


def _checked(compress: str | None, errors: str | None) -> str | None:
    if compress not in (None, "gzip", "zstd"):
        raise ValueError(f"compress must be None, 'gzip' or 'zstd', not {compress!r}")
    _interpreter.check_promises({"compress": compress})
    if compress is not None and errors not in (None, "strict"):
        raise ValueError(f"compress={compress!r} and errors={errors!r}: stock logging would write the file")
    return compress


class RotatingFileHandler(_own_classes.SharedRotation, logging.handlers.RotatingFileHandler):
    """A `logging.handlers.RotatingFileHandler` whose file several processes may write and rotate.

    Works with and without `logspool.install()`. If another process has already rotated the file, a process only
    switches to the new file; no line is lost or torn.

    Args:
        filename: as in `logging.handlers.RotatingFileHandler`.
        mode: as in `logging.handlers.RotatingFileHandler`.
        maxBytes: as in `logging.handlers.RotatingFileHandler`.
        backupCount: as in `logging.handlers.RotatingFileHandler`.
        encoding: as in `logging.handlers.RotatingFileHandler`.
        delay: as in `logging.handlers.RotatingFileHandler`.
        errors: as in `logging.handlers.RotatingFileHandler`.
        compress: "gzip" or "zstd" compresses each backup to `app.log.1.gz` or `app.log.1.zst` in the background; None
            does not compress backups. All processes that rotate the file must use the same value.
        options: the options of `logspool.install()`. A process has one queue, to which the options of its first handler
            apply.

    Raises:
        OSError: the file cannot be opened.
        TypeError, ValueError, RuntimeError: as `logspool.install()`. Also ValueError for another value of `compress`,
            or for `compress` together with `errors`, because stock logging writes a file with `errors`.
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


class TimedRotatingFileHandler(_own_classes.SharedRotation, logging.handlers.TimedRotatingFileHandler):
    """A `logging.handlers.TimedRotatingFileHandler` whose file several processes may write and rotate.

    Works with and without `logspool.install()`. The processes agree on the time of the next rotation, and a single
    process rotates for all.

    Args:
        filename: as in `logging.handlers.TimedRotatingFileHandler`.
        when: as in `logging.handlers.TimedRotatingFileHandler`.
        interval: as in `logging.handlers.TimedRotatingFileHandler`.
        backupCount: as in `logging.handlers.TimedRotatingFileHandler`.
        encoding: as in `logging.handlers.TimedRotatingFileHandler`.
        delay: as in `logging.handlers.TimedRotatingFileHandler`.
        utc: as in `logging.handlers.TimedRotatingFileHandler`.
        atTime: as in `logging.handlers.TimedRotatingFileHandler`.
        errors: as in `logging.handlers.TimedRotatingFileHandler`.
        compress: as with `RotatingFileHandler`. The name of a backup is then `app.log.2026-11-22.gz`, for example.
        options: the options of `logspool.install()`. A process has one queue, to which the options of its first handler
            apply.

    Raises:
        OSError: the file cannot be opened.
        TypeError, ValueError, RuntimeError: as `logspool.install()`. Also ValueError for another value of `compress`,
            or for `compress` together with `errors`, because stock logging writes a file with `errors`.
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
