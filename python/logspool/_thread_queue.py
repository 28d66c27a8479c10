"""The bounded queue of `ThreadHandler`: records from any thread to one writer, and their count.

Invariants:

- Records carry numbers 1, 2, 3, ... in the order of acceptance, and `entries` maps a number to its
  record until the writer pops it. `accepted` is the last number given.
- `accepted == written + dropped + queued`: `queued` is the difference, never a counter of its own.
  `written` has one writer, the thread that empties the queue; everything else changes under `lock`.
- `lock` is re-entrant, because a signal handler or a finalizer may log while its own thread is
  inside one of the sections below. Such a nested call finds `busy` set and leaves its record in
  `side`; the interrupted call merges it when it is done. So sections need not be atomic (before
  Python 3.11 a signal handler runs between any two steps).
- Nobody waits or calls a handler while holding `lock`, not even a nested call while the call below
  it does (`is_nested`): the writer needs `lock` before it rests.

What it does not do: start threads, know handlers, format.
"""

from __future__ import annotations

from _thread import LockType
from collections import deque
from collections.abc import Callable
from threading import Lock, RLock
from time import monotonic
from typing import TypeVar

from ._thread_record import Entry, level_of

T = TypeVar("T")

#: What a nested call leaves behind: a record, or the key of a counter.
_Aside = tuple[Entry, int] | tuple[None, tuple[str, int]]

#: A value of `wake_at` that no depth reaches.
NEVER = 1 << 62

#: Seconds between two looks of a waiting caller, first and longest. A waiter is woken when the
#: queue is half empty; the look is for slow handlers, where half the queue may be minutes.
#: Chosen: one switch interval of the interpreter, and ten.
FIRST_LOOK = 0.005
LONGEST_LOOK = 0.05

#: Records of nested calls that wait to be merged. They come from one signal handler or finalizer
#: inside a section of microseconds; chosen: a dump of many lines passes.
SIDE_RECORDS = 1000

#: What a nested call leaves behind when it counts instead of putting.
_DIRECT = ("direct", 0)


