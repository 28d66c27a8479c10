r"""The thread behind a `ThreadHandler`: takes records from the queue and hands them to the handler.

    open -> finishing -> ended: records are handled in the caller
                \-----> given up -> ended

Open: the first record starts the thread. The thread ends for a fork and is started again after it. Finishing: the queue
accepts no more records and is drained. Given up: the deadline passed while the handler was still busy. Each transition
is one flag that is set once.

Invariants: until the end, only the thread in `RecordQueue.claim` takes records from the queue and calls the handler.
While records keep coming, this thread sleeps for short naps and wakes up by itself. The bell wakes it only after a
pause, when the queue is half full, or for a flush, and never for each record. Naps grow while records keep coming: each
wake-up takes the interpreter's lock from the program, so a batch per longest nap is cheaper than one per first nap.
A handler that waits for each record needs the lock again for each record. While it could take only a small part of the
records anyway, the thread pauses between its turns; see `_pace`.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable
from threading import Thread, current_thread, get_ident
from time import monotonic
from typing import Any

from logspool._native import is_adopted
from logspool.base import _locks
from logspool.thread import _hooks as hooks
from logspool.thread._batch import BATCH_RECORDS, is_plain_stream, is_stock_stream, report, write_each, write_joined
from logspool.thread._pace import BatchSize, Turn
from logspool.thread._queue import NEVER, RecordQueue
from logspool.thread._record import Entry, restored

#: Seconds of the first nap after a pause, and of the longest nap. Each nap is twice as long as the one before. After a
#: longest nap without records the writer waits for the bell. Chosen: a record that follows after a pause shorter than
#: the longest nap costs its caller no wake-up. A loaded program is interrupted some 30 times a second, and a record
#: waits no longer than the longest nap. A queue that becomes half full ends a nap.
FIRST_NAP = 0.004
LONGEST_NAP = 0.032

#: Smallest queue at which naps stay long under load. Chosen: half of a smaller queue may be full before the thread is
#: awake, so its naps stay at the first one.
LONG_NAP_CAPACITY = 100

#: Seconds after `start` in which a thread has to come to run. Chosen: it needs the interpreter's lock for a few lines.
START_PATIENCE = 1.0

#: Seconds that `close()` waits for the end of the thread after the thread has finished its work.
JOIN_PATIENCE = 1.0


class WriterThread(Thread):
    """The background thread of a writer. If no thread can be started, a caller does its work instead."""

    def __init__(self, target: Callable[[], None]) -> None:
        # A daemon thread, so that the process ends at the deadline although the handler is stuck. No record is lost
        # by this, because the hooks drain the queue before the interpreter stops daemon threads.
        super().__init__(target=target, name="logspool-thread-handler", daemon=True)
        self._runs: dict[str, bool] = {}
        #: Locked by the first caller that finds the thread lost.
        self._loss_found = _locks.flag()
        #: When `start` has returned, so that `is_alive` is reliable.
        self.started: float | None = None

    def may_run(self, runs: bool) -> bool:
        """Decide once whether the thread does any work; returns the first decision.

        An exception in `start`, such as KeyboardInterrupt, can leave a lock of `threading` taken, so that the new
        thread waits for ever before it runs.
        """
        return self._runs.setdefault("runs", runs)

    def is_lost(self) -> bool:
        """Return True to the first caller after an exception ended the thread before it gave up its claim, or if the
        thread does not come to run.

        In the latter case another exception, such as KeyboardInterrupt, has left a lock of `threading` taken: all new
        threads of the process wait for it. In CPython 3.14 this can happen at the begin of each `with`.
        """
        if self.started is None:
            return False
        if self.is_alive() and (self._runs or monotonic() < self.started + START_PATIENCE or self.may_run(False)):
            return False
        return self._loss_found.acquire(False)


class Writer:
    """Runs `handler` on a thread of its own.

    Args:
        handler: the wrapped handler.
        queue_size: maximum number of records in the queue.
        queue_bytes: maximum number of bytes in the queue.
        flush_interval: maximum seconds until the thread looks at a record, and seconds between two summary records.
        shutdown_timeout: maximum seconds of the drain at the end; None for no limit.
    """

    def __init__(
        self,
        handler: logging.Handler,
        queue_size: int,
        queue_bytes: int,
        flush_interval: float,
        shutdown_timeout: float | None,
    ) -> None:
        self.handler = handler
        self.sizes = (queue_size, queue_bytes)
        self.flush_interval = flush_interval
        self.shutdown_timeout = shutdown_timeout
        self.deadline: float | None = None
        #: Requests to close the handler. The thread that removes a request closes the handler.
        self.closing: deque[None] = deque()
        self.ended = not hooks.add(self)
        self.given_up = _locks.flag()
        self.batch_size = BatchSize(BATCH_RECORDS)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Begin with an empty queue. Also called in a forked child, because the queued records belong to the parent."""
        self.queue = RecordQueue(*self.sizes)
        self.ended = self.ended or self.given_up.locked()
        if self.ended:
            self.queue.shut()
        #: Locked permanently when the drain is given up.
        self.given_up = _locks.flag()
        self.reported = 0
        self.next_summary = 0.0
        self.missing_since = 0.0
        self.directly_busy: set[int] = set()
        #: Identifiers of the threads that wait in `drain`.
        self.draining: set[int] = set()
        self.is_pausing = False

    @property
    def thread(self) -> Thread | None:
        """The thread that runs the handler. The claim of a lost thread ends here."""
        thread = self.queue.thread
        if isinstance(thread, WriterThread) and thread.is_lost():
            if thread.is_alive():
                hooks.put_off_starts()
            self.queue.leave(thread)
            return None
        return thread

    # -- callers ---------------------------------------------------------------------------

    def is_own_thread(self) -> bool:
        """Return whether the calling thread is the thread that runs the handler."""
        return self.thread is current_thread()

    def is_finishing(self) -> bool:
        """Return whether the queue accepts no more records and is being drained."""
        return not (self.queue.limit or self.ended or self.given_up.locked())

    def wake(self) -> None:
        """Wake the thread, or start it."""
        has_thread = self.thread is not None and self.queue.ring()
        if not has_thread and not self.ended and not hooks.forking:  # during a fork, return_from_fork starts it
            self._start()

    def put_slowly(
        self, entry: Entry, size: int, level: int, outcome: str, waits: Callable[[int], bool], timeout: float | None
    ) -> None:
        """Wake the thread if the queue has taken `entry`. Otherwise wait for room if its level `waits`, or count it as
        refused.
        """
        if outcome == "wake":
            self.wake()
            return
        reason: str | None = outcome
        if outcome != "shut":
            if not waits(level) or self.is_own_thread():
                self.refuse(outcome, level)
                return
            reason = self.put_waiting(entry, size, timeout)
        if reason == "shut":
            self.handle_late(entry, size)
        elif reason is not None:
            self.queue.note_refused(reason, level, True)

    def refuse(self, reason: str, level: int) -> None:
        """Count a record that does not wait for room as refused. Wake the thread, which makes room."""
        thread = self.thread
        if thread is None:
            self.wake()
        elif thread is current_thread():
            reason = "own_thread"
        elif self.queue.wake_at != NEVER:
            self.queue.ring()  # the bytes may be full before half of the places are
        self.queue.note_refused(reason, level, True)

    def put_waiting(self, entry: Entry, size: int, timeout: float | None) -> str | None:
        """Queue `entry`, waiting for room for `timeout` seconds. Returns None, or why it is not queued."""
        queue = self.queue
        outcome: str | None = None

        def is_settled() -> bool:
            nonlocal outcome
            outcome = self.queue.put_reserved(entry, size)  # a signal handler may have forked
            if outcome == "wake" or self.thread is None:
                self.wake()
            return outcome in (None, "wake", "shut")

        with queue.reserve():
            if queue.wake_at != NEVER or self.is_pausing:
                queue.ring()  # a small queue may be full before the half-full mark wakes the thread
            if not queue.wait(is_settled, None if timeout is None else monotonic() + timeout):
                return "blocking_timeout"
        return None if outcome == "wake" else outcome

    def drain(self, timeout: float | None) -> bool:
        """Wait until every record accepted so far is handled; False when `timeout` seconds pass."""
        if self.is_own_thread():
            return False
        queue = self.queue
        target = queue.accepted
        deadline = None if timeout is None else monotonic() + timeout
        me = get_ident()
        try:
            self.draining.add(me)  # before the bell, so that no pause follows it
            queue.ring()
            self._wait_for_work(lambda: queue.written >= target or self.given_up.locked(), deadline)
        finally:
            self.draining.discard(me)
        return queue.written >= target

    def handle_late(self, entry: Entry, size: int) -> None:
        """Take a record after the queue was shut: handle it in the caller, or count it as refused."""
        queue = self.queue
        record = self._restored(entry)
        me = get_ident()
        if self.is_finishing():
            if self.is_own_thread():
                if queue.put_own(entry, size) not in (None, "wake"):
                    queue.note_refused("own_thread", record.levelno, True)
                return
            # Records that were accepted before are written first.
            queue.wait(lambda: not self.is_finishing(), self.deadline)
        if not self.ended or me in self.directly_busy:
            queue.note_refused("recursion" if self.ended else "shutdown", record.levelno, False)
            return
        try:
            # Inside of `try`: a signal handler may raise right after it.
            self.directly_busy.add(me)
            if record.levelno >= self.handler.level:
                self.handler.handle(record)
        except Exception:
            report(self.handler, record)
        finally:
            self.directly_busy.discard(me)
            queue.note_direct()

    # -- the end ---------------------------------------------------------------------------

    def begin_finish(self) -> None:
        """Accept no more records into the queue. The thread drains the queue and ends; this does not wait for it."""
        queue = self.queue
        if queue.limit:
            self.deadline = None if self.shutdown_timeout is None else monotonic() + self.shutdown_timeout
            queue.shut()
        if not queue:
            self._rescue()
        self.wake()

    def finish(self) -> None:
        """Wait for the drain that `begin_finish` began. At the deadline, give up the remaining records."""
        queue = self.queue
        thread = self.thread
        if self.is_own_thread():
            return
        self._wait_for_work(lambda: not self.is_finishing(), self.deadline)
        if self.ended:
            if isinstance(thread, WriterThread) and thread.ident is not None and thread.may_run(False):
                thread.join(JOIN_PATIENCE)
        elif self.is_finishing() and self.given_up.acquire(False):
            missing = queue.accepted - queue.written
            while (entry := queue.remove_oldest()) is not None:
                queue.note_dropped("shutdown_timeout", self._restored(entry).levelno)
            queue.open_gates()
            self._give_up(missing)

    def close_when_free(self) -> None:
        """Close the wrapped handler: now, or as soon as the thread has left the handler's code."""
        self.closing.append(None)
        if self.ended:
            self._close()

    def _close(self) -> None:
        try:
            self.closing.pop()
        except IndexError:
            return  # no close was requested, or another thread has taken the request
        self.handler.close()

    def _give_up(self, missing: int) -> None:
        # The handler is removed from logging's list: `logging.shutdown` would wait for the lock of the stuck handler
        # for ever.
        references = logging._handlerList  # type: ignore[attr-defined]
        references[:] = [item for item in references if item() is not self.handler]
        stderr = sys.stderr
        if stderr is None or getattr(self.handler, "stream", None) is stderr:
            return  # in the latter case it is the stream that is stuck
        try:
            stderr.write(
                f"logspool: {self.handler!r}: shutdown_timeout of {self.shutdown_timeout:g} s"
                f" passed, {missing} records not written\n"
            )
            stderr.flush()
        except Exception:
            pass

    # -- fork ------------------------------------------------------------------------------

    def leave_for_fork(self, deadline: float) -> None:
        """Wait until the thread has left the handler, at most until `deadline`."""
        queue = self.queue
        thread = self.thread
        if thread is None or thread is current_thread():
            return
        queue.ring()
        left = queue.wait(lambda: queue.thread is not thread, deadline)
        if left and isinstance(thread, WriterThread) and thread.ident is not None:
            # The thread must have ended, not only left the handler, so that Python sees a single thread at the fork.
            thread.join(max(0.0, deadline - monotonic()))

    def return_from_fork(self) -> None:
        """Continue after a fork, in the parent."""
        if self.queue or not self.queue.limit:
            self.wake()

    # -- the thread ------------------------------------------------------------------------

    def _start(self) -> None:
        queue = self.queue
        thread = WriterThread(self._empty)
        try:
            if monotonic() >= hooks.next_start and queue.claim(thread):
                thread.start()
                thread.started = monotonic()
        except RuntimeError:
            pass  # no thread can be started, or the interpreter is ending: the caller does the work
        finally:
            if thread.started is None and not thread.may_run(False):
                queue.leave(thread)
        self._rescue()

    def _rescue(self) -> None:
        """Empty the queue in the calling thread if no other thread does."""
        while self.thread is None and not self.ended and not hooks.forking:
            self._empty()
            if self.queue.limit and not self.queue:
                return

    def _wait_for_work(self, is_done: Callable[[], bool], deadline: float | None) -> None:
        """Wait until `is_done()` or `deadline`. Empty the queue in this thread if no other thread does."""

        def is_settled() -> bool:
            if not is_done():
                self._rescue()
            return is_done()

        self.queue.wait(is_settled, deadline)

    def _empty(self) -> None:
        me = current_thread()
        queue = self.queue
        nap, longest = FIRST_NAP, min(LONGEST_NAP, self.flush_interval)
        loaded = longest if queue.capacity >= LONG_NAP_CAPACITY else FIRST_NAP
        if isinstance(me, WriterThread) and not me.may_run(True):
            return
        try:
            if not queue.claim(me):
                return
            queue.wake_at = NEVER
            # The handler may fork. In the child, `self.queue` is another queue.
            while queue.thread is me and queue is self.queue and not hooks.forking:
                handler = self.handler
                if is_adopted(handler):
                    has_worked = self._write_batch(queue, None)
                elif is_plain_stream(handler):
                    has_worked = self._write_batch(queue, handler)
                else:
                    has_worked = self._take_turn(queue, me, handler if is_stock_stream(handler) else None)
                if has_worked:
                    # After a pause the naps begin anew; under load they stay at the longest.
                    nap = FIRST_NAP if nap > 2 * longest else min(nap, loaded)
                elif self._rest(queue, me, nap, longest):
                    nap *= 2
                else:
                    return
        finally:
            # Also done after an error in this module, or an exception that other code raised asynchronously in the
            # thread.
            try:
                queue.leave(me)
            finally:
                queue.leave(me)  # a signal handler may have interrupted the first call

    def _take_turn(self, queue: RecordQueue, me: Thread, stream: logging.StreamHandler[Any] | None) -> bool:
        """Hand records to the handler for the time of a turn: several with one flush to a stock `stream` handler, to
        others record by record. Returns whether there were any."""
        turn = Turn(queue)
        while entries := queue.take(1 if stream is None else self.batch_size.count):
            self._before_records(queue)
            records = [self._restored(entry) for entry in entries]
            if stream is None:
                self._deliver(records[0])
            else:
                self._write_few(queue, stream, records)
            if queue is not self.queue or hooks.forking:
                return True
            if turn.is_over():
                if isinstance(me, WriterThread):
                    self._pause(queue, turn.pause(queue))
                return True
        return turn.has_begun(queue)

    def _write_few(
        self, queue: RecordQueue, stream: logging.StreamHandler[Any], records: list[logging.LogRecord]
    ) -> None:
        began = monotonic()
        try:
            # The stream may fork. In the child, `self.queue` is another queue.
            write_each(stream, records, lambda: queue is self.queue)
        except BaseException:
            if queue is self.queue:
                report(stream, *records)
        self.batch_size.measure(began, len(records))

    def _pause(self, queue: RecordQueue, seconds: float) -> None:
        """Let the program run before the next turn. A flush, a fork, the end and a caller that waits end the pause."""
        if seconds and queue.limit and not self.draining and not queue.waiting:
            self.is_pausing = True
            try:
                queue.bell.acquire(True, seconds)
            finally:
                self.is_pausing = False

    def _rest(self, queue: RecordQueue, me: Thread, nap: float, longest: float) -> bool:
        """Sleep until there may be records or a request. Returns False if the thread has to end."""
        queue.open_gates()
        self._summarise()
        is_shut = not queue.limit
        napping = nap <= longest
        queue.wake_at = max(2, queue.capacity // 2) if napping else 1
        if not queue:  # checked after `wake_at` is set, so that a record in between rings the bell
            if is_shut:
                self._end()
                return False
            if not isinstance(me, WriterThread):
                return False
            queue.bell.acquire(True, nap if napping else self.flush_interval)
        queue.wake_at = NEVER
        return True

    def _end(self) -> None:
        self._summarise(last=True)
        self.ended = True
        hooks.writers.discard(self)
        try:
            self._close()
        except Exception:
            pass  # an exception of the handler can be reported to nobody

    def _write_batch(self, queue: RecordQueue, stream: logging.StreamHandler[Any] | None) -> bool:
        """Give a batch of records to a handler that waits for no output, or in one write to a plain `stream` handler.

        Returns whether there were any.
        """
        entries = queue.take(BATCH_RECORDS)
        if not entries:
            return False
        self._before_records(queue)
        remaining = iter([self._restored(entry) for entry in entries])
        try:
            if stream is not None:
                records = list(remaining)
                remaining = iter(records)  # all of them are reported if this fails
                write_joined(stream, records)
                return True
            for record in remaining:
                self._deliver(record)
                if queue is not self.queue:
                    break  # the handler has forked, and this is the child
        except BaseException:
            report(self.handler, *remaining)
        return True

    def _before_records(self, queue: RecordQueue) -> None:
        if queue.gates and queue.accepted - queue.written <= queue.capacity // 2:
            queue.open_gates()
        if queue.missed != self.reported:
            self._summarise(overloaded=True)

    def _restored(self, entry: Entry) -> logging.LogRecord:
        """Return the record for an entry of the queue."""
        return restored(entry)

    def _deliver(self, record: logging.LogRecord) -> None:
        try:
            if record.levelno >= self.handler.level:
                self.handler.handle(record)
        except BaseException:
            report(self.handler, record)

    def _summarise(self, *, overloaded: bool = False, last: bool = False) -> None:
        """Log how many records are missing, as soon as there is room again.

        While the queue is `overloaded`, which may never end, log it `flush_interval` seconds after the first missing
        record.
        """
        missed = self.queue.missed - self.reported
        if missed <= 0:
            return
        now = monotonic()
        due = self.next_summary
        if overloaded:
            self.missing_since = self.missing_since or now
            due = self.missing_since + self.flush_interval
        if now < due and not last:
            return
        self.reported += missed
        self.missing_since = 0.0
        self.next_summary = now + self.flush_interval
        message = "%d records dropped"
        level = logging.WARNING
        self._deliver(logging.LogRecord("logspool", level, __file__, 0, message, (missed,), None, "ThreadHandler"))
