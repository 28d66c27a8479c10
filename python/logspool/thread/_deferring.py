"""Formatters that run on a thread of logspool instead of in the logging call.

Pipeline stage: between *capture* and *queue* (see ARCHITECTURE.md). Native code puts the record of an adopted handler
into one queue of Python objects, or the values from which to make it, with the handler and its formatter. The thread
formats the records in order and queues each line for the handler's output. The thread, its queue, forks and the end
are those of `ThreadHandler`.
"""

from __future__ import annotations

import copy
import logging
import math
import weakref
from collections.abc import Mapping
from typing import Any

from logspool import _native
from logspool.base import _in_force
from logspool.thread import _handler_options
from logspool.thread._batch import report
from logspool.thread._record import is_plain
from logspool.thread._writer import Writer

#: Maximum number of records that wait for the thread. Chosen: some 15 MB of ordinary records, and a second of a thread
#: that formats 10,000 of them.
MOST_RECORDS = 10_000

#: The attribute of a record that holds its handler and its formatter while the thread handles the record. Removed
#: before the record is formatted.
DESTINATION = "_logspool_destination"

#: A record that waits for the thread, with its handler and the formatter at the time of the call. Not an attribute of
#: the record from the start: the caller's dict of a record has no room for one more, and a larger one costs more.
Waiting = tuple["logging.LogRecord | _native.UnmadeRecord", logging.Handler, Any]

#: Types of values that a program may change in place.
_CHANGEABLE = (list, dict, set, bytearray)


class DeferredFormatter(logging.Formatter):
    """A formatter that logspool runs on a thread of its own; see `deferred`.

    Where logspool does not serve the handler, it formats in the logging call.

    Attributes:
        formatter: the formatter that makes the lines.
    """

    def __init__(self, formatter: Any) -> None:
        super().__init__()
        self.formatter = formatter

    def format(self, record: logging.LogRecord) -> str:
        """Return the line that the formatter makes."""
        return self.formatter.format(record)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"deferred({self.formatter!r})"


def deferred(formatter: logging.Formatter) -> logging.Formatter:
    """Let a formatter run on a thread of logspool, so that a logging call does not wait for it.

    The call captures the record: its message, if an argument could change, copies of lists, dicts and sets in `extra`,
    and the names of thread and task. The formatter gets this record later, so it must not look at context variables,
    thread-local values, the stack or the current exception; other objects in `extra` are those of the program. A
    formatter that the collector can run natively needs no thread. Records that wait for the thread are lost if the
    process is killed; `flush()` and the end of the process wait for them.

    Args:
        formatter: an object with a method `format(record)`, such as a `logging.Formatter`.

    Returns:
        A formatter for `handler.setFormatter`.

    Raises:
        TypeError: the argument is no formatter.
    """
    if isinstance(formatter, type):
        raise TypeError(f"deferred() takes a formatter, not its class: write deferred({formatter.__name__}(...))")
    if isinstance(formatter, logging.Handler):
        raise TypeError("deferred() takes a formatter, not a handler: write handler.setFormatter(deferred(formatter))")
    if not callable(getattr(formatter, "format", None)) or isinstance(formatter, str):
        raise TypeError(
            f"deferred() takes a formatter, an object with a method format(record), not {formatter!r}: "
            "write deferred(logging.Formatter(...))"
        )
    return formatter if isinstance(formatter, DeferredFormatter) else DeferredFormatter(formatter)


class _Lines(logging.Handler):
    """Formats the records that the thread takes, and queues the lines for their handlers."""

    def __init__(self) -> None:
        super().__init__()
        # `logging.shutdown` has nothing to close here.
        references = logging._handlerList  # type: ignore[attr-defined]
        references[:] = [item for item in references if item() is not self]
        self._last: Any = None

    def handle(self, record: logging.LogRecord) -> bool:  # type: ignore[override]
        destination = record.__dict__.pop(DESTINATION, None)
        if destination is None:
            # "N records dropped", a record of the thread itself.
            handler = None if self._last is None else self._last()
            if handler is not None:
                _emit(handler, record)
            return True
        handler, formatter = destination
        if self._last is None or self._last() is not handler:
            self._last = weakref.ref(handler)
        if not _native.queue_formatted(handler, formatter, record):
            _emit(handler, record)
        return True