class RecordQueue:
    """Records on their way to the writer, bounded by number and by bytes.

    Args:
        capacity: records.
        max_bytes: bytes by the estimate of `_thread_record.weight`. A single larger record is
            taken when the queue is empty: the bound is this or one record, whichever is more.
    """

    __slots__ = (
        "accepted",
        "bell",
        "busy",
        "bytes_in",
        "bytes_out",
        "capacity",
        "direct",
        "dropped",
        "entries",
        "gates",
        "limit",
        "lock",
        "max_bytes",
        "missed",
        "on_late",
        "refused",
        "side",
        "taken",
        "waiters",
        "waiting",
        "wake_at",
        "written",
    )

    def __init__(self, capacity: int, max_bytes: int) -> None:
        self.capacity = capacity
        self.max_bytes = max_bytes
        #: Called for a nested record that comes to a shut queue, and without one when a record got
        #: in although the queue was being shut.
        self.on_late: Callable[[tuple[Entry, int] | None], None] = _ignore
        self.reset()

    def reset(self) -> None:
        """Empty the queue and its counters and make its locks anew. For a forked child."""
        self.lock = RLock()
        self.busy = False
        self.side: deque[_Aside] = deque()
        self.entries: dict[int, tuple[Entry, int]] = {}
        #: Records `try_put` takes: `capacity` while somebody empties the queue, else 0, so that
        #: the fast path has one comparison for "full", "not started", "closed".
        self.limit = 0
        self.accepted = 0
        self.taken = 0
        self.written = 0
        #: Records handled in the caller; they count as accepted and written.
        self.direct = 0
        #: Records given up after they were accepted, by (reason, level).
        self.dropped: dict[tuple[str, int], int] = {}
        self.refused: dict[tuple[str, int], int] = {}
        #: Refused for want of room: what the summary record reports.
        self.missed = 0
        self.bytes_in = 0
        self.bytes_out = 0
        #: Callers that wait for room, and their number. Each has a place reserved against later
        #: comers.
        self.waiters: list[object] = []
        self.waiting = 0
        self.gates: deque[LockType] = deque()
        #: Depth at which a caller wakes the writer. NEVER while the writer is awake.
        self.wake_at = NEVER
        self.bell = Lock()
        self.bell.acquire()

    # -- callers ---------------------------------------------------------------------------

    def try_put(self, entry: Entry, size: int, limit: int | None = None) -> bool:
        """Queue `entry` if there is room, without waiting.

        Args:
            entry: the record.
            size: its weight in bytes.
            limit: records that may be queued with it; None: what is left beside those who wait.
        """
        item = (entry, size)
        sleeping = False
        with self.lock:
            if self.busy:
                self.leave_aside(item)
                return True
            self.busy = True
            try:
                if limit is None:
                    limit = self.limit - self.waiting
                number = self.accepted + 1
                depth = number - self.written
                occupied = self.bytes_in + size
                if depth > limit or (occupied - self.bytes_out > self.max_bytes and depth > 1):
                    number = 0
                else:
                    self.entries[number] = item
                    self.accepted = number
                    self.bytes_in = occupied
                    sleeping = depth >= self.wake_at
            finally:
                self.busy = False
        if sleeping:
            self.ring()
        if self.side or not self.limit:
            self._merge()
        return number > 0

    def put_wait(self, entry: Entry, size: int, deadline: float | None) -> bool:
        """Queue `entry`, waiting for room until `deadline` (`time.monotonic`, None: for ever).

        Returns False at the deadline, or as soon as the queue is shut.
        """
        if self.is_nested():
            self.leave_aside((entry, size))
            return True
        put = False
        waiters = self.waiters

        def try_again() -> bool:
            nonlocal put
            put = self.try_put(entry, size, self.limit)
            return put or not self.limit

        try:
            with self.lock:
                waiters.append(try_again)
                self.waiting = len(waiters)
            if self.wake_at != NEVER:
                self.ring()  # a small queue is full before half of it wakes the writer
            self.wait(try_again, deadline)
        finally:
            with self.lock:
                if try_again in waiters:
                    waiters.remove(try_again)
                self.waiting = len(waiters)
            self.merge_aside()
        return put

    def wait(self, ready: Callable[[], bool], deadline: float | None) -> bool:
        """Wait until `ready()` or `deadline`; asks when the writer opens the gates, and now and then.

        A nested call does not wait.
        """
        if self.is_nested():
            return ready()
        gate = Lock()
        gate.acquire()
        look = FIRST_LOOK
        self.gates.append(gate)
        try:
            while not ready():
                seconds = look
                if deadline is not None:
                    seconds = min(look, deadline - monotonic())
                    if seconds <= 0:
                        return False
                if gate.acquire(True, seconds):
                    self.gates.append(gate)
                else:
                    look = min(2 * look, LONGEST_LOOK)
            return True
        finally:
            try:
                self.gates.remove(gate)
            except ValueError:
                pass

    def refuse(self, reason: str, level: int) -> None:
        """Count a record that is not taken."""
        self._count((reason, level))

    def count_direct(self) -> None:
        """Count a record that was handled in the caller."""
        self._count(_DIRECT)

    def _count(self, key: tuple[str, int]) -> None:
        with self.lock:
            if self.busy:
                self.side.append((None, key))
                return
            self.busy = True
            try:
                self._add(key)
            finally:
                self.busy = False
        if self.side:
            self._merge()

    def _add(self, key: tuple[str, int]) -> None:
        if key is _DIRECT:
            self.direct += 1
            return
        if key[0] in MISSED_REASONS:
            self.missed += 1
        self.refused[key] = self.refused.get(key, 0) + 1

    def locked(self, action: Callable[[], T]) -> T:
        """Run `action` as a section: alone among threads, and not entered by nested calls."""
        with self.lock:
            outer = self.busy
            self.busy = True
            try:
                result = action()
            finally:
                self.busy = outer
        if self.side:
            self._merge()
        return result

    def is_nested(self) -> bool:
        """Tell whether this call interrupted one of the same thread that holds `lock`."""
        return self.lock._is_owned()  # type: ignore[attr-defined, no-any-return]

    def merge_aside(self) -> None:
        """Take over what nested calls left behind and nobody merged."""
        if self.side:
            self._merge()

    def leave_aside(self, item: tuple[Entry, int]) -> None:
        """Take a record of a nested call; the call it interrupted puts it in order."""
        if len(self.side) < SIDE_RECORDS:
            self.side.append(item)
        else:
            self.side.append((None, ("queue_full", level_of(item[0]))))

    def _merge(self) -> None:
        """Take over what nested calls left behind, unless this is one itself."""
        while True:
            late = None
            with self.lock:
                if self.busy:
                    return
                self.busy = True
                try:
                    if not self.side:
                        break
                    item = self.side.popleft()
                    if item[0] is None:
                        self._add(item[1])
                    elif self.limit:
                        # Over the limit by what one interruption made: it could not wait.
                        number = self.accepted + 1
                        self.entries[number] = item
                        self.accepted = number
                        self.bytes_in += item[1]
                    else:
                        late = item
                finally:
                    self.busy = False
            if late is not None:
                self.on_late(late)
            else:
                self.ring()
        if not self.limit and self.taken < self.accepted:
            self.on_late(None)

    def is_full_by_bytes(self) -> bool:
        """Tell whether the byte bound, not the record bound, is what keeps records out."""
        return self.accepted - self.written + self.waiting < self.limit

    def ring(self) -> None:
        """Wake the writer. Never waits."""
        self.wake_at = NEVER
        try:
            self.bell.release()
        except RuntimeError:
            pass  # rung already

    # -- the writer ------------------------------------------------------------------------

    def take(self, number: int) -> tuple[Entry, int] | None:
        """Remove and return record `number`; None where it was dropped meanwhile."""
        item = self.entries.pop(number, None)
        self.taken = number
        return item

    def open_gates(self) -> None:
        """Let everyone who waits look again."""
        gates = self.gates
        while gates:
            try:
                gates.popleft().release()
            except (IndexError, RuntimeError):
                pass

    def drop_all(self, reason: str) -> int:
        """Give up every record that nobody has taken; returns their number."""
        count = 0
        for number in list(self.entries):
            item = self.entries.pop(number, None)
            if item is None:
                continue
            count += 1
            key = (reason, level_of(item[0]))
            with self.lock:
                self.dropped[key] = self.dropped.get(key, 0) + 1
        return count


def _ignore(item: tuple[Entry, int] | None) -> None:
    pass


# Reasons for a refusal:
#
# - `queue_full`, `queue_bytes`: `queue_size` records or `queue_bytes` bytes were queued, and the level does not wait.
# - `blocking_timeout`: no room within `blocking_timeout`.
# - `own_thread`: made by the writer thread itself, which never waits, and there was no room.
# - `bad_arguments`: the message could not be made; reported by the wrapped handler's `handleError`.
# - `shutdown`: made after `shutdown_timeout` had passed with the wrapped handler still busy.
# - `recursion`: made by the wrapped handler while it handled a record in the caller.

#: The reasons that the summary record tells the reader of the log about.
MISSED_REASONS = frozenset(("queue_full", "queue_bytes", "blocking_timeout", "own_thread"))
