"""The bounded queue of `ThreadHandler`: records from any thread to one writer, and the waiting beside it.

Native code holds and counts the records. Each of its methods is one step, so a signal handler or a finalizer that logs
in the middle of a call may use the queue like any other caller. Nothing here holds a lock while it does anything else.
"""

from __future__ import annotations

from _thread import LockType
from collections import deque
from collections.abc import Callable
from threading import Lock, Thread
from time import monotonic

from . import _native

#: A value of `wake_at` that no depth reaches.
NEVER = 1 << 62

#: Seconds between two looks of a waiting caller, first and longest. A waiter is woken when the queue is half empty; the
#: look is for slow handlers, where half the queue may be minutes. Chosen: one switch interval of the interpreter, and
#: ten.
FIRST_LOOK = 0.005
LONGEST_LOOK = 0.05


class RecordQueue(_native.RecordQueue):
    """Records on their way to the writer, at most `capacity` and `max_bytes` of estimated weight."""

    def __init__(self, capacity: int, max_bytes: int) -> None:
        #: The thread that empties the queue, if there is one. A dictionary, because `setdefault` and `pop` are atomic.
        self.lock: dict[str, Thread] = {}
        #: Those who wait for a change; see `wait`.
        self.gates: deque[LockType] = deque()
        self.bell = Lock()
        self.bell.acquire()

    @property
    def thread(self) -> Thread | None:
        """The thread that empties the queue."""
        return self.lock.get("thread")

    def claim(self, thread: Thread) -> bool:
        """Make `thread` the one that empties the queue, unless there is one. Returns whether it is."""
        return self.lock.setdefault("thread", thread) is thread

    def leave(self, thread: Thread) -> None:
        """End the claim of `thread`, if it has one. From then on the first record asks for a thread."""
        if self.thread is thread:
            self.take(0)
            del self.lock["thread"]
            self.wake_at = 1
        self.open_gates()

    def wait(self, ready: Callable[[], bool], deadline: float | None) -> bool:
        """Wait until `ready()` or `deadline`; asks when the writer opens the gates, and now and then."""
        gate = Lock()
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
                pass  # the gate is open

    def open_gates(self) -> None:
        """Let everyone who waits look again."""
        while self.gates:
            try:
                self.gates.popleft().release()
            except (IndexError, RuntimeError):
                pass  # another thread was faster

    def ring(self) -> bool:
        """Wake the thread that empties the queue; never waits. Returns False if there is no such thread."""
        self.wake_at = NEVER
        if self.thread is None:
            self.wake_at = 1
            return False
        try:
            self.bell.release()
        except RuntimeError:
            pass  # rung already
        return True
