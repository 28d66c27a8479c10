"""The queue of one `ThreadHandler` without native code, as `crates/logspool-python/src/calls/record_queue.rs` has it.

A signal handler or a finalizer may interrupt a method and call another one in the same thread. The lock is reentrant.
CPython runs them at calls and loops only. So the statements of a method that change something have no call between
them, and an exception of a signal handler finds the counts whole. A call that interrupts another one never waits.
"""

from __future__ import annotations

import logging
import threading
from _thread import RLock
from typing import Any

#: As in `thread/_queue.py`: the `wake_at` of a thread that does not sleep.
_NEVER = 1 << 62

#: As in `record_queue.rs`: number of refused records of which one looks after the thread.
_UNATTENDED = 16

_FIXED = (int, float, bool, type(None))


class UnmadeRecord:
    """A class without objects: only native calls make such records."""


class ReservedPlace:
    """A place that is reserved for a caller that waits."""

    #: None before the place is reserved, and after `give_back`.
    queue: RecordQueue | None = None

    def __enter__(self) -> None:
        """Do nothing: the place is reserved already."""

    def __exit__(self, *exception: object) -> None:
        self.give_back()

    def give_back(self) -> None:
        """Give the place back. A second call does nothing."""
        queue = self.queue
        if queue is not None:
            with queue._lock:
                queue.waiting -= self.queue is not None
                self.queue = None

    def __del__(self) -> None:
        if self.queue is not None:
            self.give_back()


class RecordQueue:
    """Records on their way to the writer, and their counts. Each method is atomic."""

    _lock: Any
    _queued: list[tuple[Any, int]]
    _refused: dict[str, dict[int, int]]
    _dropped: dict[str, dict[int, int]]
    capacity: int
    limit: int
    wake_at: int
    accepted: int
    taken: int
    written: int
    missed: int
    waiting: int
    _max_bytes: int
    _bytes: int
    _bytes_in_hand: int
    _dropped_count: int
    _taker: int

    # `__init__` belongs to the subclass in `thread/_queue.py`.
    def __new__(cls, capacity: int, max_bytes: int) -> Any:
        self = super().__new__(cls)
        self._lock = RLock()
        self._queued = []
        self.capacity, self._max_bytes = capacity, max_bytes
        self.limit, self.wake_at = capacity, 1
        self.accepted = self.taken = self.written = self.missed = self.waiting = 0
        self._dropped_count = self._bytes = self._bytes_in_hand = self._taker = 0
        self._refused = {}
        self._dropped = {}
        return self

    def _depth(self) -> int:
        return self.accepted - self.written - self._dropped_count

    def _add(self, record: Any, size: int, limit: int) -> str | None:
        interrupts = self._lock._is_owned()
        with self._lock:
            depth = self._depth() + 1
            if depth > limit and not (interrupts and self.limit):
                return "queue_full" if self.limit else "shut"
            if self._bytes + size > self._max_bytes and depth > 1 and not interrupts:
                return "queue_bytes"
            self.accepted += 1
            self._bytes += size
            self._queued.append((record, size))
            return "wake" if depth >= self.wake_at else None

    def put(self, record: Any, size: int) -> str | None:
        return self._add(record, size, max(self.limit - self.waiting, 0))

    def put_plain(self, record: logging.LogRecord, size: int) -> str | None:
        if type(record) is not logging.LogRecord:
            return "prepare"
        fields = record.__dict__
        message, values = fields.get("msg"), fields.get("args", self)
        values = () if values is None else values
        is_long = fields.get("exc_info", self) is not None or fields.get("stack_info", self) is not None
        if is_long or type(message) is not str or type(values) is not tuple:
            return "prepare"
        texts = len(message)
        for value in values:
            if type(value) in (str, bytes):
                texts += len(value)
            elif type(value) not in _FIXED:
                return "prepare"
        return self.put(fields.copy(), size + texts)

    def put_reserved(self, record: Any, size: int) -> str | None:
        return self._add(record, size, self.limit)

    def put_own(self, record: Any, size: int) -> str | None:
        return self._add(record, size, self.capacity)

    def reserve(self) -> ReservedPlace:
        place = ReservedPlace()
        with self._lock:
            self.waiting += 1
            place.queue = self
        return place

    def take(self, most: int) -> list[Any]:
        with self._lock:
            self._taker = threading.get_ident()
            taken = self._queued[:most]
            records, count, size = [record for record, _ in taken], len(taken), sum([size for _, size in taken])
            self.written = self.taken
            self._bytes -= self._bytes_in_hand
            self._bytes_in_hand = size
            self.taken += count
            del self._queued[:count]
        return records

    def remove_oldest(self) -> Any:
        with self._lock:
            if not self._queued:
                return None
            record, size = self._queued[0]
            self._bytes -= size
            del self._queued[0]
            return record

    def note_direct(self) -> None:
        with self._lock:
            self.accepted += 1
            self.taken += 1
            self.written += 1

    def note_refused(self, reason: str, level: int, mention: bool) -> None:
        with self._lock:
            self.missed += mention
            _count(self._refused, reason, level)

    def refuse(self, level: int) -> bool:
        with self._lock:
            own = self._taker == threading.get_ident()
            if own or self.wake_at < _NEVER or self.missed % _UNATTENDED == 0:
                return False
            self.missed += 1
            _count(self._refused, "queue_full", level)
            return True

    def note_dropped(self, reason: str, level: int) -> None:
        with self._lock:
            self._dropped_count += 1
            _count(self._dropped, reason, level)

    def shut(self) -> None:
        self.limit = 0

    def counts(self) -> tuple[int, int, int, int, dict[str, dict[int, int]], dict[str, dict[int, int]]]:
        with self._lock:
            refused = {reason: dict(levels) for reason, levels in self._refused.items()}
            dropped = {reason: dict(levels) for reason, levels in self._dropped.items()}
            return self.accepted, self.written, self._depth(), self._bytes, refused, dropped

    def __len__(self) -> int:
        return len(self._queued)


def _count(reasons: dict[str, dict[int, int]], reason: str, level: Any) -> None:
    levels = reasons.setdefault(reason, {})
    number = level if isinstance(level, int) and -(1 << 63) <= level < 1 << 63 else (1 << 63) - 1
    levels[number] = levels.get(number, 0) + 1
