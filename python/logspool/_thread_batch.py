"""Writes several records to a plain stream handler in one piece.

`StreamHandler.emit` writes and flushes each record, and each flush lets go of the interpreter lock: under load the
writer then waits a switch interval (5 ms) for every single record. For a handler that is a stock one where it matters,
on a real text stream, the lines of a batch are joined and flushed once. Level, filters, formatter, lock, terminator and
`handleError` are the handler's own; every other handler is called record by record.
"""

from __future__ import annotations

import io
import logging
import sys
from types import FunctionType
from typing import Any, TypeGuard

#: Records in one piece. Chosen: about a millisecond of formatting, for which the handler's lock is held and a fork
#: waits.
BATCH_RECORDS = 256

#: Characters after which a piece is written. Chosen: it bounds the memory of a batch; a longer line goes out alone.
BATCH_CHARACTERS = 64 * 1024


def _stock(*methods: Any) -> tuple[Any, ...]:
    # `logspool.install`, or somebody else, may have replaced a method before this import.
    return tuple(
        method for method in methods if isinstance(method, FunctionType) and method.__globals__ is vars(logging)
    )


_HANDLE = _stock(logging.Handler.handle)
_FLUSH = _stock(logging.StreamHandler.flush)
_EMIT = _stock(logging.StreamHandler.emit, logging.FileHandler.emit)
_CUSTOMISABLE = frozenset(("emit", "handle", "flush", "acquire", "release"))


def is_plain_stream(handler: logging.Handler) -> TypeGuard[logging.StreamHandler[Any]]:
    """Tell whether `handler` does with a record exactly what stock `StreamHandler` does."""
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
    """Tell the handler of the exception being handled, for each record. Raises nothing of the handler's."""
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
                pass  # nobody is left to tell


def _write_lines(handler: logging.StreamHandler[Any], pieces: list[tuple[logging.LogRecord, str]]) -> None:
    try:
        try:
            handler.stream.write("".join([line for _, line in pieces]))
        except UnicodeError:
            # Nothing of the piece was written; only the lines that cannot be encoded are at fault.
            for record, line in pieces:
                try:
                    handler.stream.write(line)
                except BaseException:
                    report(handler, record)
        handler.flush()
    except BaseException:
        report(handler, *(record for record, _ in pieces))
