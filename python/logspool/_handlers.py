"""Handlers of logspool's own, usable from `dictConfig` and without `install()`."""

from __future__ import annotations

import logging
from typing import Any

from logspool import _adopt, _install, _native, _pretty


class StreamHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """A `logging.StreamHandler` whose lines go through the queue.

    Works with and without `logspool.install()`. A stream without a file descriptor is written to at once.
    Without a formatter of its own it shows time, level, logger and message on a terminal, in colours unless
    `NO_COLOR` is set; elsewhere it writes what `logging.StreamHandler` writes.

    Args:
        stream: as there; None is `sys.stderr`.
        options: those of `logspool.install()`; a process has one queue, and the first handler says how it is.

    Raises:
        TypeError, ValueError, RuntimeError: as `logspool.install()`.
    """

    def __init__(self, stream: Any = None, **options: Any) -> None:
        _install.stand_alone("StreamHandler", options)
        super().__init__(stream)

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, without its terminator."""
        pretty = None if self.formatter else _pretty.formatter_for(self.stream)
        return super().format(record) if pretty is None else pretty.format(record)


class FileHandler(logging.FileHandler):
    """A `logging.FileHandler` whose lines go through the queue.

    Works with and without `logspool.install()`: a record is formatted and written by the collector, in the order of
    the calls; `flush()` and `close()` wait until everything before is in the file.

    Args:
        filename, mode, encoding, delay, errors: as there.
        options: those of `logspool.install()`; a process has one queue, and the first handler says how it is.

    Raises:
        OSError: the file cannot be opened.
        TypeError, ValueError, RuntimeError: as `logspool.install()`.
    """

    def __init__(
        self,
        filename: Any,
        mode: str = "a",
        encoding: str | None = None,
        delay: bool = False,
        errors: str | None = None,
        **options: Any,
    ) -> None:
        _install.stand_alone("FileHandler", options)
        super().__init__(filename, mode, encoding, delay, errors)


def _make_native(cls: type, owners: dict[str, str]) -> None:
    """Give a class its own native methods, so that it queues also where `logging` itself is left alone."""
    for name, owner in owners.items():
        stock = _stock(getattr(logging, owner), name)
        native = _native.native_method(cls, owner, name, stock)
        _adopt.own[cls, name] = (native, stock)
        setattr(cls, name, native)
    for name, delete in (("__setattr__", False), ("__delattr__", True)):
        hook = _native.attribute_hook(cls, delete)
        _adopt.own[cls, name] = (hook, None)
        setattr(cls, name, hook)
    _adopt.own_handlers.append(cls)


def _stock(cls: type, name: str) -> Any:
    value = cls.__dict__[name]
    made = _adopt.made.get((cls, name))
    return made[1] if made is not None and value is made[0] else value


_STREAM_METHODS = {
    "emit": "StreamHandler",
    "flush": "StreamHandler",
    "setStream": "StreamHandler",
    "handleError": "Handler",
}

_make_native(FileHandler, {**_STREAM_METHODS, "emit": "FileHandler", "close": "FileHandler"})
_make_native(StreamHandler, {**_STREAM_METHODS, "close": "Handler"})
_native.set_own_classes((StreamHandler, FileHandler))
