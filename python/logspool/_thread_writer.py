"""The thread behind a `ThreadHandler`: takes records from the queue and hands them to the handler.

States:

    IDLE -> RUNNING -> FINISHING -> DIRECT
                            \\-----> ABANDONED

IDLE: no thread yet; the first record starts it. RUNNING: a thread empties the queue (or left it for
a fork and returns). FINISHING: no record is taken any more, the thread drains. DIRECT: late records
are handled in the caller. ABANDONED: the deadline passed with the handler still busy.

Invariants: exactly one thread, `self.thread`, takes from the queue; it alone calls the handler until
DIRECT. It wakes up by a nap's end while records keep coming and by the bell only after a pause, at
half a queue, or for a flush: never for each record.
"""

from __future__ import annotations

import enum
import logging
import sys
from threading import Thread, current_thread, get_ident
from time import monotonic

from . import _thread_hooks as hooks
from ._thread_batch import BATCH_RECORDS, is_plain_stream, report, write_joined
from ._thread_queue import NEVER, RecordQueue
from ._thread_record import Entry, level_of, restored

#: Seconds of the first nap after records and of the longest before the writer asks to be woken.
#: Chosen: a record after a pause of less than the longest costs no wake-up; half the first
#: doubles the naps under load without a record being written earlier in a burst.
FIRST_NAP = 0.004
LONGEST_NAP = 0.032

#: Seconds `close()` waits for the end of a thread that has nothing left to do.
JOIN_PATIENCE = 1.0


class State(enum.Enum):
    """What happens to a record (see the head of the file)."""

    IDLE = "idle"
    RUNNING = "running"
    FINISHING = "finishing"
    DIRECT = "direct"
    ABANDONED = "abandoned"


class Step(enum.Enum):
    """What the thread does when it finds the queue empty, or is to make way."""

    GO_ON = "go on"
    REST = "rest"
    LEAVE = "leave"
    END = "end"


class WriterThread(Thread):
    """The background thread of a writer, as opposed to a caller that stands in for it."""