class _Formatting(Writer):
    """The thread that formats, with its queue."""

    #: Whether a handler is described as deferred only because earlier records waited.
    stays_for_order = False

    def _restored(self, entry: Waiting) -> logging.LogRecord:  # type: ignore[override]
        kept, *destination = entry
        record = kept.make() if isinstance(kept, _native.UnmadeRecord) else kept
        record.__dict__[DESTINATION] = destination
        return record

    def _rest(self, queue: Any, me: Any, nap: float, longest: float) -> bool:
        if self.stays_for_order and not queue:
            self.stays_for_order = False
            _native.bump()
        return super()._rest(queue, me, nap, longest)


def _emit(handler: logging.Handler, record: logging.LogRecord) -> None:
    """Let the handler format and write a record whose line cannot be queued."""
    handler.acquire()
    try:
        handler.emit(record)
    except Exception:
        report(handler, record)
    finally:
        handler.release()


def captured(record: logging.LogRecord) -> logging.LogRecord:
    """Return a copy of a record whose values the program cannot change.

    Raises:
        Exception: an exception of `getMessage()`.
    """
    kept = copy.copy(record)
    fields = kept.__dict__
    args = record.args
    if type(record.msg) is not str or (args and not (type(args) is tuple and is_plain(args))):
        fields["msg"], fields["args"] = record.getMessage(), None
    for name, value in list(fields.items()):
        if type(value) in _CHANGEABLE:
            try:
                fields[name] = copy.deepcopy(value)
            except Exception:
                pass  # a value that cannot be copied is kept as it is
    return kept


class Deferral:
    """The queue of records that wait for their formatters, and the thread that runs the formatters.

    Native code reads `writer` at each call, and calls `captured` and `put_slowly`.
    """

    captured = staticmethod(captured)

    def __init__(self, options: Mapping[str, Any]) -> None:
        interval = _handler_options.DEFAULT_FLUSH_INTERVAL
        size = _handler_options.DEFAULT_QUEUE_BYTES
        #: The handlers whose records may wait, by identity.
        self.handlers: weakref.WeakValueDictionary[int, logging.Handler] = weakref.WeakValueDictionary()
        shutdown_timeout = options.get("shutdown_timeout", _handler_options.DEFAULT_SHUTDOWN_TIMEOUT)
        self.writer = _Formatting(_Lines(), MOST_RECORDS, size, interval, shutdown_timeout)
        self._blocking_levels = options.get("blocking_levels")
        patience = options.get("blocking_timeout")
        patience = _BLOCKING_SECONDS if patience is None else patience
        #: Seconds that a record of a blocking level waits for room; None waits for ever.
        self._patience: float | None = None if math.isinf(patience) else patience

    def _waits(self, level: int) -> bool:
        """Return whether a record of this level waits for room, by the options of `install()`."""
        return level >= logging.ERROR if self._blocking_levels is None else level in self._blocking_levels

    def put_slowly(self, waiting: Waiting, size: int, outcome: str) -> None:
        """Wake the thread if the record was queued; otherwise wait for room, or count the record as refused."""
        level = waiting[0].levelno
        self.writer.put_slowly(waiting, size, level, outcome, self._waits, self._patience)  # type: ignore[arg-type]


#: The default of `install(blocking_timeout=)`.
_BLOCKING_SECONDS = 0.1

_deferral: Deferral | None = None


def deferral() -> Deferral:
    """Return the deferral of this process. Called with the planning lock held."""
    global _deferral
    if _deferral is None:
        _native.set_drain(drain)
        _deferral = Deferral(_in_force.of_queue() or {})
    return _deferral


def has_waiting(handler: logging.Handler | None = None) -> bool:
    """Return whether any record waits for its formatter; with a handler, whether one of the handler may."""
    if _deferral is None or (handler is not None and id(handler) not in _deferral.handlers):
        return False
    queue = _deferral.writer.queue
    return queue.accepted != queue.written


def drain(timeout: float | None) -> bool:
    """Wait until all records that wait now are formatted; False when `timeout` seconds pass. Never waits in the thread
    itself.
    """
    if _deferral is None or not has_waiting():
        return True
    writer = _deferral.writer
    return writer.is_own_thread() or writer.drain(timeout)


def counts() -> tuple[int, int, int, dict[str, int], dict[str, int]]:
    """Return how many records were accepted, formatted and wait, and how many were refused and dropped by reason."""
    if _deferral is None:
        return 0, 0, 0, {}, {}
    accepted, written, queued, _, refused, dropped = _deferral.writer.queue.counts()
    total = [{reason: sum(levels.values()) for reason, levels in table.items()} for table in (refused, dropped)]
    return accepted, written, queued, total[0], total[1]
