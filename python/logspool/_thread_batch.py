"""Writes several records to a plain stream handler in one piece.

`StreamHandler.emit` writes and flushes each record, and each flush lets go of the interpreter
lock: under load the writer then waits a switch interval (5 ms) for every single record. For a
handler that is a stock one where it matters, on a real text stream, the lines of a batch are
joined and flushed once. Level, filters, formatter, lock, terminator and `handleError` are the
handler's own; every other handler is called record by record.
"""

from __future__ import annotations

import io
import logging
import sys
from types import FunctionType
from typing import Any, TypeGuard

#: Records in one piece. Chosen: about a millisecond of formatting, for which the handler's lock
#: is held and a fork waits.
BATCH_RECORDS = 256

#: Characters after which a piece is written. Chosen: it bounds the memory of a batch; a longer
#: line goes out alone.
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
        accepted = []
        lines = []
        size = 0
        level = handler.level
        terminator = handler.terminator
        make_line = handler.format
        for record in records:
            try:
                if record.levelno < level:
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
            accepted.append(record)
            lines.append(line)
            size += len(line)
            if size >= BATCH_CHARACTERS:
                _write_lines(handler, accepted, lines)
                accepted, lines, size = [], [], 0
        if lines:
            _write_lines(handler, accepted, lines)
    finally:
        handler.release()


def report(handler: logging.Handler, record: logging.LogRecord) -> None:
    """Tell the handler of the exception being handled. Raises nothing of the handler's."""
    try:
        handler.handleError(record)
    except KeyboardInterrupt:
        raise
    except BaseException:
        if logging.raiseExceptions and sys.stderr is not None:
            try:
                sys.stderr.write(f"logspool: {handler!r}.handleError raised {sys.exc_info()[1]!r}\n")
            except Exception:
                pass


def _write_lines(handler: logging.StreamHandler[Any], records: list[logging.LogRecord], lines: list[str]) -> None:
    try:
        handler.stream.write("".join(lines))
    except UnicodeError:
        # Nothing of the piece was written; only the lines that cannot be encoded are at fault.
        for record, line in zip(records, lines):
            try:
                handler.stream.write(line)
            except BaseException:
                report(handler, record)
    except BaseException:
        for record in records:
            report(handler, record)
        return
    try:
        handler.flush()
    except BaseException:
        for record in records:
            report(handler, record)
