"""Writes several records to a stream handler with one flush.

`StreamHandler.emit` writes and flushes each record, and each flush releases the interpreter lock. Under load the writer
then waits a switch interval (5 ms) for every single record. If a handler uses the stock methods, this module flushes
once for a batch. If its stream is a real text stream, the lines of the batch are one write. It uses the handler's own
level, filters, formatter, lock, terminator and `handleError`. Every other handler is called record by record.
"""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable
from typing import Any, TypeGuard

from logspool.base._stock_classes import changed_method, kept_answer

#: Maximum number of records in one write. Chosen: formatting them takes about a millisecond. During this time the
#: handler's lock is held, and a fork waits.
BATCH_RECORDS = 256

#: Number of characters after which the joined lines are written. Chosen: it limits the memory of a batch. A longer line
#: is written alone.
BATCH_CHARACTERS = 64 * 1024

_OUTPUT = ("emit", "handle", "flush", "acquire", "release")


@kept_answer
def _has_stock_output(kind: type) -> bool:
    base = logging.FileHandler if issubclass(kind, logging.FileHandler) else logging.StreamHandler
    return changed_method(kind, base, _OUTPUT) is None


def is_stock_stream(handler: logging.Handler) -> TypeGuard[logging.StreamHandler[Any]]:
    """Return whether `handler` does exactly what the stock `StreamHandler` does with a record."""
    return (
        isinstance(handler, logging.StreamHandler)
        and _has_stock_output(type(handler))
        and handler.stream is not None
        and handler.__dict__.keys().isdisjoint(_OUTPUT)
    )


def is_plain_stream(handler: logging.Handler) -> TypeGuard[logging.StreamHandler[Any]]:
    """Return whether `handler` is as the stock `StreamHandler`, and its stream a real text stream."""
    return is_stock_stream(handler) and type(handler.stream) is io.TextIOWrapper


def write_joined(handler: logging.StreamHandler[Any], records: list[logging.LogRecord]) -> None:
    """Write `records` to the stream of `handler` and flush it once. Errors go to `handleError`."""
    handler.acquire()
    try:
        pieces: list[tuple[logging.LogRecord, str]] = []
        size = 0
        for record in records:
            piece = _piece(handler, record)
            if piece is None:
                continue
            pieces.append(piece)
            size += len(piece[1])
            if size >= BATCH_CHARACTERS:
                _write_lines(handler, pieces)
                pieces, size = [], 0
        if pieces:
            _write_lines(handler, pieces)
    finally:
        handler.release()


def write_each(
    handler: logging.StreamHandler[Any], records: list[logging.LogRecord], goes_on: Callable[[], bool]
) -> None:
    """Write each of `records` by a call of the stream's `write`, while `goes_on()`, and flush it once.

    Errors go to `handleError`.
    """
    handler.acquire()
    try:
        written = []
        for record in records:
            piece = _piece(handler, record)
            if piece is None:
                continue
            try:
                handler.stream.write(piece[1])
                written.append(record)
            except BaseException:
                report(handler, record)
            if not goes_on():
                return
        try:
            if written:
                handler.flush()
        except BaseException:
            report(handler, *written)
    finally:
        handler.release()


def _piece(handler: logging.StreamHandler[Any], record: logging.LogRecord) -> tuple[logging.LogRecord, str] | None:
    """Return the record to write and its line. `None` if the handler does not want it, or after an error."""
    try:
        if record.levelno < handler.level:
            return None
        if handler.filters:
            verdict = handler.filter(record)
            if not verdict:
                return None
            if isinstance(verdict, logging.LogRecord):
                record = verdict
        return record, handler.format(record) + handler.terminator
    except BaseException:
        report(handler, record)
        return None


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
