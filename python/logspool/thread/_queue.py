"""The bounded queue of `ThreadHandler`: takes records from any thread to one writer, and lets threads wait for changes.

Native code stores and counts the records. Each native method is atomic, so a signal handler or a finalizer that logs in
the middle of a call may use the queue like any other caller. No code of this module holds a lock while it calls other
code.
"""

from __future__ import annotations

from _thread import LockType
from collections import deque
from collections.abc import Callable
from threading import Thread
from time import monotonic

from logspool import _native
from logspool.base import _locks

#: A value of `wake_at` that is larger than any depth, so that no record wakes the thread.
NEVER = 1 << 62

#: Shortest and longest interval, in seconds, at which a waiting caller checks for room. A waiting caller is also woken
#: when the queue is half empty; the checks are for slow handlers, which may need minutes for half the queue. Chosen:
#: one switch interval of the interpreter, and ten switch intervals.
FIRST_LOOK = 0.005
LONGEST_LOOK = 0.05


class RecordQueue(_native.RecordQueue):
    """Records on their way to the writer: at most `capacity` records and at most `max_bytes` estimated bytes."""

    def __init__(self, capacity: int, max_bytes: int) -> None:
        #: Holds the thread that empties the queue, if there is one. It is a dict, because `setdefault` and `pop` are
        #: atomic.
        self.lock: dict[str, Thread] = {}
        #: One locked lock for each thread that waits in `wait`. Releasing the lock wakes the thread.
        self.gates: deque[LockType] = deque()
        self.bell = _locks.flag()
        self.bell.acquire()

    @property
    def thread(self) -> Thread | None:
        """The thread that empties the queue."""
        return self.lock.get("thread")

    def claim(self, thread: Thread) -> bool:
        """Let `thread` empty the queue, unless another thread does. Returns whether `thread` empties it now."""
        return self.lock.setdefault("thread", thread) is thread

    def leave(self, thread: Thread) -> None:
        """End the claim of `thread`, if it has one. The next record then has to start a thread."""
        if self.thread is thread:
            self.take(0)
            del self.lock["thread"]
        if self.thread is None:  # also if an exception has interrupted a call before this line
            self.wake_at = 1
        self.open_gates()

    def wait(self, ready: Callable[[], bool], deadline: float | None) -> bool:
        """Wait until `ready()` is true or `deadline`. Checks when the writer opens the gates, and at intervals."""
        gate = _locks.flag()
        gate.acquire()
        look = FIRST_LOOK
        self.gates.append(gate)
        try:
            while not ready():
                seconds = look if deadline is None else min(look, deadline - monotonic())
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
                pass  # the writer has removed and opened the gate

    def open_gates(self) -> None:
        """Wake all threads that wait in `wait`, so that they check again."""
        while self.gates:
            try:
                self.gates.popleft().release()
            except (IndexError, RuntimeError):
                pass  # another thread has removed the last gate

    def ring(self) -> bool:
        """Wake the thread that empties the queue; never waits. Returns False if there is no such thread."""
        self.wake_at = NEVER
        if self.thread is None:
            self.wake_at = 1
            return False
        try:
            self.bell.release()
        except RuntimeError:
            pass  # the bell was rung already
        return True