class Writer:
    """Runs `handler` on a thread of its own.

    Args:
        handler: the wrapped handler.
        queue: the records; this writer is the only one to take from it.
        flush_interval: seconds a record may wait unseen, and between two summary records.
        shutdown_timeout: seconds for the drain at the end, None for as long as it takes.
    """

    def __init__(
        self,
        handler: logging.Handler,
        queue: RecordQueue,
        flush_interval: float,
        shutdown_timeout: float | None,
    ) -> None:
        self.handler = handler
        self.queue = queue
        self.flush_interval = flush_interval
        self.shutdown_timeout = shutdown_timeout
        self.state = State.DIRECT if hooks.has_exited() else State.IDLE
        self.thread: Thread | None = None
        #: Identity of the thread that takes from the queue, for "am I the writer?".
        self.ident: int | None = None
        self.deadline: float | None = None
        self.close_at_end = False
        self.orphaned = False
        self.reported = 0
        self.next_summary = 0.0
        self.missing_since: float | None = None
        self.directly_busy: set[int] = set()
        queue.on_late = self._on_late
        hooks.writers.add(self)

    # -- callers ---------------------------------------------------------------------------

    def start(self) -> bool:
        """Open the queue and start the thread, unless somebody did.

        Returns False when no thread can be had.
        """
        thread = self._new_thread()

        def claim() -> bool:
            if self.state is not State.IDLE:
                return False
            self.state = State.RUNNING
            self.queue.limit = self.queue.capacity
            if hooks.forking:
                return False  # return_from_fork starts it
            self.thread = thread
            return True

        return not self.queue.locked(claim) or self._launch(thread)

    def is_own_thread(self) -> bool:
        """Tell whether the caller is the thread that runs the handler."""
        return self.ident == get_ident()

    def drain(self, timeout: float | None) -> bool:
        """Wait until every record accepted so far is handled; False when `timeout` seconds pass."""
        if self.is_own_thread():
            return False
        queue = self.queue
        target = queue.accepted
        deadline = None if timeout is None else monotonic() + timeout

        def is_settled() -> bool:
            if queue.written >= target or self.state is State.ABANDONED:
                return True
            self._rescue()
            return False

        queue.ring()
        return queue.wait(is_settled, deadline) and queue.written >= target

    def handle_late(self, entry: Entry, size: int) -> None:
        """Take a record when no queue is open: handle it in the caller, or count it as refused."""
        queue = self.queue
        if queue.is_nested():
            queue.leave_aside((entry, size))
            return
        level = level_of(entry)
        if self.state is State.FINISHING:
            if self.is_own_thread():
                if not queue.try_put(entry, size, queue.capacity):
                    queue.refuse("own_thread", level)
                return
            # What was accepted before goes first.
            queue.wait(lambda: self.state is not State.FINISHING, self.deadline)
        if self.state is State.FINISHING or self.state is State.ABANDONED:
            queue.refuse("shutdown", level)
            return
        me = get_ident()
        if me in self.directly_busy or me == self.ident:
            queue.refuse("recursion", level)
            return
        self.directly_busy.add(me)
        record = restored(entry)
        try:
            if record.levelno >= self.handler.level:
                self.handler.handle(record)
        except Exception:
            report(self.handler, record)
        finally:
            self.directly_busy.discard(me)
            queue.count_direct()

    def _on_late(self, item: tuple[Entry, int] | None) -> None:
        """Care for a record that met the queue while it was being shut (see `RecordQueue.on_late`)."""
        if self.state is State.IDLE:
            self.start()
        if item is None:
            self._rescue()
        elif self.state is not State.RUNNING:
            self.handle_late(*item)
        elif not self.queue.try_put(*item, self.queue.capacity):
            self.queue.refuse("queue_full", level_of(item[0]))

    # -- the end ---------------------------------------------------------------------------

    def begin_finish(self) -> None:
        """Take no further record into the queue; the thread drains it and ends."""
        queue = self.queue
        deadline = None if self.shutdown_timeout is None else monotonic() + self.shutdown_timeout

        def shut() -> None:
            if self.state is State.IDLE and queue.taken == queue.accepted:
                self.state = State.DIRECT
            elif self.state is State.IDLE or self.state is State.RUNNING:
                self.state = State.FINISHING
                self.deadline = deadline
            queue.limit = 0

        queue.locked(shut)
        queue.ring()

    def finish(self) -> bool:
        """Wait for the drain that `begin_finish` began; at the deadline give up the rest.

        Returns False when the handler is still busy.
        """
        if self.is_own_thread():
            return False
        queue = self.queue
        thread = self.thread

        def has_ended() -> bool:
            if self.state is not State.FINISHING:
                return True
            self._rescue()
            return False

        def give_up() -> bool:
            if self.state is not State.FINISHING:
                return False
            self.state = State.ABANDONED
            return True

        queue.wait(has_ended, self.deadline)
        if queue.locked(give_up):
            queue.drop_all("shutdown_timeout")
            queue.open_gates()
            self._forget_at_shutdown()
            self._report_deadline(queue.accepted - queue.written)
        if self.state is not State.DIRECT:
            return False
        if isinstance(thread, WriterThread) and thread.ident is not None:
            thread.join(JOIN_PATIENCE)
        return True

    def close_when_free(self) -> None:
        """Close the wrapped handler: now, or when the thread is out of it."""

        def postpone() -> bool:
            self.close_at_end = self.state is not State.DIRECT
            return self.close_at_end

        if not self.queue.locked(postpone):
            hooks.retire(self)
            self.handler.close()

    def end_without_handler(self) -> None:
        """Drain and end because the ThreadHandler is gone. Does not wait."""
        self.orphaned = True
        self.begin_finish()
        if self.state is State.DIRECT:
            hooks.retire(self)

    # -- fork ------------------------------------------------------------------------------

    def leave_for_fork(self, deadline: float) -> None:
        """Wait until the thread has left the handler, at most until `deadline`."""
        thread = self.thread
        if thread is None or self.is_own_thread() or self.state is not State.RUNNING:
            return
        self.queue.ring()
        left = self.queue.wait(lambda: self.thread is not thread, deadline)
        if left and isinstance(thread, WriterThread) and thread.ident is not None:
            # Not only out of the handler but gone, so that Python sees one thread.
            thread.join(max(0.0, deadline - monotonic()))

    def return_from_fork(self) -> None:
        """Go on after a fork, in the parent."""
        if hooks.forking or self.thread is not None:
            return
        thread = self._new_thread()
        queue = self.queue

        def claim() -> bool:
            running = self.state is State.RUNNING
            if self.thread is not None or not (running or self.state is State.FINISHING):
                return False
            if running and queue.taken == queue.accepted:
                self.state = State.IDLE
                queue.limit = 0
                return False
            self.thread = thread
            return True

        if queue.locked(claim):
            self._launch(thread)

    def forget_parent(self) -> None:
        """Begin anew in a forked child: the records in the queue are the parent's."""
        self.queue.reset()
        self.thread = None
        self.ident = None
        self.reported = 0
        self.next_summary = 0.0
        self.missing_since = None
        self.directly_busy = set()
        if self.state is State.RUNNING or self.state is State.FINISHING:
            self.state = State.IDLE
        elif self.state is State.ABANDONED:
            self.state = State.DIRECT

    # -- the thread ------------------------------------------------------------------------

    def _new_thread(self) -> Thread:
        # A daemon: at the deadline the process ends although the handler is stuck. Nothing is
        # lost by it, because the hooks drain before the interpreter stops daemons.
        return WriterThread(target=self._run, name="logspool-thread-handler", daemon=True)

    def _launch(self, thread: Thread) -> bool:
        try:
            thread.start()
        except RuntimeError:
            # No more threads, or the interpreter is ending: the caller does the work.
            self._leave(thread)
            self._rescue()
            return False
        return True

    def _rescue(self) -> None:
        """Empty the queue in the caller if no thread does."""
        if self.thread is not None or hooks.forking or self.queue.is_nested():
            return
        me = current_thread()

        def claim() -> bool:
            if self.thread is not None:
                return False
            self.thread = me
            return True

        if self.queue.locked(claim):
            self._empty(me, lasting=False)

    def _run(self) -> None:
        me = current_thread()
        if self.thread is me:
            self._empty(me, lasting=True)

    def _empty(self, me: Thread, *, lasting: bool) -> None:
        self.ident = get_ident()
        queue = self.queue
        nap = FIRST_NAP
        try:
            while self.thread is me:
                if queue.taken < queue.accepted and not hooks.forking:
                    self._write(me)
                    nap = FIRST_NAP
                elif self._settle(me, nap, lasting):
                    return
                else:
                    nap *= 2
        except BaseException:
            # A fault of this file, or an exception thrown into the thread from outside. The next
            # record starts a new thread.
            self._leave(me)
            raise

    def _leave(self, me: Thread) -> None:
        def leave() -> None:
            if self.thread is me:
                self._step_back()

        self.queue.locked(leave)
        self.queue.open_gates()

    def _step_back(self) -> None:
        """Be no longer the one that empties the queue; the next record starts a thread. A section."""
        self.ident = None
        self.thread = None
        if self.state is State.RUNNING:
            self.state = State.IDLE
            self.queue.limit = 0

    def _settle(self, me: Thread, nap: float, lasting: bool) -> bool:
        """Rest until there is something to do. Returns True when the thread is to end."""
        queue = self.queue
        queue.open_gates()
        queue.merge_aside()
        self._summarise()
        step = queue.locked(lambda: self._next_step(me, nap, lasting))
        if step is Step.GO_ON:
            return False
        if step is Step.END:
            self._end()
        if step is not Step.REST:
            queue.open_gates()
            return True
        long = queue.wake_at == 1
        queue.bell.acquire(True, self.flush_interval if long else nap)
        queue.wake_at = NEVER
        return False

    def _next_step(self, me: Thread, nap: float, lasting: bool) -> Step:
        """Decide, as a section, what an empty queue or a fork means for this thread."""
        queue = self.queue
        if self.thread is not me:
            return Step.LEAVE
        if hooks.forking and self.state is State.RUNNING:
            # Out of the way, with the queue still open: return_from_fork sees to it.
            self.ident = None
            self.thread = None
            return Step.LEAVE
        if queue.taken < queue.accepted:
            return Step.GO_ON
        if self.state is State.FINISHING or self.state is State.ABANDONED:
            return Step.END
        if not lasting:
            self._step_back()
            return Step.LEAVE
        napping = nap <= min(LONGEST_NAP, self.flush_interval)
        queue.wake_at = max(2, queue.capacity // 2) if napping else 1
        return Step.REST

    def _end(self) -> None:
        self._summarise(last=True)

        def end() -> bool:
            self.ident = None
            self.thread = None
            self.state = State.DIRECT
            return self.close_at_end

        close = self.queue.locked(end)
        if close:
            try:
                self.handler.close()
            except Exception:
                pass  # nobody is left to tell
        if close or self.orphaned:
            hooks.retire(self)

    def _write(self, me: Thread) -> None:
        """Hand a batch of records to the handler."""
        queue = self.queue
        handler = self.handler
        if is_plain_stream(handler):
            last = min(queue.accepted, queue.taken + BATCH_RECORDS)
            pop = queue.entries.pop
            records = []
            size = 0
            for number in range(queue.taken + 1, last + 1):
                item = pop(number, None)
                if item is not None:  # else it was dropped meanwhile
                    records.append(restored(item[0]))
                    size += item[1]
            queue.taken = last
            try:
                write_joined(handler, records)
            except BaseException:
                for record in records:
                    report(handler, record)
            finally:
                self._count(me, len(records), size)
        else:
            item = queue.take(queue.taken + 1)
            if item is not None:
                try:
                    self._deliver(restored(item[0]))
                finally:
                    self._count(me, 1, item[1])
        if queue.gates and queue.accepted - queue.written <= queue.capacity // 2:
            queue.open_gates()
        if queue.missed != self.reported:
            self._summarise_overload()

    def _count(self, me: Thread, records: int, size: int) -> None:
        if self.thread is me:  # else the handler forked, and this is the child
            self.queue.bytes_out += size
            self.queue.written += records

    def _deliver(self, record: logging.LogRecord) -> None:
        handler = self.handler
        try:
            if record.levelno >= handler.level:
                handler.handle(record)
        except BaseException:
            report(handler, record)

    def _summarise(self, *, last: bool = False) -> None:
        """Tell the reader of the log how many records are missing, once there is room again."""
        queue = self.queue
        missed = queue.missed - self.reported
        if missed <= 0:
            return
        now = monotonic()
        if now < self.next_summary and not last:
            return
        self.reported += missed
        self.missing_since = None
        self.next_summary = now + self.flush_interval
        self._deliver(
            logging.LogRecord(
                "logspool",
                logging.WARNING,
                __file__,
                0,
                "%d records dropped",
                (missed,),
                None,
                "ThreadHandler",
            )
        )

    def _summarise_overload(self) -> None:
        """Do not wait for an empty queue, which may never come, for longer than `flush_interval`."""
        now = monotonic()
        if self.missing_since is None:
            self.missing_since = now
        elif now - self.missing_since >= self.flush_interval:
            self._summarise()

    def _forget_at_shutdown(self) -> None:
        # `logging.shutdown` would wait for the lock of the stuck handler, for ever.
        references = logging._handlerList  # type: ignore[attr-defined]
        references[:] = [item for item in references if item() is not self.handler]

    def _report_deadline(self, count: int) -> None:
        stderr = sys.stderr
        if stderr is None or getattr(self.handler, "stream", None) is stderr:
            return  # in the latter case it is the stream that is stuck
        try:
            stderr.write(
                f"logspool: {self.handler!r}: shutdown_timeout of {self.shutdown_timeout:g} s"
                f" passed, {count} records not written\n"
            )
            stderr.flush()
        except Exception:
            pass
