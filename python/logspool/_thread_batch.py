"""Writes several records to a plain stream handler with one write.

`StreamHandler.emit` writes and flushes each record, and each flush releases the interpreter lock. Under load the writer
then waits a switch interval (5 ms) for every single record. If a handler uses the stock methods and writes to a real
text stream, this module joins the lines of a batch and flushes once. It uses the handler's own level, filters,
formatter, lock, terminator and `handleError`. Every other handler is called record by record.
"""

from __future__ import annotations

import io
import logging
import sys
from types import FunctionType
from typing import Any, TypeGuard

#: Maximum number of records in one write. Chosen: formatting them takes about a millisecond. During this time the
#: handler's lock is held, and a fork waits.
BATCH_RECORDS = 256

#: Number of characters after which the joined lines are written. Chosen: it limits the memory of a batch. A longer line
#: is written alone.
BATCH_CHARACTERS = 64 * 1024


def _stock(*methods: Any) -> tuple[Any, ...]:
    # `logspool.install` or other code may have replaced a method before this import.
    return tuple(method for method in methods if type(method) is FunctionType and method.__globals__ is vars(logging))


_HANDLE = _stock(logging.Handler.handle)
_FLUSH = _stock(logging.StreamHandler.flush)
_EMIT = _stock(logging.StreamHandler.emit, logging.FileHandler.emit)
_CUSTOMISABLE = frozenset(("emit", "handle", "flush", "acquire", "release"))


def is_plain_stream(handler: logging.Handler) -> TypeGuard[logging.StreamHandler[Any]]:
    """Return whether `handler` does exactly what the stock `StreamHandler` does with a record."""
    kind = type(handler)
    return (
        isinstance(handler, logging.StreamHandler)
        and kind.emit in _EMIT
        and kind.handle in _HANDLE
        and kind.flush in _FLUSH
        and type(handler.stream) is io.TextIOWrapper
        and _CUSTOMISABLE.isdisjoint(handler.__dict__)
    )


def write_joined(handler: logging.StreamHandler[Any], records: list[logging.LogRecord]) -> None:
    """Write `records` to the stream of `handler` and flush it once. Errors go to `handleError`."""
    handler.acquire()
    try:
        pieces: list[tuple[logging.LogRecord, str]] = []
        size = 0
        make_line, terminator = handler.format, handler.terminator
        for record in records:
            try:
                if record.levelno < handler.level:
                    continue
                if handler.filters:
                    verdict = handler.filter(record)
                    if not verdict:
                        continue
                    if isinstance(verdict, logging.LogRecord):
                        record = verdict
                line = make_line(record) + terminator
            except BaseException:
                report(handler, record)
                continue
            pieces.append((record, line))
            size += len(line)
            if size >= BATCH_CHARACTERS:
                _write_lines(handler, pieces)
                pieces, size = [], 0
        if pieces:
            _write_lines(handler, pieces)
    finally:
        handler.release()


def report(handler: logging.Handler, *records: logging.LogRecord) -> None:
    """Call `handleError` for each record, for the current exception. Ignores exceptions of `handleError`."""
    for record in records:
        try:
            handler.handleError(record)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            try:
                if logging.raiseExceptions and sys.stderr is not None:
                    sys.stderr.write(f"logspool: {handler!r}.handleError raised {error!r}\n")
            except Exception:
                pass  # an exception of `handleError` can be reported to nobody


def _write_lines(handler: logging.StreamHandler[Any], pieces: list[tuple[logging.LogRecord, str]]) -> None:
    try:
        try:
            handler.stream.write("".join([line for _, line in pieces]))
        except UnicodeError:
            # Nothing of the joined lines was written. Only the lines that cannot be encoded are reported as errors.
            for record, line in pieces:
                try:
                    handler.stream.write(line)
                except BaseException:
                    report(handler, record)
        handler.flush()
    except BaseException:
        report(handler, *(record for record, _ in pieces))
