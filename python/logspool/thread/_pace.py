"""Pauses of the thread behind a `ThreadHandler` whose handler could take only a small part of the records anyway.

A handler that waits in each record needs the interpreter's lock again after each wait, and takes it from the program.
In a loaded server that costs up to a quarter of its requests. If most records find no room, the log is incomplete at
any speed of the handler. The thread then works in turns, with pauses between them. If fewer records come, the handler
gets them at its full speed.
"""

from __future__ import annotations

from time import monotonic

from logspool.thread._queue import RecordQueue

#: Shortest duration of a turn, in seconds. Chosen: less than the time in which a loaded server answers a request, so
#: that a turn delays no request for long.
TURN = 0.004

#: The thread pauses if this many records found no room for each one that was written in the turn.
OVERLOAD = 4

#: Shortest duration of a record, in seconds, of a handler that waits. Chosen: ten times what formatting takes. A
#: handler that computes keeps the lock from record to record and needs no pauses.
SLOW = 0.0002

#: Seconds of turn and pause for each written record. Chosen: 250 records a second; each costs a server some 0.2 ms.
SECONDS_FOR_RECORD = 0.004

#: Longest pause, as a multiple of the turn. Chosen: the handler has at least a quarter of the time.
LONGEST_PAUSE = 3


#: Seconds of one batch of lines. Chosen: a loaded server answers a request in several times as long, so that a batch,
#: which keeps the interpreter's lock, delays no request for long.
BATCH_SECONDS = 0.001


class BatchSize:
    """Number of records that a handler of the stock methods gets before its stream is flushed."""

    def __init__(self, most: int) -> None:
        self.count = 1
        self._most = most

    def measure(self, began: float, count: int) -> None:
        """Note that `count` records were written since `began`."""
        lasted = monotonic() - began
        if lasted > BATCH_SECONDS:
            self.count = max(1, int(count * BATCH_SECONDS / lasted))
        elif count == self.count:
            self.count = min(2 * count, self._most)


class Turn:
    """One turn of the thread: its begin, and the counts of the queue then."""

    def __init__(self, queue: RecordQueue) -> None:
        self.taken = queue.taken
        self.missed = queue.missed
        self.began = monotonic()

    def has_begun(self, queue: RecordQueue) -> bool:
        """Return whether a record was taken in this turn."""
        return queue.taken != self.taken

    def is_over(self) -> bool:
        """Return whether the turn has lasted long enough."""
        return monotonic() - self.began >= TURN

    def pause(self, queue: RecordQueue) -> float:
        """Return how many seconds to pause after this turn; 0 if the handler keeps up or does not wait."""
        lasted = monotonic() - self.began
        taken, missed = queue.taken - self.taken, queue.missed - self.missed
        if missed < OVERLOAD * taken or lasted < SLOW * taken:
            return 0.0
        return max(0.0, min(taken * SECONDS_FOR_RECORD - lasted, LONGEST_PAUSE * lasted))
