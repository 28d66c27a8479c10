"""`ThreadHandler`: runs any `logging.Handler` on a background thread, with a bounded queue in between.

Pipeline stage: capture and queue, for handlers that need the real record, such as Sentry, Rich or your own (see
ARCHITECTURE.md). This is the only queue of Python objects (`_queue`). The thread is in `_writer`, fork
and exit are in `_hooks`. The durability is "memory": queued records are lost if the process is killed.

A caller takes no handler lock. It waits only for room, and only at the `blocking_levels`. It never gets an exception of
the wrapped handler. A record is counted exactly once, as accepted or as refused.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from logging import LogRecord
from types import MappingProxyType

from logspool._native import set_thread_handler
from logspool.base._options import known_only
from logspool.base._options import timeout as checked_timeout
from logspool.thread import _handler_options as options
from logspool.thread._batch import report
from logspool.thread._queue import RecordQueue
from logspool.thread._record import RECORD_BYTES, packed
from logspool.thread._writer import Writer


@dataclass(frozen=True)
class ThreadHandlerStats:
    """Counters of a `ThreadHandler`, all taken at the same moment.

    `offered == accepted + refused_total` and `accepted == written + queued + dropped_total` hold in every snapshot.
    After a fork the child counts from zero.

    Attributes:
        accepted: accepted records, including records that were handled in the caller after the end.
        written: records given to the wrapped handler, even if its own level or filters refuse them.
        queued: accepted records that are neither written nor dropped yet.
        queued_bytes: estimated bytes of the queued records.
        refused: records not taken, as `{reason: {level number: count}}`. No room for a level that does not wait:
            `queue_full`, `queue_bytes`. No room within the timeout: `blocking_timeout`. No room for a record of the
            thread itself, which never waits: `own_thread`. Its message could not be made: `bad_arguments`. Made after
            `shutdown_timeout` with the wrapped handler still busy: `shutdown`. Made by the wrapped handler while it
            handled a record in the caller: `recursion`.
        dropped: accepted records that were never written, as `{reason: {level number: count}}`. Reason:
            `shutdown_timeout`.
    """

    accepted: int
    written: int
    queued: int
    queued_bytes: int
    refused: Mapping[str, Mapping[int, int]]
    dropped: Mapping[str, Mapping[int, int]]

    @property
    def handled(self) -> int:
        """The same as `written`."""
        return self.written

    @property
    def offered(self) -> int:
        """Records that passed the level and filters of the ThreadHandler: all accepted and all refused records."""
        return self.accepted + self.refused_total

    @property
    def refused_total(self) -> int:
        """Refused records of all reasons and levels."""
        return sum(sum(by_level.values()) for by_level in self.refused.values())

    @property
    def dropped_total(self) -> int:
        """Dropped records of all reasons and levels."""
        return sum(sum(by_level.values()) for by_level in self.dropped.values())


class ThreadHandler(logging.Handler):
    """Run `wrapped_handler` on a background thread, behind a bounded queue, in order.

    Safe to use from any thread, from signal handlers and from `__del__`. Level and filters of the ThreadHandler apply
    in the caller, those of the wrapped handler on the thread, under its lock. The formatter is that of the wrapped
    handler: setting one here sets it there.

    The queue holds shallow copies. Arguments that are not builtin values (int, float, str, bytes, bool, None, tuples of
    them) are turned into the message in the caller, so that a later change of them does not show. Values of `extra` are
    carried as they are.

    Args:
        wrapped_handler: the handler to run. In `dictConfig` also the name of one built before (handlers are built in
            the order of their names), `cfg://handlers.NAME`, or the description of one.
        queue_size: records in the queue, 1 to 100,000,000.
        blocking_levels: levels, as numbers or names, whose records wait for room. Records of the others are dropped and
            counted when the queue is full. Default: ERROR and CRITICAL.
        blocking_timeout: seconds such a record waits before it is dropped and counted. None: for ever; a wrapped
            handler that hangs then hangs every thread that logs at such a level.
        flush_interval: seconds a record may wait until the thread looks at the queue, at most (usually milliseconds),
            and between two "N records dropped" records. From 0.001.
        shutdown_timeout: seconds that `close()`, `flush()` and the end of the process wait for the queue. None: for
            ever.
        queue_bytes: bytes in the queue, 4096 to 2**40, by an estimate: 1200 a record, the length of its texts, 5000 for
            a kept traceback. One larger record is taken by an empty queue.
        exc_info: "keep" hands the exception itself to the wrapped handler; its frames, and what they refer to, live
            until then. "text" formats it in the caller and lets go of it.
        durability: only "memory" works here.

    Raises:
        TypeError: `wrapped_handler` is no handler.
        ValueError: another argument is out of its range; the message names the range.
    """

    @known_only
    def __init__(
        self,
        wrapped_handler: logging.Handler,
        queue_size: int = options.DEFAULT_QUEUE_SIZE,
        blocking_levels: Collection[int | str] | None = None,
        blocking_timeout: float | None = None,
        flush_interval: float = options.DEFAULT_FLUSH_INTERVAL,
        shutdown_timeout: float | None = options.DEFAULT_SHUTDOWN_TIMEOUT,
        *,
        queue_bytes: int = options.DEFAULT_QUEUE_BYTES,
        exc_info: str = "keep",
        durability: str = "memory",
    ) -> None:
        wrapped = options.checked_handler(wrapped_handler)
        size = options.checked_count("queue_size", queue_size, *options.QUEUE_SIZES)
        size_bytes = options.checked_count("queue_bytes", queue_bytes, *options.QUEUE_BYTES)
        self._blocking_levels = options.checked_levels(blocking_levels)
        self._blocking_timeout = options.checked_patience("blocking_timeout", blocking_timeout)
        interval = options.checked_seconds("flush_interval", flush_interval, 0.001)
        timeout = options.checked_patience("shutdown_timeout", shutdown_timeout)
        self._exc_text = options.checked_choice("exc_info", exc_info, "keep", "text") == "text"
        options.checked_choice("durability", durability, "memory")
        super().__init__()
        self._wrapped_handler = wrapped
        self._writer = Writer(wrapped, size, size_bytes, interval, timeout)
        finalizer = weakref.finalize(self, self._writer.begin_finish)
        finalizer.atexit = False  # at exit, the hooks of `_hooks` drain the queue, with a deadline

    @property
    def wrapped_handler(self) -> logging.Handler:
        """The handler that runs on the thread."""
        return self._wrapped_handler

    @property
    def formatter(self) -> logging.Formatter | None:
        """The formatter of the wrapped handler; `basicConfig` and `dictConfig` set it through this."""
        return self._wrapped_handler.formatter

    @formatter.setter
    def formatter(self, formatter: logging.Formatter | None) -> None:
        # Handler.__init__ assigns None to `formatter` before the wrapped handler is set.
        if "_wrapped_handler" in self.__dict__:
            self._wrapped_handler.setFormatter(formatter)

    @property
    def dropped_log_record_count(self) -> int:
        """Number of records that were never given to the wrapped handler: refused and dropped records."""
        stats = self.stats()
        return stats.refused_total + stats.dropped_total

    def handle(self, record: LogRecord) -> bool | LogRecord:  # type: ignore[override]
        """Queue `record` if the filters let it pass. Takes no handler lock; the class documents when it waits."""
        verdict: bool | LogRecord = record
        if self.filters:
            verdict = self.filter(record)
            if not verdict:
                return verdict
            if isinstance(verdict, LogRecord):
                record = verdict
        self.emit(record)
        return verdict

    def emit(self, record: LogRecord) -> None:
        """Queue `record` without applying the filters."""
        writer = self._writer
        queue = writer.queue
        outcome = queue.put_plain(record, RECORD_BYTES)
        if outcome is None:
            return
        if outcome == "wake":
            writer.wake()
            return
        if outcome == "queue_full" and record.levelno not in self._blocking_levels:
            if not queue.refuse(record.levelno):
                writer.refuse(outcome, record.levelno)
            return
        try:
            entry, size = packed(record, self.formatter, exc_text=self._exc_text)
        except Exception:
            report(self._wrapped_handler, record)
            self._queue.note_refused("bad_arguments", record.levelno, False)
            return
        outcome = queue.put(entry, size)
        if outcome is not None:
            waits = self._blocking_levels.__contains__
            writer.put_slowly(entry, size, record.levelno, outcome, waits, self._blocking_timeout)

    def flush(self, timeout: float | None = None) -> bool:  # type: ignore[override]
        """Wait until all records accepted so far are handled, then flush the wrapped handler.

        On the handler's background thread it does not wait.

        Args:
            timeout: seconds to wait, 0 or more; None: `shutdown_timeout`.

        Returns:
            True if all records were handled and the wrapped handler was flushed, False if the timeout passed first.

        Raises:
            TypeError, ValueError: the timeout is not 0 or more seconds.
        """
        writer = self._writer
        if not writer.drain(writer.shutdown_timeout if timeout is None else checked_timeout(timeout)):
            return False
        self._wrapped_handler.flush()
        return True

    def close(self) -> None:
        """Drain the queue within `shutdown_timeout`, then close the wrapped handler.

        If the timeout passes first, one line on stderr says how many records were not written. The wrapped handler is
        then closed as soon as its current call returns. Records logged after `close()` are handled in the caller.
        """
        self._writer.begin_finish()
        self._writer.finish()
        self._writer.close_when_free()
        super().close()

    def stats(self) -> ThreadHandlerStats:
        """Return the current counters."""
        accepted, written, queued, size, refused, dropped = self._queue.counts()
        tables = (MappingProxyType(refused), MappingProxyType(dropped))
        return ThreadHandlerStats(accepted, written, queued, size, *tables)

    @property
    def _queue(self) -> RecordQueue:
        return self._writer.queue

    def __repr__(self) -> str:
        level = logging.getLevelName(self.level)
        return f"<{type(self).__name__} {self._wrapped_handler!r} ({level})>"


set_thread_handler(ThreadHandler)
